# Files of one folder are compiled together, so many at a time: headers are read and templates are
# made once. Of STEPCAST_ALONE no file is: names of its unnamed namespace stand in its neighbours'
# as well, or it needs CUDA. The headers of libraries are read once for a target. The preset clang
# compiles each file by itself, so that none lives on its neighbours' includes.
set(STEPCAST_UNITY 0 CACHE STRING "How many files of a folder are compiled together; 0: each alone")

# Reads the headers of libraries once for all sources of a target, and those named as well.
function(read_headers_once target)
  if(STEPCAST_UNITY)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <cstdint> <filesystem>
      <fstream> <functional> <map> <memory> <optional> <set> <span> <string> <string_view> <utility>
      <vector> <fmt/format.h> ${ARGN})
    # False positives of gcc 12 in std::string, here not taken for a system header's.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds
      -Wno-stringop-overflow -Wno-stringop-overread>
      # A compiler cache hands out such headers with times of its own.
      $<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  endif()
endfunction()

set(STEPCAST_ALONE
  calibrate/cuda/ calibrate/host/ calibrate/import/nccl_ calibrate/kernels/
  sim/files/toml_value sim/kernels/ sim/network/nccl/overrides sim/network/search/ring_search
  sim/pictures/ sim/report/ sim/tables/calibration_table
  validate/compare/ validate/published/scenario validate/trace/ validate/trainer/device/
  validate/trainer/model/layer validate/trainer/model/step_calls validate/trainer/run/
  workloads/pieces/ workloads/step/)
list(JOIN STEPCAST_ALONE | STEPCAST_ALONE)

function(compile_together target)  # and headers for read_headers_once
  if(NOT STEPCAST_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  list(SORT sources)
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${folder})
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    if(NOT path MATCHES "^(${STEPCAST_ALONE})")
      get_filename_component(group ${path} DIRECTORY)
      string(REPLACE / _ group ${group})
      math(EXPR batch "0${${group}} / ${STEPCAST_UNITY}")
      math(EXPR ${group} "0${${group}} + 1")
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES
        UNITY_GROUP ${group}_${batch})
    endif()
  endforeach()
  read_headers_once(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # gcc takes what stands in an included file's unnamed namespace for a header's.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
