# What the programs and tests of this build are made of, as SPDX 2.3 beside them and installed with
# them: build/X/stepcast.spdx.json. tests/house/dependencies.sh holds it against what is linked.

# A library that was found, with its licence; the comment says which shared objects it is, or that
# only its headers are read.
function(dependency name version licence how)
  if(NOT version)
    return()
  endif()
  string(MAKE_C_IDENTIFIER ${name} id)
  string(REPLACE _ - id ${id})
  string(APPEND packages ",
    {\"SPDXID\": \"SPDXRef-${id}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\",
     \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false,
     \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${licence}\",
     \"copyrightText\": \"NOASSERTION\", \"comment\": \"${how}\"}")
  set(packages "${packages}" PARENT_SCOPE)
  set(kind DEPENDENCY_OF)
  if(how MATCHES "^tests")
    set(kind TEST_DEPENDENCY_OF)
  endif()
  string(APPEND relations ",
    {\"spdxElementId\": \"SPDXRef-${id}\", \"relationshipType\": \"${kind}\",
     \"relatedSpdxElement\": \"SPDXRef-stepcast\"}")
  set(relations "${relations}" PARENT_SCOPE)
endfunction()

# Found by the folders in scopes of their own, or with a header alone that tells its version.
foreach(package simdjson SQLite3 pugixml nlohmann_json Catch2)
  find_package(${package} QUIET)
endforeach()
function(version_in header pattern out)  # of "#define NAME 1" lines, joined by dots
  set(version "")
  if(header AND EXISTS ${header})
    file(STRINGS ${header} lines REGEX "^#[ ]*define[ ]+(${pattern})[ ]+[0-9]+")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE ".*[ ]([0-9]+).*" "\\1" number "${line}")
      list(APPEND version ${number})
    endforeach()
    list(JOIN version . version)
  endif()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()
version_in("${NCCL_INCLUDE}/nccl.h" "NCCL_(MAJOR|MINOR|PATCH)" nccl_version)
version_in("${PYBIND11_INCLUDE}/pybind11/detail/common.h" "PYBIND11_VERSION_(MAJOR|MINOR)"
  pybind11_version)
if(STEPCAST_HAS_MPI)
  find_path(MPI_HEADER mpi.h PATHS ${MPI_CXX_INCLUDE_DIRS})
  version_in("${MPI_HEADER}/mpi.h" "OMPI_(MAJOR|MINOR|RELEASE)_VERSION" mpi_version)
  if(NOT mpi_version)
    set(mpi_version "of the standard ${MPI_CXX_VERSION}")
  endif()
endif()
if(NOT STEPCAST_HAS_CUDA)
  set(CUDAToolkit_VERSION "")
  set(nccl_version "")
endif()

dependency(Boost "${Boost_VERSION_STRING}" BSL-1.0 "libboost_program_options")
dependency(HDF5 "${HDF5_VERSION}" NOASSERTION "libhdf5; its own BSD-style licence")
dependency(zlib "${ZLIB_VERSION_STRING}" Zlib "libz")
dependency(fmt "${fmt_VERSION}" MIT "libfmt")
dependency(tomlplusplus "${TOMLPLUSPLUS_VERSION}" MIT "libtomlplusplus")
dependency(yaml-cpp "${yaml-cpp_VERSION}" MIT "libyaml-cpp")
dependency(nlohmann-json "${nlohmann_json_VERSION}" MIT "headers")
dependency(NLopt "${NLOPT_VERSION}" "MIT AND LGPL-2.1-or-later" "libnlopt")
dependency(pugixml "${pugixml_VERSION}" MIT "libpugixml")
dependency(simdjson "${simdjson_VERSION}" Apache-2.0 "libsimdjson")
dependency(SQLite "${SQLite3_VERSION}" blessing "libsqlite3")
dependency(OpenBLAS NOASSERTION BSD-3-Clause "libopenblas, loaded where it is installed")
dependency(MPI "${mpi_version}" NOASSERTION "libmpi libmpi_cxx; Open MPI: BSD-3-Clause-Open-MPI")
dependency(CUDA "${CUDAToolkit_VERSION}" NOASSERTION "libcublasLt libcudart libcuda; NVIDIA's EULA")
dependency(NCCL "${nccl_version}" BSD-3-Clause "libnccl")
if(TARGET stepcast_python)
  dependency(pybind11 "${pybind11_version}" BSD-3-Clause "headers")
endif()
if(BUILD_TESTING)
  dependency(Catch2 "${Catch2_VERSION}" BSL-1.0 "tests, headers")
  dependency(RapidCheck NOASSERTION BSD-2-Clause "tests, librapidcheck")
endif()
if(benchmark_FOUND)
  dependency(benchmark "${benchmark_VERSION}" Apache-2.0 "tests, libbenchmark")
endif()

# Reproducible: no time of the build unless SOURCE_DATE_EPOCH says one.
string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC)
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  set(created 1970-01-01T00:00:00Z)
endif()
string(MD5 id "${packages}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/stepcast.spdx.json CONTENT [=[
{"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
 "name": "stepcast-@PROJECT_VERSION@",
 "documentNamespace": "https://spdx.invalid/stepcast-@PROJECT_VERSION@-@id@",
 "creationInfo": {"created": "@created@", "creators": ["Tool: cmake-@CMAKE_VERSION@"]},
 "packages": [
    {"SPDXID": "SPDXRef-stepcast", "name": "stepcast", "versionInfo": "@PROJECT_VERSION@",
     "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
     "licenseConcluded": "NOASSERTION", "licenseDeclared": "Apache-2.0",
     "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION"}@packages@],
 "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
     "relatedSpdxElement": "SPDXRef-stepcast"}@relations@]}
]=] @ONLY)
