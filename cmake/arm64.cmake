# A toolchain file that builds for arm64 Linux with Debian's cross compiler. scripts/arm64.sh unpacks
# Boost for arm64 in LONGHAND_ARM64_ROOT. Tests run in the emulator qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)

get_filename_component(source ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(LONGHAND_ARM64_ROOT ${source}/build/arm64-root
    CACHE PATH "Where Boost for arm64 is unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LONGHAND_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH ${LONGHAND_ARM64_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The program is static. CMake would find the shared library, which the linker refuses.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.a
                OUTPUT_VARIABLE gomp OUTPUT_STRIP_TRAILING_WHITESPACE)
set(OpenMP_gomp_LIBRARY ${gomp} CACHE FILEPATH "OpenMP's library for static programs")
