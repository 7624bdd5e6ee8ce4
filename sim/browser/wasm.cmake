# The preset wasm: engine, topology, workloads and sim as one WebAssembly module, which a page or
# node runs through sim/browser/host.js. Programs, tests and what needs processes are not built.

# What the folders link: headers and libraries of the toolchain's own folder.
function(from_sysroot name)
  cmake_parse_arguments(PARSE_ARGV 1 of "" "" "LIBRARIES;DEFINITIONS")
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(${name} INTERFACE ${of_LIBRARIES})
  target_compile_definitions(${name} INTERFACE ${of_DEFINITIONS})
endfunction()
from_sysroot(fmt::fmt DEFINITIONS FMT_HEADER_ONLY)
from_sysroot(Boost::headers)
from_sysroot(Boost::program_options LIBRARIES -lboost_program_options)
from_sysroot(PkgConfig::TOMLPLUSPLUS DEFINITIONS TOML_HEADER_ONLY=1)
from_sysroot(yaml-cpp LIBRARIES -lyaml-cpp)
from_sysroot(ZLIB::ZLIB LIBRARIES -lz)

# What WASI's C library lacks; Boost 1.74 derives from what C++17 removed.
target_compile_options(stepcast_options INTERFACE -fexperimental-library
  -Wno-shadow -Wno-error=shorten-64-to-32
  -include ${PROJECT_SOURCE_DIR}/sim/browser/missing.hpp)
target_compile_definitions(stepcast_options INTERFACE
  _LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION)

include(unity.cmake)
foreach(folder engine topology workloads)
  add_subdirectory(${folder})
endforeach()
add_library(stepcast_sim OBJECT)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS sim/*.cpp)
list(FILTER sources EXCLUDE REGEX "main\\.cpp$|/hdf5_[^/]*$|/sim/(python|processes)/|/agent/server")
target_sources(stepcast_sim PRIVATE ${sources})
target_link_libraries(stepcast_sim PUBLIC stepcast::options stepcast::topology stepcast::workloads
  fmt::fmt PRIVATE Boost::program_options PkgConfig::TOMLPLUSPLUS yaml-cpp ZLIB::ZLIB)
set_source_files_properties(sim/program/installation.cpp PROPERTIES COMPILE_DEFINITIONS
  "STEPCAST_DATA_DIRECTORY=\"/stepcast/scenarios\";STEPCAST_LIBRARY_DIRECTORY=\"lib\"")
set_source_files_properties(sim/program/command_line.cpp sim/form/form.cpp PROPERTIES
  COMPILE_DEFINITIONS STEPCAST_VERSION="${PROJECT_VERSION}")
foreach(folder engine topology workloads sim)
  compile_together(stepcast_${folder})
endforeach()

# Offsets of iterators have 32 bits here: an unsigned one of 32 bits changes its sign.
get_target_property(sources stepcast_engine SOURCES)
set_source_files_properties(${sources} TARGET_DIRECTORY stepcast_engine PROPERTIES
  COMPILE_OPTIONS -Wno-sign-conversion)

# A module that is asked again and again (WASI's reactor), with the compiler's own functions where
# Debian puts them.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-resource-dir OUTPUT_VARIABLE resources
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
function(wasm_module name)
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:stepcast_engine>
    $<TARGET_OBJECTS:stepcast_topology> $<TARGET_OBJECTS:stepcast_workloads>
    $<TARGET_OBJECTS:stepcast_sim>)
  set_target_properties(${name} PROPERTIES SUFFIX .wasm LINKER_LANGUAGE CXX)
  target_link_options(${name} PRIVATE -mexec-model=reactor -nodefaultlibs
    -Wl,-z,stack-size=8388608,--strip-all)
  target_link_libraries(${name} PRIVATE stepcast::options fmt::fmt Boost::program_options yaml-cpp
    ZLIB::ZLIB -lc++ -lc++experimental -lc++abi -lunwind -lwasi-emulated-signal
    -lwasi-emulated-process-clocks -lwasi-emulated-getpid -lwasi-emulated-mman -lc
    ${resources}/lib/wasi/libclang_rt.builtins-wasm32.a)
endfunction()
add_executable(stepcast_wasm sim/main.cpp)
set_target_properties(stepcast_wasm PROPERTIES OUTPUT_NAME stepcast)
wasm_module(stepcast_wasm)

# The tests of engine, topology and workloads, which tests/browser/units.sh runs in node. RapidCheck,
# which draws for a few of them, is native alone.
if(EXISTS /usr/include/catch2/catch.hpp)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
  file(CREATE_LINK /usr/include/catch2 ${CMAKE_BINARY_DIR}/include/catch2 SYMBOLIC)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS tests/engine/*_test.cpp tests/topology/*_test.cpp
    tests/workloads/*_test.cpp)
  list(FILTER tests EXCLUDE REGEX "/(readme|caching_allocator|replay)_test[.]cpp$")
  add_executable(test_wasm EXCLUDE_FROM_ALL tests/main.cpp ${tests})
  target_include_directories(test_wasm SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/include)
  target_compile_definitions(test_wasm PRIVATE CATCH_CONFIG_NO_POSIX_SIGNALS
    STEPCAST_SOURCE_DIR="")
  target_compile_options(test_wasm PRIVATE -O1 -Wno-sign-conversion)
  wasm_module(test_wasm)
endif()
