#!/bin/sh
# What cpack makes of the preset `package`: a Debian package and an archive. Their contents are looked
# at, and where debootstrap, root and a network are at hand the package is installed in a bare Debian
# 12 and the archive unpacked in bare Debian 12 and 13, where both run a study.
#   package.sh BUILD [BARE_12 BARE_13]    folders that debootstrap made, to do without its minutes
# Ends with 77 and the reason where nothing could be tried.
set -eu
build=$(cd "$1" && pwd)
given_12=${2-}
given_13=${3-}
most_mb=30

fail() {
  echo "package: $1" >&2
  exit 1
}

rm -f "$build"/stepcast_*.deb "$build"/stepcast-*.tar.gz
(cd "$build" && cpack >cpack.log) || { cat "$build/cpack.log"; exit 1; }
package=$(echo "$build"/stepcast_*.deb)
archive=$(echo "$build"/stepcast-*.tar.gz)
dpkg-deb --contents "$package" >"$build/package.contents"
tar -tzf "$archive" >"$build/archive.contents"
for file in bin/stepcast bin/stepcast-calibrate bin/stepcast-validate bin/stepcast-trainer \
  lib/stepcast/libstepcast.so lib/stepcast/stepcast_hdf5.so share/stepcast/published.h5 \
  share/stepcast/published.columns share/stepcast/scenarios/weak_scaling.toml \
  share/man/man1/stepcast-calibrate.1 share/bash-completion/completions/stepcast \
  lib/python3/dist-packages/stepcast/__init__.py share/doc/stepcast/docs/search.md; do
  grep -q " \./usr/$file\$" "$build/package.contents" || fail "$package lacks $file"
  grep -q "^[^/]*/$file\$" "$build/archive.contents" || fail "$archive lacks $file"
done
for library in libfmt libhdf5_serial libboost_program_options; do
  grep -q "/lib/stepcast/$library\.so" "$build/archive.contents" || fail "$archive lacks $library"
done
! grep -q '/libfmt' "$build/package.contents" || fail "$package carries what Debian has"
for file in "$package" "$archive"; do
  bytes=$(wc -c <"$file")
  echo "$file: $((bytes / 1000000)) MB"
  [ "$bytes" -lt $((most_mb * 1000000)) ] || fail "$file has more than $most_mb MB"
done
echo "needs $(dpkg-deb -f "$package" Depends)"

if [ "$(id -u)" -ne 0 ]; then
  echo "package: not tried in a bare Debian: needs root"
  exit 77
fi

# bare RELEASE GIVEN_FOLDER: $root is a bare Debian of that release with /proc; 1 if there is none.
mounted=
made=
clean() {
  for folder in $mounted; do umount "$folder/proc"; done
  # shellcheck disable=SC2086  # folders of mktemp
  [ -z "$made" ] || rm -rf $made
}
trap clean EXIT
bare() {
  root=$2
  if [ -z "$root" ]; then
    command -v debootstrap >/dev/null 2>&1 ||
      { echo "package: not tried in a bare $1: no debootstrap"; return 1; }
    root=$(mktemp -d)
    made="$made $root"
    debootstrap --variant=minbase "$1" "$root" >"$build/debootstrap.log" 2>&1 ||
      { echo "package: not tried in a bare $1: see $build/debootstrap.log"; return 1; }
  fi
  mount -t proc proc "$root/proc" || { echo "package: not tried in $root: no mount"; return 1; }
  mounted="$mounted $root"
}
# inside COMMANDS: run in the bare Debian.
inside() {
  chroot "$root" sh -ec "$1" >"$build/bare.log" 2>&1 || { tail -n 20 "$build/bare.log"; exit 1; }
}
# What both are asked for: a study, the sister program, HDF5 written and read.
asks='cd /tmp && "$bin/stepcast" run "$share/scenarios/weak_scaling.toml" --quiet >ran
  grep -q 2,048 ran
  "$bin/stepcast" sweep "$share/scenarios/weak_scaling.toml" --quiet --out "kept$$" >swept
  [ -s "kept$$/results.h5" ]
  "$bin/stepcast" validate layers >layers
  "$bin/stepcast" calibrate show "$share/published.h5" >shown && grep -q gemm shown'

tried=0
if bare bookworm "$given_12"; then
  mkdir "$root/srv/stepcast" && tar -C "$root/srv/stepcast" -xzf "$archive" --strip-components 1
  inside "bin=/srv/stepcast/bin share=/srv/stepcast/share/stepcast; $asks"
  rm -r "$root/srv/stepcast"
  echo "unpacked in a bare Debian 12, the study runs there"
  cp "$package" "$root/stepcast.deb"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  inside "apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ./stepcast.deb
    bin=/usr/bin share=/usr/share/stepcast; $asks"
  echo "installed in a bare Debian 12, the study runs there"
  tried=$((tried + 1))
fi
if bare trixie "$given_13"; then
  mkdir "$root/srv/stepcast" && tar -C "$root/srv/stepcast" -xzf "$archive" --strip-components 1
  inside "bin=/srv/stepcast/bin share=/srv/stepcast/share/stepcast; $asks"
  rm -r "$root/srv/stepcast"
  echo "unpacked in a bare Debian 13, the study runs there"
  tried=$((tried + 1))
fi
[ "$tried" -gt 0 ] || exit 77
