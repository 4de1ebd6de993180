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
	local program=$1
	shift
	timeout --foreground -k 1 30 chroot "$ROOT" "/bin/$program" "$@"
}
plain_ax() {
	local command=$1
	shift
	plain ax --instance "$INST" "$command" "$@"
}

# bare NAME FILESYSTEM COMMAND...: it fails with one sentence, about that, and leaves nothing
bare() {
	local name=$1 what=$2 mounts
	mounts=$(cat /proc/self/mountinfo)
	shift 2
	like "$name" "$(plain ax --instance "$INST" "$@" 2>&1)" "^[^
]*/$what is not mounted: mount -t [^
]*$"
	is "$name, and leaves nothing" \
		"$(diff <(echo "$mounts") /proc/self/mountinfo; find "$ROOT/run" -mindepth 1 -maxdepth 2)" ""
}
for command in doctor "agent --config /etc/ax.yaml" "agent --flush"; do
	# shellcheck disable=SC2086
	bare "without /proc: ax $command says that" proc $command
done
mount -t proc proc "$ROOT/proc"
for command in doctor "agent --config /etc/ax.yaml" "agent --flush"; do
	# shellcheck disable=SC2086
	bare "without /sys: ax $command says that" sys $command
done
# what the programs need of it, and no place for a bpf filesystem: the agent fails late
mkdir -p "$ROOT/sys/kernel/btf"
cp /sys/kernel/btf/vmlinux "$ROOT/sys/kernel/btf/"
mounts=$(cat /proc/self/mountinfo)
like "an agent that fails later says why" \
	"$(plain ax --instance "$INST" agent --config /etc/ax.yaml 2>&1)" "mounting one on /sys/fs/bpf failed"
is "and leaves no mount and no cgroup, either" \
	"$(diff <(echo "$mounts") /proc/self/mountinfo; find "$CGROUP2/$INST" 2>&1 | grep -v 'No such file')" ""
mount -t sysfs sysfs "$ROOT/sys"

# what ax can mount itself it does, and takes away again
bg "$T/agent.log" chroot "$ROOT" /bin/ax --instance "$INST" agent --config /etc/ax.yaml
agent=$BG
wait_for "plain_ax status" || diag "$(cat "$T/agent.log")"
is "without a cgroup2 mount ax has one of its own" \
	"$(plain_ax run -- cat /proc/self/mounts | grep -c '/run/ax/cgroup2 cgroup2')" 1
end "$agent"
ok "ax agent --flush" plain_ax agent --flush
is "and takes that away" "$(plain cat /proc/self/mounts | grep cgroup2; ls -A "$ROOT/run/ax")" ""
umount "$ROOT/sys/fs/bpf"

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
is "nothing of that comes to the machine's mounts" "$(diff <(echo "$mounts") /proc/self/mountinfo)" ""
end "$agent"
ok "ax agent --flush in it" plain_ax agent --flush
umount "$ROOT/cgroup" "$ROOT/sys/fs/bpf" "$ROOT/sys" "$ROOT/proc"
done_testing
