# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034 # $apt is for who sources it
# For scripts that get packages of Debian without installing them: apt with lists of its own, so that
# the machine's settings and lists stay as they are. Sourced.

# apt_apart DIR TYPE ARCH PACKAGE...: makes $apt, a command whose lists are below DIR, of the places
# from which this machine has the packages, for TYPE (deb or deb-src) and Debian's name ARCH.
apt_apart()
{
	local dir=$1 type=$2 arch=$3 keys=/usr/share/keyrings/debian-archive-keyring.gpg options=''

	shift 3
	[ ! -e "$keys" ] || options=" signed-by=$keys"
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	: >"$dir/status"
	apt-cache madison "$@" | awk -F' *[|] *' -v first="$type [arch=$arch$options]" '{
		split($3, place, " ")
		split(place[2], suite, "/")
		print first, place[1], suite[1], suite[2]
	}' | sort -u >"$dir/sources.list"
	[ -s "$dir/sources.list" ] || {
		echo "apt knows no place that has $*; is apt-get update possible?" >&2
		return 1
	}
	apt=(apt-get -q -o APT::Sandbox::User= -o APT::Architecture="$arch" -o APT::Architectures="$arch"
		-o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o Dir::State::Lists="$dir/lists" -o Dir::State::status="$dir/status"
		-o Dir::Cache::archives="$dir/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
}
