#include "cuda/emulator/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>

#include "core/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// void longhand_emulator_switch(void** from, void* to): saves the callee-saved registers on the
// stack, stores the stack pointer in *from and continues on the stack `to`. swapcontext is slower,
// because it makes a system call for the signal mask each time, and a barrier of 256 threads needs
// 512 switches.
asm(R"(
.text
.hidden longhand_emulator_switch
.globl longhand_emulator_switch
.type longhand_emulator_switch, @function
longhand_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size longhand_emulator_switch, .-longhand_emulator_switch

.hidden longhand_emulator_entry
.globl longhand_emulator_entry
.type longhand_emulator_entry, @function
longhand_emulator_entry:
  movq %rbx, %rdi
  call *%r12
  ud2
.size longhand_emulator_entry, .-longhand_emulator_entry
)");
extern "C" void longhand_emulator_switch(void** from, void* to);
// Calls the function in r12 with the argument in rbx, and never returns.
extern "C" void longhand_emulator_entry();
#endif

namespace longhand::emulator {
namespace {

constexpr std::size_t guard = 4096;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t stack_size = std::size_t{512} << 10;
#else
constexpr std::size_t stack_size = std::size_t{128} << 10;
#endif

}  // namespace

#if defined(__x86_64__)

struct Fiber::Context {
  void* inside = nullptr;   // saved stack pointer of the fiber's function
  void* outside = nullptr;  // saved stack pointer of resume()
  const void* outer_stack = nullptr;
  std::size_t outer_size = 0;
};

#else

struct Fiber::Context {
  ucontext_t inside, outside;
};

#endif

Fiber::Fiber() : context_(new Context) {
  void* const mapping = mmap(nullptr, guard + stack_size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LONGHAND_CHECK(mapping != MAP_FAILED,
                 "emulator: cannot allocate memory for the stack of a fiber");
  stack_ = static_cast<std::byte*>(mapping);
  mprotect(stack_, guard, PROT_NONE);
}

const void* Fiber::stack_end() const { return stack_ + guard + stack_size; }

Fiber::~Fiber() {
  munmap(stack_, guard + stack_size);
  delete context_;
}

void Fiber::enter(Fiber* self) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->context_->outer_stack,
                                  &self->context_->outer_size);
#endif
  self->body_(self->argument_);
  self->ended_ = true;
  self->wait();  // never returns
}

#if defined(__x86_64__)

void Fiber::start(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
  // Builds the frame that longhand_emulator_switch expects on a stack to which it switches: six
  // registers, then the return address.
  auto* top = reinterpret_cast<std::uintptr_t*>(stack_ + guard + stack_size) - 2;
  *--top = reinterpret_cast<std::uintptr_t>(&longhand_emulator_entry);
  *--top = 0;                                         // initial rbp
  *--top = reinterpret_cast<std::uintptr_t>(this);    // initial rbx, the argument of enter()
  *--top = reinterpret_cast<std::uintptr_t>(&enter);  // initial r12, the function to call
  for (int i = 0; i < 3; ++i) *--top = 0;             // initial r13, r14 and r15
  context_->inside = top;
#if defined(__SANITIZE_ADDRESS__)
  // A failed launch leaves its fibers in the middle of functions, so AddressSanitizer's red zones
  // on their stacks must be cleared.
  __asan_unpoison_memory_region(stack_ + guard, stack_size);
#endif
}

void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  void* shadow = nullptr;
  __sanitizer_start_switch_fiber(&shadow, stack_ + guard, stack_size);
#endif
  longhand_emulator_switch(&context_->outside, context_->inside);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
#endif
}

void Fiber::wait() {
#if defined(__SANITIZE_ADDRESS__)
  void* shadow = nullptr;
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &shadow, context_->outer_stack,
                                 context_->outer_size);
#endif
  longhand_emulator_switch(&context_->inside, context_->outside);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
#endif
}

#else

void Fiber::start(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
  getcontext(&context_->inside);
  context_->inside.uc_stack.ss_sp = stack_ + guard;
  context_->inside.uc_stack.ss_size = stack_size;
  context_->inside.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  // makecontext only passes ints, so the fiber's address is passed in two halves.
  makecontext(&context_->inside, reinterpret_cast<void (*)()>(+[](unsigned high, unsigned low) {
    enter(reinterpret_cast<Fiber*>((std::uintptr_t{high} << 32) | low));
  }),
              2, static_cast<unsigned>(std::uint64_t{address} >> 32),
              static_cast<unsigned>(address));
}

void Fiber::resume() { swapcontext(&context_->outside, &context_->inside); }
void Fiber::wait() { swapcontext(&context_->inside, &context_->outside); }

#endif

}  // namespace longhand::emulator
