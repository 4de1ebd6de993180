#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds libmnl.a from Debian's source package: its libmnl-dev has only the shared library, and a
# static ax (make STATIC=1) needs the other.
#
#   tools/build/libmnl.sh CC ARCHIVE
#
# Takes the source from where apt has libmnl-dev from, and leaves apt's own settings and lists alone.
set -euo pipefail
export LC_ALL=C

cc=${1:?} archive=$(realpath "${2:?}")
work=$archive.build

die()
{
	echo "libmnl.sh: $*" >&2
	exit 1
}

# 'deb-src' lines for every place that has the installed version: 'URI SUITE/COMPONENT' in apt's words.
sources()
{
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg signed=''

	[ ! -e "$keys" ] || signed="[signed-by=$keys] "
	apt-cache madison libmnl-dev | awk -F' *[|] *' -v signed="$signed" '{
		split($3, place, " ")
		split(place[2], suite, "/")
		print "deb-src " signed place[1], suite[1], suite[2]
	}' | sort -u
}

for tool in apt-get apt-cache dpkg-source; do
	command -v "$tool" >/dev/null ||
		die "there is no libmnl.a, and to build it $tool is missing; as root: tools/deps.sh static"
done
rm -rf "$work"
mkdir -p "$work/lists/partial"
trap 'rm -rf "$work"' EXIT
sources >"$work/sources.list"
[ -s "$work/sources.list" ] || die "apt knows no place that has libmnl-dev; is apt-get update possible?"

apt=(apt-get -q -o APT::Sandbox::User= -o Dir::Etc::SourceList="$work/sources.list"
	-o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists"
	-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
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
ar qcs libmnl.a ./*.o
mv libmnl.a "$archive"
