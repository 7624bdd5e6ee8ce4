# Fails when a file includes a folder above its own, a room that stands after its own, or a header of
# ours without its folder:
#   cmake -DSOURCE_DIR=. -P tests/layering.cmake
# topology and workloads stand side by side: neither knows the other.
cmake_minimum_required(VERSION 3.25)
get_filename_component(SOURCE_DIR ${SOURCE_DIR} ABSOLUTE)
set(below_engine "")
set(below_topology engine)
set(below_workloads engine)
set(below_sim engine topology workloads)
set(below_calibrate engine topology workloads sim)
set(below_validate engine topology workloads sim calibrate)
set(folders engine topology workloads sim calibrate validate)

# The rooms of a folder, in order: each includes itself and those before it. What lies in the folder
# itself (main.cpp) comes last and may include all of them.
set(rooms_engine path)
set(rooms_workloads plan pieces step memory)
set(rooms_sim files form pictures processes program tables network import network/search network/links network/exchange
  network/nccl network/stepped network/host scenario goal goodput scripts launch inputs kernels run why confidence search study
  design told timeline chakra output compare handout agent command page resident python browser)
set(rooms_calibrate rows device import report fit host kernels reference cuda session command)
set(rooms_validate trainer/ranks trainer/device trainer/model trainer/run compare study command rows published
  layers goodput memory cluster trace/records trace pasted diagnose)

set(num_files 0)
set(broken "")
foreach(folder ${folders})
  set(rooms ${rooms_${folder}})
  file(GLOB_RECURSE files RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${folder}/*.hpp
    ${SOURCE_DIR}/${folder}/*.cpp ${SOURCE_DIR}/${folder}/*.cu ${SOURCE_DIR}/${folder}/*.cuh)
  foreach(file ${files})
    math(EXPR num_files "${num_files} + 1")
    get_filename_component(room ${file} DIRECTORY)
    list(LENGTH rooms place)
    if(NOT room STREQUAL folder)
      string(REGEX REPLACE "^${folder}/" "" room ${room})
      list(FIND rooms ${room} place)
      if(place EQUAL -1)
        string(APPEND broken "${file}: room ${room} has no place in tests/layering.cmake\n")
      endif()
    endif()
    # Lines as a list: brackets, semicolons and backslashes would upset CMake's list syntax.
    file(READ ${SOURCE_DIR}/${file} text)
    string(REPLACE "\\" " " text "${text}")
    string(REGEX REPLACE "[][;]" " " text "${text}")
    string(REPLACE "\n" ";" lines "${text}")
    set(line_number 0)
    foreach(line IN LISTS lines)
      math(EXPR line_number "${line_number} + 1")
      if(line MATCHES "^[ \t]*#[ \t]*include[ \t]*[<\"](([a-z_]+)/)?([^>\"]+)(.)")
        set(target "${CMAKE_MATCH_2}")
        set(header "${CMAKE_MATCH_1}${CMAKE_MATCH_3}")
        set(inside "${CMAKE_MATCH_3}")
        set(quote "${CMAKE_MATCH_4}")
        if(target STREQUAL folder)
          get_filename_component(target_room "${inside}" DIRECTORY)
          if(target_room)
            list(FIND rooms ${target_room} target_place)
            if(target_place GREATER place)
              string(APPEND broken "${file}:${line_number}: room ${room} includes ${header}, "
                "whose room stands after it\n")
            endif()
          endif()
        elseif(target IN_LIST folders)
          if(NOT target IN_LIST below_${folder})
            string(APPEND broken "${file}:${line_number}: ${folder} includes ${header}, "
              "which is not below it\n")
          endif()
        elseif(quote STREQUAL "\"")
          string(APPEND broken "${file}:${line_number}: includes \"${header}\", "
            "write \"folder/file.hpp\" for ours and <...> for others\n")
        endif()
      endif()
    endforeach()
  endforeach()
endforeach()

if(num_files EQUAL 0)
  message(FATAL_ERROR "layering: no source file under ${SOURCE_DIR}")
elseif(broken)
  message(NOTICE "${broken}")
  message(FATAL_ERROR "layering is broken")
endif()
message("layering: ${num_files} files include only their own room and those before and below")
