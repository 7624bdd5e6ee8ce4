# CUDA and MPI: found, not required. Sets STEPCAST_HAS_CUDA and STEPCAST_HAS_MPI and says in one line
# each what was decided. STEPCAST_CUDA=AUTO takes nvcc where it is and there are .cu files to compile;
# ON fails without nvcc; OFF does not look.

set(STEPCAST_HAS_CUDA OFF)
set(STEPCAST_HAS_MPI OFF)

# CUDA 13 removed Volta: V100 (sm_70) needs a toolkit of CUDA 12 (last: 12.9). CUDA 13.0 refuses
# -arch=sm_70 with "Unsupported gpu architecture" (tried with 13.0.88, 2026-11). 90-virtual lets the
# driver compile for what comes after Hopper.
function(choose_cuda_architectures toolkit)
  if(NOT CMAKE_CUDA_ARCHITECTURES AND DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES $ENV{CUDAARCHS} CACHE STRING "GPUs")
  endif()
  if(CMAKE_CUDA_ARCHITECTURES)
    if(CMAKE_CUDA_ARCHITECTURES MATCHES "(^|;)70" AND NOT toolkit VERSION_LESS 13.0)
      message(FATAL_ERROR "CUDA ${toolkit} cannot compile for V100 (sm_70), "
        "use CUDA 12.9 or older for it")
    endif()
  elseif(toolkit VERSION_LESS 13.0)
    set(CMAKE_CUDA_ARCHITECTURES 70-real 80-real 90-real 90-virtual CACHE STRING "GPUs" FORCE)
  else()
    message(STATUS "CUDA ${toolkit} cannot compile for V100 (sm_70): left out")
    set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-real 90-real 90-virtual CACHE STRING "GPUs" FORCE)
  endif()
endfunction()

file(GLOB cuda_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/calibrate/kernels/*.cu)
list(LENGTH cuda_sources num_cuda_sources)
if(STEPCAST_CUDA STREQUAL "OFF")
  message(STATUS "CUDA parts: off (STEPCAST_CUDA=OFF)")
elseif(STEPCAST_CUDA STREQUAL "AUTO" AND num_cuda_sources EQUAL 0)
  message(STATUS "CUDA parts: none yet (no .cu file)")
else()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE nvcc_version)
    string(REGEX MATCH "release ([0-9.]+)" ignored "${nvcc_version}")
    set(toolkit ${CMAKE_MATCH_1})
    choose_cuda_architectures(${toolkit})
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know nvcc's C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    # Kernels are compiled alike in every build type: a debug build that measures other kernels
    # would measure nothing, and a compiler cache serves all of them.
    set(CMAKE_CUDA_FLAGS_DEBUG "-O3 -DNDEBUG")
    set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O3 -DNDEBUG")
    find_package(CUDAToolkit REQUIRED)
    if(TARGET CUDA::cublasLt)
      set(STEPCAST_HAS_CUDA ON)
      message(STATUS "CUDA parts: ${num_cuda_sources} files with CUDA ${toolkit} "
        "for ${CMAKE_CUDA_ARCHITECTURES}")
    elseif(STEPCAST_CUDA STREQUAL "ON")
      message(FATAL_ERROR "STEPCAST_CUDA=ON, but no cuBLASLt beside nvcc: install cuBLAS")
    else()
      message(STATUS "CUDA parts: left out (no cuBLASLt beside nvcc)")
    endif()
  elseif(STEPCAST_CUDA STREQUAL "ON")
    message(FATAL_ERROR "STEPCAST_CUDA=ON, but no nvcc on PATH: install the CUDA toolkit "
      "or configure with -DSTEPCAST_CUDA=AUTO")
  else()
    message(STATUS "CUDA parts: left out (no nvcc on PATH)")
  endif()
endif()

if(STEPCAST_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(STEPCAST_HAS_MPI ON)
    message(STATUS "MPI: ${MPI_CXX_LIBRARIES}")
  else()
    message(STATUS "MPI: not found, calibrate and validate run on one process, no stepcast-sweep")
  endif()
endif()
