#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: tools/build/debian13.sh [COMMAND]      (make check-debian13)
#
# Runs a command on this tree in a root directory with Debian 13: another compiler, and other
# libraries, under the kernel that is here. The default builds ax and runs the tests that run after
# each change, the demo, those about programs that are others here (what sys/sdt.h makes, Node.js), and on
# Linux 6.1 what users do first and every kind of list: its verifier is the strictest of those that ax
# runs on, and this compiler makes other programs than Debian 12's (not with QUICK=1). The root is kept in $AX_CACHE
# (/var/cache/ax), what it builds in it beside; nothing of it gets into the tree. Prints "debian13:
# skipped: REASON" where the archive is out of reach.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${AX_CACHE:-/var/cache/ax}/debian-13
root=$cache/root
# (of check-quick's groups, those that are named below)
default="make deps-test check-quick && make demo &&
	ONLY='net/trace_@(usdt|node)' make check-net"
[ -n "${QUICK:-}" ] || default+=" && make deps-vm &&
	VM_KERNELS=6.1 VM_PARTS='xdp_lists @(dataplane|xdp_state)' make check-vm"
command=${1:-$default}

die()
{
	echo "debian13: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || die "it makes a root directory and mounts: run it as root"
command -v debootstrap >/dev/null || die "debootstrap is missing: 'make deps-debian13' installs it"
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

# Whole, or not there: what an interrupted run left is begun anew.
make_root()
{
	local new=$cache/new

	[ ! -e "$new" ] || rm -rf --one-file-system "$new"
	if ! debootstrap --variant=minbase --include=make,ca-certificates trixie "$new" >"$cache/debootstrap.log" 2>&1; then
		if grep -qE 'Failed getting release|Couldn.t download|Unable to|resolve' "$cache/debootstrap.log"; then
			echo "debian13: skipped: Debian's archive is out of reach"
			exit 0
		fi
		die "debootstrap failed: see $cache/debootstrap.log"
	fi
	# What it has can be made anew: nothing is to wait for the disk.
	echo force-unsafe-io >"$new/etc/dpkg/dpkg.cfg.d/unsafe-io"
	mkdir -p "$new/src" "$cache/output"
	mv "$new" "$root"
}
[ -d "$root/src" ] || make_root

# The tree is a copy, since tests look for files that a run leaves in it; and files keep the time of
# their last change, so that make knows what to build.
tree=$cache/tree
mkdir -p "$tree" "$cache/output"
git ls-files -z | while IFS= read -r -d '' file; do
	[ ! -e "$file" ] || printf '%s\0' "$file"
done >"$cache/files"
copied=$(mktemp -d "$cache/copy.XXXXXX")
chmod 755 "$copied" # as a clone has it
trap 'rm -rf --one-file-system "$copied"' EXIT
tar -c --null -T "$cache/files" | tar -x -C "$copied"
# What is the same stays, with its time; what is not was changed now: the copy may have been of a younger tree.
(cd "$copied" && find . -type f -print0) | while IFS= read -r -d '' file; do
	if cmp -s "$copied/$file" "$tree/$file"; then
		touch -r "$tree/$file" "$copied/$file"
	else
		touch "$copied/$file"
	fi
done
rm -rf --one-file-system "$tree"
mv "$copied" "$tree"

# In a mount namespace of its own: all of this is gone with the command.
export root tree cache command
unshare -m --propagation private bash -euc '
	mount --bind "$root" "$root"
	mount --bind "$tree" "$root/src"
	mkdir -p "$root/src/.output"
	mount --bind "$cache/output" "$root/src/.output"
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/run"
	mkdir -p "$root/run/lock"
	cat /etc/resolv.conf >"$root/etc/resolv.conf"
	# (In a chroot nobody could make a user namespace.)
	cd "$root"
	pivot_root . .
	umount -l .
	exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
		CI="${CI:-}" QUICK_GROUPS="unit prog net" bash -c "cd /src && git config --global --add safe.directory /src 2>/dev/null; $command"
' </dev/null
