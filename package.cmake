# What ./dev package makes of a release build: a Debian package, which names the libraries that it
# needs, and an archive that runs where it is unpacked and carries them (carried.cmake).
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT "the stepcast developers <stepcast@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "forecasts one step of distributed LLM training on a cluster")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libopenblas0)  # loaded by what measures or trains on the host
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, python3-pandas, python3-xarray, python3-h5py")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGE_FILE_NAME stepcast-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/carried.cmake)
include(CPack)
