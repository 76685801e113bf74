# LONGHAND_HAS_CUDA: whether the CUDA backend is built. It is when LONGHAND_CUDA asks for it and there
# is an nvcc: CMAKE_CUDA_COMPILER, $CUDACXX, on the PATH, or where the toolkit puts itself.
set(LONGHAND_HAS_CUDA OFF)
if(LONGHAND_CUDA)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(LONGHAND_NVCC nvcc HINTS /usr/local/cuda/bin)
    if(LONGHAND_NVCC)
      set(CMAKE_CUDA_COMPILER ${LONGHAND_NVCC})
    endif()
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # A100, H100 and H200, and PTX for what came after
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # nvcc has had it since 12.0
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(LONGHAND_HAS_CUDA ON)
  else()
    message(STATUS "No nvcc: the program is built without its CUDA backend")
  endif()
endif()

# How a program is linked with LONGHAND_STATIC. NVIDIA's driver and cuBLASLt are loaded when they are
# needed, which takes the C library of the machine.
set(longhand_static_options "")
if(LONGHAND_STATIC)
  set(longhand_static_options -static)
  if(LONGHAND_HAS_CUDA)
    set(longhand_static_options -static-libstdc++ -static-libgcc)
  endif()
endif()
