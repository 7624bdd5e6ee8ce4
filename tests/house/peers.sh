#!/bin/sh
# The comparisons of ./dev peers still compile where their simulators are installed: nothing else of
# the suite builds them.
set -eu
cd "$(dirname "$0")/../.."

for package in 'simgrid >= 3.32' 'ns3-internet >= 3.37'; do
  if ! pkg-config --exists "$package"; then
    echo "peers: not checked, pkg-config knows no $package (libsimgrid-dev, libns3-dev)"
    exit 77
  fi
done
for source in tests/peers/*.cpp; do
  standard=20
  case $source in */ns3_ring.cpp) standard=17 ;; esac  # see tests/peers/CMakeLists.txt
  # shellcheck disable=SC2046  # the flags are split into words on purpose
  "${CXX:-c++}" -std=c++$standard -fsyntax-only -I. -DPEER_VERSION='"any"' \
    $(pkg-config --cflags simgrid) "$source"
done
