#include "core/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/error.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace longhand::cpu {
namespace {

constexpr std::array<std::string_view, 8> names{"fused", "portable", "neon",       "simd128",
                                                "avx2",  "avx512",   "avx512bf16", "amx"};

#if defined(__x86_64__)
/// Linux permits the use of AMX tiles only on request, once per process (arch_prctl,
/// ARCH_REQ_XCOMP_PERM).
bool amx_granted() {
#if defined(__linux__)
  constexpr long request_permission = 0x1023, tile_data = 18;
  static const bool granted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return granted;
#else
  return false;
#endif
}

bool has_amx() {
  unsigned a = 7, b = 0, c = 0, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  constexpr unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
  return (d & amx_bf16) && (d & amx_tile);
}

bool has_avx512bf16() {
  unsigned a = 7, b = 0, c = 1, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return a & (1u << 5);
}
#endif

}  // namespace

std::string_view name_of(Isa isa) { return names[static_cast<std::size_t>(isa)]; }

std::optional<Isa> isa_from_name(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

bool supports(Isa isa, std::string_view* reason) {
  const auto no = [&](std::string_view why) {
    if (reason) *reason = why;
    return false;
  };
  if (reason) *reason = {};
  if (isa < weakest_built) return no("this build has no kernels for it");
  if (isa == Isa::fused || isa == Isa::portable) return true;
  if (std::ranges::find(isas_of_this_processor(), isa) == isas_of_this_processor().end()) {
    return no(isa == Isa::neon      ? "not an arm64 processor"
              : isa == Isa::simd128 ? "not WebAssembly"
                                    : "not an x86-64 processor");
  }
  if (isa > strongest_built) return no("this build has no kernels for it");
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return no("the processor lacks AVX2 and FMA");
  }
  if (isa == Isa::avx2) return true;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return no("the processor lacks AVX-512 F, BW, DQ and VL");
  }
  if (isa == Isa::avx512) return true;
  if (isa == Isa::avx512bf16) {
    return has_avx512bf16() || no("the processor lacks AVX512-BF16");
  }
  if (!has_amx()) return no("the processor lacks AMX with bf16");
  return amx_granted() || no("the operating system refuses the AMX tile state");
#elif defined(__wasm__)
  return relaxed_is_fused() || no("the processor lacks fused multiply-add");
#else
  return true;  // every arm64 processor has NEON
#endif
}

std::span<const Isa> isas_of_this_processor() {
  static constexpr auto all = std::to_array<Isa>({
    Isa::portable,
#if defined(__x86_64__)
        Isa::avx2, Isa::avx512, Isa::avx512bf16, Isa::amx,
#elif defined(__aarch64__)
        Isa::neon,
#elif defined(__wasm__)
        Isa::simd128,
#endif
  });
  return all;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> found;
  for (const Isa isa : isas_of_this_processor()) {
    if (supports(isa)) found.push_back(isa);
  }
  return found;
}

Isa choose_isa() {
  const char* wanted = std::getenv("LONGHAND_CPU");
  if (wanted == nullptr || *wanted == '\0') return supported_isas().back();
  const auto isa = isa_from_name(wanted);
  std::string known;
  for (const Isa i : isas_of_this_processor()) {
    const char* between = i == isas_of_this_processor().back() ? " or " : ", ";
    known += known.empty() ? "" : between;
    known += name_of(i);
  }
  // The list `known` does not contain Isa::fused, because only Math::portable selects this set.
  LONGHAND_CHECK(isa && *isa != Isa::fused, "LONGHAND_CPU: expected ", known, ", got '", wanted,
                 "'");
  std::string_view reason;
  LONGHAND_CHECK(supports(*isa, &reason), "LONGHAND_CPU=", wanted, ": ", reason);
  return *isa;
}

}  // namespace longhand::cpu
