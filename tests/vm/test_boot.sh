# SPDX-License-Identifier: GPL-2.0-or-later
# The machine itself: what every other test here takes for granted.
. "${0%/*}/lib.sh"

has_veth()
{
	ip link add probe0 type veth && ip link del probe0
}

tap "devices of type veth" has_veth
tap "cgroup2 is mounted" test -e /sys/fs/cgroup/cgroup.controllers
tap "bpffs is mounted" mkdir /sys/fs/bpf/probe
tap "the kernel has type information" test -s /sys/kernel/btf/vmlinux
tap "a cgroup program loads and attaches" bpfload /sys/fs/cgroup
rmdir /sys/fs/bpf/probe
done_testing
