#!/bin/sh
# The Debian package of a release build: made by cpack, its contents looked at, and, where debootstrap
# and root are at hand, installed in a bare Debian 12 in which it runs the study.
#   package.sh RELEASE_BUILD [BARE_DEBIAN]    a folder that debootstrap made, to do without its minutes
# Ends with 77 and the reason where the second half cannot be done.
set -eu
build=$(cd "$1" && pwd)
bare=${2-}
given=$bare

(cd "$build" && cpack -G DEB >cpack.log) || { cat "$build/cpack.log"; exit 1; }
package=$(ls -t "$build"/stepcast_*.deb | head -n 1)
dpkg-deb --contents "$package" >"$build/package.contents"
for file in bin/stepcast bin/stepcast-calibrate bin/stepcast-validate bin/stepcast-trainer \
  lib/stepcast/libstepcast.so lib/stepcast/stepcast_hdf5.so share/stepcast/published.h5 share/stepcast/published.columns \
  share/stepcast/scenarios/weak_scaling.toml share/man/man1/stepcast-calibrate.1 \
  share/bash-completion/completions/stepcast lib/python3/dist-packages/stepcast/__init__.py; do
  grep -q " \./usr/$file\$" "$build/package.contents" || { echo "$package lacks $file"; exit 1; }
done
echo "$package: $(dpkg-deb -f "$package" Version), needs $(dpkg-deb -f "$package" Depends)"

if [ "$(id -u)" -ne 0 ] || { [ -z "$bare" ] && ! command -v debootstrap >/dev/null 2>&1; }; then
  echo "package: not tried in a bare Debian 12: needs root and debootstrap"
  exit 77
fi
if [ -z "$bare" ]; then
  bare=$(mktemp -d)
  trap 'rm -rf "$bare"' EXIT
  debootstrap --variant=minbase bookworm "$bare" >"$build/debootstrap.log" ||
    { echo "package: debootstrap failed, see $build/debootstrap.log"; exit 77; }
fi
mount -t proc proc "$bare/proc" || { echo "package: cannot mount proc in it"; exit 77; }
trap 'umount "$bare/proc"; [ -n "$given" ] || rm -rf "$bare"' EXIT
cp "$package" "$bare/stepcast.deb"
cp /etc/resolv.conf "$bare/etc/resolv.conf"
chroot "$bare" sh -ec 'apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ./stepcast.deb
  cd / && stepcast run /usr/share/stepcast/scenarios/weak_scaling.toml --quiet' >"$build/bare.log" 2>&1 ||
  { tail -n 20 "$build/bare.log"; exit 1; }
grep -q "2,048" "$build/bare.log"
echo "installed in a bare Debian 12, the study runs there"
