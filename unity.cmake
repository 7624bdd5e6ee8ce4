# Files of one folder are compiled together, so many at a time: headers are read and templates are
# made once. Of STEPCAST_ALONE no file is: names of its unnamed namespace stand in its neighbours'
# as well, or it needs CUDA. The preset clang compiles each file by itself, so that none lives on its
# neighbours' includes.
set(STEPCAST_UNITY 0 CACHE STRING "How many files of a folder are compiled together; 0: each alone")
set(STEPCAST_ALONE
  calibrate/cuda/ calibrate/host/ calibrate/import/nccl_ calibrate/kernels/
  sim/files/toml_value sim/tables/calibration_table
  validate/compare/kernels validate/compare/report validate/published/scenario validate/trace/
  validate/trainer/model/layer validate/trainer/model/step_calls validate/trainer/run/results)
list(JOIN STEPCAST_ALONE | STEPCAST_ALONE)

# Rooms that read what users hand in and print answers: -O1 compiles them a quarter faster than -O3,
# and no case of ./dev bench gate spends a twentieth of its instructions there.
set(STEPCAST_COLD "calibrate/(fit|import|report)/|sim/(chakra|command|compare|design|goal|handout|import|launch|output|page|pictures|processes|program|report|scenario|study|why)/|validate/(cluster|compare|layers|published|study)/")
option(STEPCAST_COLD_O1 "Compile rooms that read and print with -O1, whatever the build type" OFF)

# Sources made of #includes relative to the project: of two clones they are the same, and a compiler
# cache knows the one's from the other's (CMake's own unity builds name absolute paths).
function(compile_together target)
  get_target_property(all ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(sources ${all})
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  list(SORT sources)
  set(groups "")
  set(cold "")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${folder})
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    get_filename_component(room ${path} DIRECTORY)
    string(REPLACE / _ room ${room})
    get_source_file_property(definitions ${source} TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
    get_source_file_property(options ${source} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
    set(compiled ${source})
    if(STEPCAST_UNITY AND NOT definitions AND NOT options AND NOT path MATCHES "^(${STEPCAST_ALONE})")
      math(EXPR batch "0${of_${room}} / ${STEPCAST_UNITY}")
      math(EXPR of_${room} "0${of_${room}} + 1")
      list(REMOVE_ITEM all ${source})
      list(APPEND groups ${room}_${batch})
      string(APPEND text_${room}_${batch} "#include \"${path}\"\n")
      set(compiled ${CMAKE_BINARY_DIR}/together/${target}/${room}_${batch}.cpp)
    endif()
    if(STEPCAST_COLD_O1 AND NOT options AND path MATCHES "^(${STEPCAST_COLD})")
      list(APPEND cold ${compiled})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group ${groups})
    set(together ${CMAKE_BINARY_DIR}/together/${target}/${group}.cpp)
    file(CONFIGURE OUTPUT ${together} CONTENT "${text_${group}}" @ONLY)
    list(APPEND all ${together})
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${all})
  list(REMOVE_DUPLICATES cold)
  set_source_files_properties(${cold} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS -O1)
  if(STEPCAST_UNITY)  # gcc takes what stands in an included file's unnamed namespace for a header's
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
