#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax in a root directory that is no mount point (a plain chroot), and where little is mounted.
. "$(dirname "$0")/lib.sh"

# The root lies in this test's own tmpfs, so nothing has to be deleted: it goes with the namespace.
ROOT=/run/plain

# put PROGRAM AS...: a copy, and of the libraries that it needs
put() {
	local library
	cp "$1" "$ROOT/bin/$2"
	for library in $(ldd "$1" | grep -o '/[^ ]*'); do
		mkdir -p "$ROOT${library%/*}"
		cp -n "$library" "$ROOT$library"
	done
}
mkdir -p "$ROOT"/{bin,etc,proc,sys,run,tmp,dev,cgroup}
put "$AX" ax
for program in sh cat ls grep sleep mount umount; do
	put "$(readlink -f "$(command -v $program)")" $program
done
cp "$T/resolv.conf" "$T/nsswitch.conf" "$ROOT/etc/"
printf 'root:x:0:0:root:/:/bin/sh\n' >"$ROOT/etc/passwd"
printf 'root:x:0:\n' >"$ROOT/etc/group"
default_config >"$ROOT/etc/ax.yaml"
mknod -m 666 "$ROOT/dev/null" c 1 3

plain() {
	timeout --foreground -k 1 30 chroot "$ROOT" /bin/"$@"
}
plain_ax() {
	local command=$1
	shift
	plain ax --instance "$INST" "$command" "$@"
}

# nothing but what the root needs to be one
mount -t proc proc "$ROOT/proc"
mount -t sysfs sysfs "$ROOT/sys"
mount -t bpf bpf "$ROOT/sys/fs/bpf"
mount -t cgroup2 cgroup2 "$ROOT/cgroup"
# as the mounts of most machines are: what is mounted in one namespace comes to others
mount --make-rshared /

bg "$T/agent.log" chroot "$ROOT" /bin/ax --instance "$INST" agent --config /etc/ax.yaml
agent=$BG
wait_for "plain_ax status" || diag "$(cat "$T/agent.log")"
mounts=$(cat /proc/self/mountinfo)
is "a private app's names come from the agent in a plain chroot, too" \
	"$(plain_ax run -- cat /etc/resolv.conf 2>&1 | grep -c '^nameserver 10\.77\.')" 1
is "it sees its own network devices in /sys" \
	"$(plain_ax run -- ls /sys/class/net 2>&1 | tr '\n' ' ')" "eth0 lo "
is "and is in its root directory" "$(plain_ax run -- ls / | tr '\n' ' ')" "$(plain ls / | tr '\n' ' ')"
is "nothing of that comes to the machine's mounts" "$(cat /proc/self/mountinfo)" "$mounts"
end "$agent"
ok "ax agent --flush in it" plain_ax agent --flush
umount "$ROOT/cgroup" "$ROOT/sys/fs/bpf" "$ROOT/sys" "$ROOT/proc"
done_testing
