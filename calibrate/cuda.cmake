# The CUDA parts of stepcast_calibrate: kernels/ and cuda/, where nvcc is. NCCL is used by a
# program of its own alone, stepcast-nccl-worker, one process per GPU, so that nobody else loads it.
if(NOT STEPCAST_HAS_CUDA)
  return()
endif()

file(GLOB cuda_sources CONFIGURE_DEPENDS kernels/*.cu kernels/*.cpp cuda/*.cpp)
list(FILTER cuda_sources EXCLUDE REGEX "cuda/(nccl|overlap)[^/]*$")
target_sources(stepcast_calibrate PRIVATE ${cuda_sources})
target_compile_definitions(stepcast_calibrate PUBLIC STEPCAST_HAS_CUDA)
target_compile_options(stepcast_calibrate PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:
  --expt-relaxed-constexpr -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Wno-unused-parameter>)
set_source_files_properties(cuda/cublaslt_on_demand.cpp PROPERTIES COMPILE_DEFINITIONS
  STEPCAST_CUDA_LIBRARIES="${CUDAToolkit_LIBRARY_DIR}")
target_link_libraries(stepcast_calibrate PUBLIC CUDA::cudart_static PRIVATE ${CMAKE_DL_LIBS})

find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
if(NCCL_INCLUDE AND NCCL_LIBRARY)
  file(GLOB nccl_sources CONFIGURE_DEPENDS cuda/nccl*.cpp cuda/overlap*.cpp)
  if(nccl_sources)
    add_executable(stepcast-nccl-worker ${nccl_sources})
    target_include_directories(stepcast-nccl-worker SYSTEM PRIVATE ${NCCL_INCLUDE})
    target_link_libraries(stepcast-nccl-worker PRIVATE stepcast::calibrate fmt::fmt
      ${NCCL_LIBRARY})
  endif()
else()
  message(STATUS "NCCL: not found, collectives are not measured")
endif()
