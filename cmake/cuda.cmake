# Sets LONGHAND_HAS_CUDA, which is ON if the CUDA backend is built. It is built if LONGHAND_CUDA is ON and
# nvcc is found: as CMAKE_CUDA_COMPILER, as $CUDACXX, on the PATH, or in the toolkit's default folder.
set(LONGHAND_HAS_CUDA OFF)
if(LONGHAND_CUDA)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(LONGHAND_NVCC nvcc HINTS /usr/local/cuda/bin)
    if(LONGHAND_NVCC)
      set(CMAKE_CUDA_COMPILER ${LONGHAND_NVCC})
    endif()
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # A100, H100 and H200, and PTX for later devices
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # nvcc supports C++20 since 12.0
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(LONGHAND_HAS_CUDA ON)
  else()
    message(STATUS "No nvcc: the program is built without its CUDA backend")
  endif()
endif()

# Options to link a program with LONGHAND_STATIC. A program with CUDA loads NVIDIA's driver and cuBLASLt at
# run time, so it must use the machine's C library and cannot be linked fully statically.
set(longhand_static_options "")
if(LONGHAND_STATIC)
  set(longhand_static_options -static)
  if(LONGHAND_HAS_CUDA)
    set(longhand_static_options -static-libstdc++ -static-libgcc)
  endif()
endif()
