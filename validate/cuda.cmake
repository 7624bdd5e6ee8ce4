# stepcast-trainer-cuda, where nvcc and NCCL are: the trainer again, with GPUs, which stepcast-trainer
# becomes for a scenario of GPUs. A program of its own, since loading NCCL takes time and memory that
# the host's ranks are not to spend. It and stepcast-nccl-worker load NCCL.
if(NOT STEPCAST_HAS_CUDA OR NOT NCCL_INCLUDE OR NOT NCCL_LIBRARY)
  message(STATUS "stepcast-trainer: on the host's cores alone (no CUDA or no NCCL)")
  return()
endif()

# A library of its own: the hardware tests link it as well.
file(GLOB gpu_sources CONFIGURE_DEPENDS trainer/device/cuda_*.cpp
  trainer/device/nccl*.cpp)
add_library(stepcast_trainer_gpu STATIC ${gpu_sources} trainer/device/gpu.cpp
  trainer/device/kernels_cuda.cpp)
target_include_directories(stepcast_trainer_gpu SYSTEM PUBLIC ${NCCL_INCLUDE})
target_link_libraries(stepcast_trainer_gpu PUBLIC stepcast::validate CUDA::cudart_static
  ${NCCL_LIBRARY} PRIVATE fmt::fmt)

add_trainer(stepcast-trainer-cuda)
target_compile_definitions(stepcast-trainer-cuda PRIVATE STEPCAST_HAS_NCCL)
target_link_libraries(stepcast-trainer-cuda PRIVATE stepcast_trainer_gpu)
