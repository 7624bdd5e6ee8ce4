# The host device: kernels compiled for this machine; MPI found, not required.
# STEPCAST_HOST_ARCH=native compiles the kernels for the processor they are built on; empty: for any.
set(STEPCAST_HOST_ARCH native CACHE STRING "Processor of the host kernels (-march), empty: any")
set(host_kernel_options -O3 -fno-math-errno -ffp-contract=fast)
if(STEPCAST_HOST_ARCH)
  list(APPEND host_kernel_options -march=${STEPCAST_HOST_ARCH})
endif()
set_source_files_properties(host/kernels.cpp host/kernels_exp.cpp host/experts.cpp
  host/attention.cpp PROPERTIES COMPILE_OPTIONS "${host_kernel_options}"
  SKIP_PRECOMPILE_HEADERS ON)  # read for any processor

# The ranks of the host's collectives; the only program of calibrate that knows MPI.
if(STEPCAST_HAS_MPI)
  add_executable(stepcast-host-ranks host/ranks_main.cpp)
  target_include_directories(stepcast-host-ranks SYSTEM PRIVATE ${MPI_CXX_INCLUDE_DIRS})
  target_link_libraries(stepcast-host-ranks PRIVATE stepcast::options ${MPI_CXX_LIBRARIES} Threads::Threads)
endif()
