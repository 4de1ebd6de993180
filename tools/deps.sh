#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs the Debian 12 packages of the named groups that are missing. When nothing is missing it
# needs neither root nor the network.
#
#	tools/deps.sh [--check|--names] GROUP...
#
# With --check it installs nothing: it says what is missing, and ends with 1 if something is. With
# --names it prints the names of all packages of the groups.
set -euo pipefail
export LC_ALL=C

# The minimal forms: what is only recommended by another package is named here if it is needed.
declare -A groups=(
	[build]='gcc libc6-dev make clang bpftool libbpf-dev libxdp-dev libelf-dev libdw-dev zlib1g-dev liblzma-dev libbz2-dev
		libiberty-dev libmnl-dev libnftnl-dev libyaml-dev libjansson-dev libldns-dev libssl-dev nettle-dev libzstd-dev zstd libipt-dev
		libcurl4-openssl-dev'
	[test]='libcmocka-dev libclang-rt-dev llvm nginx-light libnginx-mod-stream redis-server redis-tools haproxy
		postgresql wrk iperf3
		bind9-dnsutils socat musl-tools golang-go default-jdk-headless python3 curl iproute2
		procps util-linux man-db jq libnetty-java nftables ethtool g++ binutils
		xz-utils linux-perf systemtap-sdt-dev liburing-dev nodejs luajit bash zsh fish cmake strace graphviz
		bpftrace gnutls-bin openssl babeltrace2 dbus-daemon etcd-server gdb libc++-dev libc++abi-dev
		golang-github-burntsushi-toml-dev python3-scapy'
	[vm]='qemu-system-x86 cpio kmod musl-tools xz-utils xdp-tools libxdp1 etcd-server redis-server redis-tools'
	[static]='dpkg-dev' # unpacks the source package that tools/build/libmnl.sh builds
	[lint]='clang-format clang-tidy shellcheck codespell'
	[debian13]='debootstrap'
	[arm64]='gcc-aarch64-linux-gnu qemu-user'
	[bench]='bpftrace bear strace linux-perf haproxy nftables iproute2 util-linux ethtool jq nodejs libxdp1' # the last has xdp-filter's objects
	[demo]='nginx-light curl python3 iproute2 procps'
)
# the standard library's tests are a package of each version
python=3.11
[ "$(. /etc/os-release && echo "${VERSION_ID:-}")" != 13 ] || python=3.13
groups[test]+=" libpython$python-testsuite"
# What would take over this machine's own names if it were installed (the package replaces
# /etc/resolv.conf) is unpacked into $AX_CACHE/unpacked/PACKAGE instead. Tests are skipped without it.
declare -A unpacked=([test]='systemd-resolved libsystemd-shared libnss-resolve resolvconf openresolv')
cache=${AX_CACHE:-/var/cache/ax}/unpacked
# Their services would start on this machine, now and at each boot.
services=(nginx redis-server haproxy postgresql etcd)
# where the archive is out of reach, that is to be said soon
apt_options=(-o DPkg::Lock::Timeout=120 -o Acquire::Retries=1 -o Acquire::http::Timeout=20
	-o Acquire::https::Timeout=20)
policy=/usr/sbin/policy-rc.d
policy_mark='# put here for a moment by tools/deps.sh of ax: no service starts while it installs'

die()
{
	echo "deps.sh: $*" >&2
	exit 1
}

# The packages of "$@" that are not installed, one a line.
missing()
{
	dpkg-query -W -f '${db:Status-Status} ${Package}\n' -- "$@" 2>/dev/null |
		awk -v want="$*" '
			$1 == "installed" { have[$2] = 1 }
			END {
				n = split(want, w, " ")
				for (i = 1; i <= n; i++)
					if (!(w[i] in have) && !seen[w[i]]++)
						print w[i]
			}'
}

# A policy-rc.d of our own is left by a run that was killed; only such a one is ever removed.
remove_policy()
{
	if [ -e "$policy" ] && grep -qxF "$policy_mark" "$policy"; then
		rm -f "$policy"
	fi
}

