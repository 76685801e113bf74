# Functions for the targets of this project: one library per folder, and files that are compiled once
# per instruction set.

# Flags of every target of this project.
add_library(longhand_flags INTERFACE)
# If files are compiled together, a local name may hide a name of another file.
set(shadow $<IF:$<BOOL:${LONGHAND_UNITY}>,-Wshadow=local,-Wshadow>)
# Builds for WebAssembly have no warnings, because std::size_t has 32 bits there.
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")
  target_compile_options(longhand_flags INTERFACE
                         $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion ${shadow}
                         -Wno-sign-conversion>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 wrongly warns of overlaps and overruns in inlined functions of its std::string.
  target_compile_options(longhand_flags INTERFACE
                         $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-restrict
                         -Wno-stringop-overflow>)
endif()
if(LONGHAND_WERROR)
  target_compile_options(longhand_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(LONGHAND_SANITIZE)
  add_compile_options(-fsanitize=${LONGHAND_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LONGHAND_SANITIZE})
endif()
install(TARGETS longhand_flags EXPORT longhand)

# Headers that most files include are precompiled. Otherwise, half of the time of a clean build would be
# spent on reading headers. A compiler cache stores whole objects, so it needs no precompiled headers.
set(longhand_precompiled <algorithm> <filesystem> <fstream> <functional> <iostream> <map> <memory>
                         <optional> <span> <sstream> <string> <vector>
                         ${PROJECT_SOURCE_DIR}/core/backend.h ${PROJECT_SOURCE_DIR}/core/json.h)
set(longhand_precompiled_simd isa.h loop.h math.h)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

set(LONGHAND_UNITY_FILES 8 CACHE STRING "Files in a batch, if LONGHAND_UNITY is ON")

# longhand_unity(TARGET [APART files...]): compiles the target's files in batches if LONGHAND_UNITY is ON.
# APART files are compiled separately, because they define names that other files define too.
function(longhand_unity target)
  cmake_parse_arguments(arg "" "" "APART" ${ARGN})
  if(LONGHAND_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${LONGHAND_UNITY_FILES})
    # This warning would appear for the unnamed namespace of every included file.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# Files that the WebAssembly module does not need. Most of them read or write files.
string(JOIN "|" longhand_wasm_excludes
       "/core/(sha256|folder|mapped_file|gguf.*|safetensors_(index|parts)|npy|numbers|table_file|zip.*)\\.cpp$"
       "/autograd/catalog/" "/nn/(families|text)/" "/nn/ranks/(mpi|nccl|plugin|threads|watch)"
       "/nn/models/(gguf|hugging|peft|llama_form|sampling)"
       "/nn/training/(checkpoint|fingerprints|memory_estimate|prefetcher|recorded|run_check|step_trace|stop_signals|trainer|unread)"
       "/tasks/(all_tasks|boxes|conversation|own|record_file|task_files|text|tokens|words)")

# longhand_library(NAME [DEPENDS libraries...] [APART files...]): defines the library longhand::NAME of
# all .cpp files, except *.simd.cpp, in this folder and its subfolders. For APART see longhand_unity.
function(longhand_library name)
  cmake_parse_arguments(arg "" "" "DEPENDS;APART" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  list(FILTER sources EXCLUDE REGEX "\\.simd\\.cpp$")
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")
    list(FILTER sources EXCLUDE REGEX ${longhand_wasm_excludes})
  endif()
  add_library(longhand_${name} STATIC ${sources})
  add_library(longhand::${name} ALIAS longhand_${name})
  set_target_properties(longhand_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(longhand_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                     $<INSTALL_INTERFACE:include>)
  target_link_libraries(longhand_${name} PUBLIC ${arg_DEPENDS} PRIVATE longhand_flags)
  target_compile_features(longhand_${name} PUBLIC cxx_std_20)
  if(name STREQUAL "core")
    target_precompile_headers(longhand_core PRIVATE ${longhand_precompiled})
  else()
    target_precompile_headers(longhand_${name} REUSE_FROM longhand_core)
  endif()
  list(TRANSFORM arg_APART PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  longhand_unity(longhand_${name} APART ${arg_APART})
  install(TARGETS longhand_${name} EXPORT longhand)
endfunction()

# Instruction sets of the CPU backend, the weakest first, and their compiler flags. A file NAME.simd.cpp
# or NAME.op.cpp is compiled once per instruction set, with LONGHAND_ISA set to the name of the set.
# NAME.op.cpp is also compiled once without LONGHAND_ISA (core/cpu/isa.h).
set(longhand_isas fused portable)
set(longhand_isa_flags_fused "")
set(longhand_isa_flags_portable "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND longhand_isas avx2 avx512 avx512bf16 amx)
  set(longhand_isa_flags_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
  set(longhand_isa_flags_avx512 ${longhand_isa_flags_avx2} -mavx512f -mavx512bw -mavx512cd
                                -mavx512dq -mavx512vl -mprefer-vector-width=512)
  set(longhand_isa_flags_avx512bf16 ${longhand_isa_flags_avx512} -mavx512bf16)
  set(longhand_isa_flags_amx ${longhand_isa_flags_avx512bf16} -mamx-tile -mamx-bf16 -mamx-int8)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(APPEND longhand_isas neon)
  set(longhand_isa_flags_neon "")
  # Code outside of the kernels must not use fused multiply-adds, which a plain x86-64 does not have.
  # Every operation is rounded, so the bits are the same on both processors.
  add_compile_options(-ffp-contract=off)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")
  set(longhand_isas portable simd128)
  set(longhand_isa_optimization -Os)  # a page loads the module; core/CMakeLists.txt excepts products
  set(longhand_isa_flags_simd128 -mrelaxed-simd)
endif()

# Unrolled loops with a sanitizer's checks would take a minute per file to compile.
if(LONGHAND_SANITIZE)
  set(longhand_isa_optimization -O1)
elseif(NOT longhand_isa_optimization)
  set(longhand_isa_optimization -O3)
endif()
# `fused` computes the bits of --math portable on processors without fused multiply-add. It calls a
# function for each of them, so further optimization would double the time to compile and gain little.
set(longhand_isa_optimization_fused -O1)

# Builds that are not timed may omit instruction sets: those before LONGHAND_WEAKEST_ISA, and those after
# LONGHAND_STRONGEST_ISA.
foreach(end WEAKEST STRONGEST)
  if(LONGHAND_${end}_ISA)
    list(FIND longhand_isas ${LONGHAND_${end}_ISA} place)
    if(place LESS 0)
      message(FATAL_ERROR "LONGHAND_${end}_ISA: expected one of ${longhand_isas}, got '${LONGHAND_${end}_ISA}'")
    endif()
    if(end STREQUAL "WEAKEST")
      list(SUBLIST longhand_isas ${place} -1 longhand_isas)
    else()
      math(EXPR place "${place} + 1")
      list(SUBLIST longhand_isas 0 ${place} longhand_isas)
    endif()
    add_compile_definitions(LONGHAND_${end}_ISA=${LONGHAND_${end}_ISA})
  endif()
endforeach()

# longhand_simd(TARGET): adds the folder's *.simd.cpp and *.op.cpp files to TARGET once per instruction
# set up to avx512. For stronger sets, only the following files are compiled, whose tables declare
# `strongest = ...`.
set(longhand_only_avx512bf16 "^cpu/gemm/paired\\.")
set(longhand_only_amx "^cpu/(attention|gemm)/tiles\\.")
set(longhand_also_avx512bf16 "^cpu/attention/")

function(longhand_simd target)
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS
       *.simd.cpp *.op.cpp)
  foreach(isa IN LISTS longhand_isas)
    set(wanted ${sources})
    if(isa STREQUAL "amx")
      list(FILTER wanted INCLUDE REGEX ${longhand_only_amx})
    elseif(isa STREQUAL "avx512bf16")
      list(FILTER wanted INCLUDE REGEX "${longhand_only_avx512bf16}|${longhand_also_avx512bf16}")
      list(FILTER wanted EXCLUDE REGEX ${longhand_only_amx})
    else()
      list(FILTER wanted EXCLUDE REGEX "${longhand_only_avx512bf16}|${longhand_only_amx}")
    endif()
    if(NOT wanted)
      continue()
    endif()
    string(TOUPPER ${isa} upper)
    add_library(${target}_${isa} OBJECT ${wanted})
    target_include_directories(${target}_${isa} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${target}_${isa} PRIVATE LONGHAND_ISA=${isa} LONGHAND_ISA_IS_${upper})
    target_compile_options(${target}_${isa} PRIVATE ${longhand_isa_flags_${isa}}
                           ${longhand_isa_optimization} ${longhand_isa_optimization_${isa}}
                           -fno-math-errno -fno-trapping-math
                           # Only calls of fma() are fused, so that all instruction sets round alike.
                           -ffp-contract=off
                           # GCC 12 warns of operands that are undefined on purpose in its intrinsics
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized -Wno-maybe-uninitialized>)
    target_link_libraries(${target}_${isa} PRIVATE longhand_flags)
    list(LENGTH wanted files)
    if(target STREQUAL "longhand_core" AND files GREATER 2)
      list(TRANSFORM longhand_precompiled_simd PREPEND ${PROJECT_SOURCE_DIR}/core/cpu/
           OUTPUT_VARIABLE headers)
      target_precompile_headers(longhand_core_${isa} PRIVATE ${headers})
    elseif(NOT target STREQUAL "longhand_core")
      target_precompile_headers(${target}_${isa} REUSE_FROM longhand_core_${isa})
    endif()
    # Each WebAssembly module has the kernels of one set (apps/wasm/CMakeLists.txt).
    if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${isa}>)
    endif()
  endforeach()
endfunction()
