# Run by cpack over the files of a package before it packs them. Into the archive, not into the Debian
# package, it copies each library that a program of it loads, with the library's licence: into
# lib/stepcast, where the programs' RPATH looks first. Left to the machine are the C and C++ run time
# and what belongs to a cluster: MPI, NCCL, the GPU's driver.
if(NOT CPACK_GENERATOR STREQUAL "TGZ")
  return()
endif()
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
file(GLOB programs ${root}/bin/*)
file(GLOB modules ${root}/lib*/stepcast/*.so)
set(of_the_machine "^(ld-linux.*|libc|libm|libdl|librt|libpthread|libstdc\\+\\+|libgcc_s"
  "|libresolv|libmpi.*|libopen-(rte|pal)|libnccl|libcuda)\\.so")
list(JOIN of_the_machine "" of_the_machine)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} MODULES ${modules}
  RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "${of_the_machine}" "^libstepcast"
  POST_EXCLUDE_REGEXES "^${root}")
if(missing)
  message(FATAL_ERROR "libraries that this machine lacks: ${missing}")
endif()

file(MAKE_DIRECTORY ${root}/share/doc/stepcast/libraries)
list(GET modules 0 any)
cmake_path(GET any PARENT_PATH target)
foreach(library IN LISTS found)
  cmake_path(GET library FILENAME name)
  file(REAL_PATH ${library} real)
  file(COPY_FILE ${real} ${target}/${name})
  execute_process(COMMAND dpkg-query -S ${real} OUTPUT_VARIABLE owner ERROR_QUIET)
  string(REGEX REPLACE ":.*" "" owner "${owner}")
  if(owner AND EXISTS /usr/share/doc/${owner}/copyright)
    file(COPY_FILE /usr/share/doc/${owner}/copyright
      ${root}/share/doc/stepcast/libraries/${name}.copyright)
  endif()
endforeach()
