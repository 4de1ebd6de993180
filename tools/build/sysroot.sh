#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Unpacks the libraries and headers of another architecture, for a cross compiler, without installing
# anything:
#
#   tools/build/sysroot.sh arm64 DIR
#
# They are what tools/deps.sh installs to build ax here, with all that they depend on.
set -euo pipefail
export LC_ALL=C

arch=${1:?} dir=$(realpath "${2:?}")
work=$dir.build
cd "$(dirname "$0")/../.."
# shellcheck source=tools/build/apt.sh
. tools/build/apt.sh

die()
{
	echo "sysroot.sh: $*" >&2
	exit 1
}

for tool in apt-get apt-cache dpkg; do
	command -v "$tool" >/dev/null ||
		die "$tool is missing; on other systems give make a folder with libraries for $arch: SYSROOT=DIR"
done
mapfile -t packages < <(tools/deps.sh --names build | grep -e '-dev$' | grep -vx libipt-dev) # amd64's only
rm -rf "$work"
mkdir -p "$work/root"
trap 'rm -rf "$work"' EXIT
apt_apart "$work" deb "$arch" "${packages[@]}" || die "there are no libraries for $arch"
if ! { "${apt[@]}" update && "${apt[@]}" -y --no-install-recommends --download-only \
	install "${packages[@]}"; } >"$work/log" 2>&1; then
	cat "$work/log" >&2
	die "could not get the libraries for $arch from Debian (apt's message is above)"
fi
for package in "$work"/archives/*.deb; do
	dpkg -x "$package" "$work/root"
done
rm -rf "$work/root/usr/share"
# They point at the root of the machine on which they would be installed.
find "$work/root" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
	ln -sfnr "$work/root$target" "$link"
done
rm -rf "$dir"
mv "$work/root" "$dir"
