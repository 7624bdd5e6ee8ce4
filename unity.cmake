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

# Sources made of #includes relative to the project: of two clones they are the same, and a compiler
# cache knows the one's from the other's (CMake's own unity builds name absolute paths).
function(compile_together target)  # and headers for read_headers_once
  if(NOT STEPCAST_UNITY)
    return()
  endif()
  get_target_property(all ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(sources ${all})
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  list(SORT sources)
  set(groups "")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${folder})
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    get_source_file_property(definitions ${source} TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
    if(NOT definitions AND NOT path MATCHES "^(${STEPCAST_ALONE})")
      get_filename_component(room ${path} DIRECTORY)
      string(REPLACE / _ room ${room})
      math(EXPR batch "0${of_${room}} / ${STEPCAST_UNITY}")
      math(EXPR of_${room} "0${of_${room}} + 1")
      list(REMOVE_ITEM all ${source})
      list(APPEND groups ${room}_${batch})
      string(APPEND text_${room}_${batch} "#include \"${path}\"\n")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group ${groups})
    set(together ${CMAKE_BINARY_DIR}/together/${target}/${group}.cpp)
    file(CONFIGURE OUTPUT ${together} CONTENT "${text_${group}}" @ONLY)
    list(APPEND all ${together})
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${all})
  read_headers_once(${target} ${ARGN})
  # gcc takes what stands in an included file's unnamed namespace for a header's.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
