# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by the scripts whose apps reach an outside: a network namespace behind the veth
# pair wan0, wan1, that knows nothing of virtual IPs. Who sources it gives both ends their addresses.

# a process in it; nothing else has a reference to it
bg /dev/null unshare -n sleep 600
OUTSIDE=$BG
wait_for "[ \"\$(readlink /proc/$OUTSIDE/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ] &&
	grep -q sleep /proc/$OUTSIDE/comm"
outside() {
	nsenter -t "$OUTSIDE" -n "$@"
}
ip link add wan0 type veth peer name wan1 netns "/proc/$OUTSIDE/ns/net"
outside ip link set lo up
