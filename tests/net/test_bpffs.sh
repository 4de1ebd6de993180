#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Other bpf filesystems, mounted before or after, hide nothing of what ax has pinned in its own.
. "$(dirname "$0")/lib.sh"
need jq ip

cat >"$T/rules.yaml" <<EOF
rules:
  - {name: ping, icmp: echo-request, action: drop}
EOF
# in this test's own tmpfs: what is mounted there goes with its mount namespace
mkdir /run/first /run/second

# pins DIRECTORY...
pins() {
	find "$@" -mindepth 1 ! -name '*.debug' ! -name xdp
}
# shows WHEN: what ax has of an app, of rules and of a probe
shows() {
	is "$1: the agent knows its app" "$(ax get apps -o json | jq -r '.[].name')" lasting
	is "$1: the one that runs already" "$(alive "$app" && echo runs)" runs
	like "$1: the rules of an interface are there" "$(ax xdp rule list dummy0 2>&1)" ping
	like "$1: a probe is there" "$(ax trace ls 2>&1)" opens
}
all_start() {
	ip link add dummy0 type veth peer name dummy1
	agent_start
	run_app --name lasting -- sleep 120
	app=$APP
	launched lasting
	ok "$1: rules" ax xdp load dummy0 --rules "$T/rules.yaml"
	ok "$1: a probe" ax trace add opens tracepoint:syscalls:sys_enter_openat
}
all_end() {
	ok "$1: unload" ax xdp unload dummy0
	stop_apps
	agent_stop
	ok "$1: flush" ax agent --flush
	ip link del dummy0
}

all_start "on /sys/fs/bpf"
mount -t bpf bpf /run/second
agent_kill9
agent_again
shows "another mounted later"
is "and nothing is put there" "$(pins /run/second)" ""
like "where rules were looked for is said" "$(ax xdp rule list dummy1 2>&1)" "/sys/fs/bpf/$INST-xdp"
like "and probes" "$(ax trace view none 2>&1)" "/sys/fs/bpf/$INST-trace"
all_end "on /sys/fs/bpf"

umount /run/second

# over the very one that has it, as what mounts one without looking does
all_start "below another"
agent_stop
mount -t bpf bpf /sys/fs/bpf
out=$("$AX" --instance "$INST" agent --config "$T/$INST.yaml" 2>&1)
is "an agent does not put a second dataplane beside the one whose pins are hidden" $? 1
like "and says what is to be done" "$out" "programs of an earlier agent, and their pins are not in /sys/fs/bpf/$INST: .*umount"
is "nothing is put there" "$(pins /sys/fs/bpf)" ""
umount /sys/fs/bpf
agent_again
shows "the other one is gone"
all_end "below another"

while umount /sys/fs/bpf 2>/dev/null; do # the machine may have one below the test's
	:
done
mount -t bpf bpf /run/first
all_start "elsewhere"
like "elsewhere: they are there" "$(ls /run/first)" "$INST"
mount -t bpf bpf /sys/fs/bpf
mount -t bpf bpf /run/second
agent_kill9
agent_again
shows "one mounted on /sys/fs/bpf later"
like "and where was looked" "$(ax xdp rule list dummy1 2>&1)" "/run/first/$INST-xdp"
all_end "elsewhere"
is "a flush leaves nothing in any" "$(pins /run/first /run/second)" ""
done_testing