install_missing()
{
	local pkgs=("$@") s fresh=() reached=1

	for s in "${services[@]}"; do
		[ -e "/lib/systemd/system/$s.service" ] || [ -e "/etc/init.d/$s" ] || fresh+=("$s")
	done
	trap remove_policy EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" >"$policy.ax"
		chmod 755 "$policy.ax"
		mv "$policy.ax" "$policy"
	fi
	apt-get -q "${apt_options[@]}" -o APT::Update::Error-Mode=any update || {
		echo "deps.sh: apt-get update failed; trying with the package lists that are there" >&2
		reached=
	}
	apt-get -q -y "${apt_options[@]}" -o Dpkg::Use-Pty=0 \
		install --no-install-recommends -- "${pkgs[@]}" || {
		[ -n "$reached" ] || die "the archive is out of reach, and packages are missing: ${pkgs[*]}"
		die "apt-get could not install: ${pkgs[*]} (its message is above)"
	}
	for s in "${fresh[@]}"; do
		[ -e "/etc/init.d/$s" ] || [ -e "/lib/systemd/system/$s.service" ] || continue
		if [ -e "/etc/init.d/$s" ]; then
			update-rc.d "$s" disable # of systemd too
		else
			deb-systemd-helper disable "$s.service"
		fi ||
			echo "deps.sh: could not keep $s from starting at boot" >&2
	done
}

# Whatever of "$@" is not there yet.
unpack_missing()
{
	local p dir list=()

	for p; do
		[ -d "$cache/$p" ] || list+=("$p")
	done
	[ ${#list[@]} -gt 0 ] || return 0
	[ "$(id -u)" = 0 ] && mkdir -p "$cache" || return 1
	echo "deps.sh: unpacking ${list[*]}" >&2
	for p in "${list[@]}"; do
		dir=$(mktemp -d "$cache/.new.XXXXXX")
		(cd "$dir" && apt-get -q "${apt_options[@]}" -o APT::Sandbox::User=root download "$p" &&
			dpkg-deb -x ./*.deb root && chmod 755 root && mv -T root "$cache/$p") >&2 ||
			echo "deps.sh: $p cannot be had; tests that need it are skipped" >&2
		rm -rf "$dir"
	done
}

check='' names=''
case ${1:-} in
--check) check=1 && shift ;;
--names) names=1 && shift ;;
esac
[ $# -gt 0 ] || die "name the groups to install: ${!groups[*]}"
wanted=() wanted_unpacked=()
for g in "$@"; do
	[ -n "${groups[$g]:-}" ] || die "there is no group '$g'; groups: ${!groups[*]}"
	read -r -d '' -a list <<<"${groups[$g]}" || true
	wanted+=("${list[@]}")
	read -r -d '' -a list <<<"${unpacked[$g]:-}" || true
	wanted_unpacked+=("${list[@]}")
done
[ -z "$names" ] || { printf '%s\n' "${wanted[@]}" && exit 0; }

command -v dpkg-query >/dev/null ||
	die "this machine has no dpkg; install what these packages of Debian 12 hold: ${wanted[*]}"
mapfile -t need < <(missing "${wanted[@]}")
if [ ${#need[@]} = 0 ]; then
	[ -n "$check" ] || unpack_missing "${wanted_unpacked[@]}" || true
	exit 0
fi
[ -z "$check" ] || die "packages are missing, which 'make deps-${*: -1}' installs as root: ${need[*]}"
[ "$(id -u)" = 0 ] ||
	die "packages are missing; as root: apt-get install --no-install-recommends ${need[*]}"

# One run at a time: a second one waits, and then finds nothing missing any more.
exec 9>/run/lock/ax-deps.lock
flock 9
mapfile -t need < <(missing "${wanted[@]}")
if [ ${#need[@]} -gt 0 ]; then
	echo "deps.sh: installing ${need[*]}" >&2
	export DEBIAN_FRONTEND=noninteractive
	install_missing "${need[@]}" 9>&- >&2
fi
unpack_missing "${wanted_unpacked[@]}" || true
