#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds libmnl.a from Debian's source package: its libmnl-dev has only the shared library, and a
# static ax (make STATIC=1) needs the other.
#
#   tools/build/libmnl.sh CC AR ARCHIVE
set -euo pipefail
export LC_ALL=C

cc=${1:?} ar=${2:?} archive=$(realpath "${3:?}")
work=$archive.build
# shellcheck source=tools/build/apt.sh
. "$(dirname "$0")/apt.sh"

die()
{
	echo "libmnl.sh: $*" >&2
	exit 1
}

for tool in apt-get apt-cache dpkg-source; do
	command -v "$tool" >/dev/null ||
		die "there is no libmnl.a, and to build it $tool is missing; as root: tools/deps.sh static"
done
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
apt_apart "$work" deb-src "$(dpkg --print-architecture)" libmnl-dev || die "libmnl.a is missing"

cd "$work"
if ! { "${apt[@]}" update && "${apt[@]}" source libmnl; } >log 2>&1; then
	cat log >&2
	die "could not get the source of libmnl from Debian (apt's message is above);" \
		"if there is a libmnl.a elsewhere: make STATIC=1 LIBMNL_A=FILE"
fi
# What its configure would find out of a compiler of our days is one thing, which is given.
cd libmnl-*/
: >config.h
for file in socket callback nlmsg attr; do
	"$cc" -O2 -g -DHAVE_VISIBILITY_HIDDEN=1 -I. -Iinclude -c "src/$file.c" -o "$file.o" ||
		die "could not build libmnl's $file.c"
done
"$ar" qcs libmnl.a ./*.o
mv libmnl.a "$archive"
