# Files of one folder are compiled together, so many at a time: headers are read and templates are
# made once. Of STEPCAST_ALONE no file is: names of its unnamed namespace stand in its neighbours'
# as well, or it needs CUDA. The preset clang compiles each file by itself, so that none lives on its
# neighbours' includes.
set(STEPCAST_UNITY 0 CACHE STRING "How many files of a folder are compiled together; 0: each alone")
set(STEPCAST_ALONE
  calibrate/cuda/ calibrate/host/reference calibrate/host/task calibrate/kernels/
  sim/files/toml_value sim/tables/calibration_table validate/compare/report[.])
list(JOIN STEPCAST_ALONE | STEPCAST_ALONE)

# Rooms that read what users hand in and print answers: -Og compiles them a third faster than -O3,
# and no case of ./dev bench gate spends a twentieth of its instructions there.
set(STEPCAST_COLD "calibrate/(command|fit|import|report|rows|session)/|sim/(agent|chakra|command|compare|design|form|goal|handout|import|inputs|launch|output|pictures|processes|program|scenario|study|timeline|told|why)/|validate/(cluster|command|compare|diagnose|goodput|layers|published|rows|study|trace|trainer/ranks)/")
option(STEPCAST_COLD_OG "Compile rooms that read and print with -Og, whatever the build type" OFF)

# Rooms that no fuzzed reader enters.
set(STEPCAST_NO_READERS
  "calibrate/(command|device|fit|host|reference|report|session)/"
  "sim/(agent|command|form|goal|handout|page|pictures|resident|told|why)/"
  "sim/launch/(argument_text|bridge_(config|recipe)|deepspeed_config|fsdp_config|job|launch|megatron_arguments)[.]"
  "sim/launch/(megatron_model|nemo_config|torchtitan_config|torchtitan_python|trl_config)[.]"
  "sim/chakra/(export|node_order|rank_lanes|rank_trace|replay|replay_system|trace_folder)[.]"
  "sim/compare/(attribution|changes|compare|picture|runner|shapley|told)[.]"
  "sim/design/(bill|design|machine|odds|plan_finder|study)[.]"
  "sim/output/(answer_files|crash_note|folder|kept_steps|stored_study|study_run)[.]"
  "sim/timeline/(arrows|chrome_trace|counters|memory_counter|perfetto_trace|write_timelines)[.]"
  "validate/(cluster|command|compare|goodput|layers|published|rows|study)/"
  "validate/diagnose/(attribution|causes|clues|command|compute_causes|expected|faster|faults)[.]"
  "validate/diagnose/(host_causes|ledger|network_causes|network_tests|parts|recorded_traces)[.]"
  "validate/diagnose/(report|score|series)[.]"
  "validate/trainer/(device|model)/"
  "validate/trace/(command|inputs|intervals|measure|meetings|report|simulated|steps|timeline|verdict)[.]"
  "validate/trainer/run/(command|rank_report|results|run)[.]")
option(STEPCAST_READERS "Build what stepcast_replay needs and no more: no program can be linked" OFF)
if(STEPCAST_READERS)  # what is left out is at address 0: a reader that calls it ends there
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-Wl,--unresolved-symbols=ignore-all>)
endif()

# Links a program with the libraries compiled once more, by -O1 and with a checked standard library.
# Of sim only the rooms that predict are; of the others it takes the objects that all programs have.
function(compile_at_o1 program)
  set(objects "")
  foreach(target ${ARGN})
    get_target_property(sources ${target} SOURCES)
    set(predicting ${sources})
    if(target STREQUAL "stepcast_sim")
      list(FILTER predicting INCLUDE REGEX "sim[/_](kernels|network|run|tables)[/_]")
    endif()
    list(REMOVE_ITEM sources ${predicting})
    foreach(other ${sources})
      get_filename_component(name ${other} NAME)
      list(APPEND objects "$<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,/${name}[.]o$>")
    endforeach()
    add_library(${target}_o1 OBJECT EXCLUDE_FROM_ALL ${predicting})
    get_target_property(libraries ${target} LINK_LIBRARIES)
    target_link_libraries(${target}_o1 PRIVATE ${libraries})
    target_compile_options(${target}_o1 PRIVATE -O1 -D_GLIBCXX_ASSERTIONS -Wno-subobject-linkage)
    list(APPEND objects $<TARGET_OBJECTS:${target}_o1>)
    list(FILTER libraries EXCLUDE REGEX "stepcast::(engine|topology|workloads)")  # their objects
    target_link_libraries(${program} PRIVATE ${libraries})
  endforeach()
  target_sources(${program} PRIVATE ${objects})
endfunction()

# Sources made of #includes relative to the project: of two clones they are the same, and a compiler
# cache knows the one's from the other's (CMake's own unity builds name absolute paths).
function(compile_together target)
  get_target_property(all ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  if(STEPCAST_READERS)
    foreach(room ${STEPCAST_NO_READERS})
      list(FILTER all EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${room}")
    endforeach()
  endif()
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
    if(STEPCAST_COLD_OG AND NOT options AND path MATCHES "^(${STEPCAST_COLD})")
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
  set_source_files_properties(${cold} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS -Og)
  if(STEPCAST_UNITY)  # gcc takes what stands in an included file's unnamed namespace for a header's
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
