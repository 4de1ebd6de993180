# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.1
# ax xdp dump and top of interfaces whose program is somebody else's, on this kernel: attached alone, in
# libxdp's dispatcher, one that changes, that sends, that jumps, of packets in several buffers, one
# without types, and one that takes another one's place.
. "${0%/*}/lib.sh"

# The other end of the pair w0 is in a namespace of its own, whose process is $world.
unshare -n sh -c 'ip link set lo up; echo >/tmp/world; exec sleep 600' &
world=$!
eventually 5 test -e /tmp/world
ip link del w0 2>/dev/null # of the scripts before
ip link add w0 type veth
far=$(cd /sys/class/net && echo veth*) # busybox's ip takes no name for it
for i in w0 $far; do
	echo 1 >"/proc/sys/net/ipv6/conf/$i/disable_ipv6"
done
ip link set "$far" netns $world
in_world()
{
	nsenter -t $world -n "$@"
}
ip addr add 198.51.100.1/24 dev w0
ip link set w0 up
in_world ip addr add 198.51.100.2/24 dev "$far"
in_world ip link set "$far" up
tap "programs of others" bpftool prog loadall /tests/foreign.bpf.o /sys/fs/bpf/others pinmaps /sys/fs/bpf/others-maps
tap "and one without types" bpftool prog load /tests/untyped.bpf.o /sys/fs/bpf/untyped
# attach MODE PROGRAM: in the place of what is there
attach()
{
	bpftool net attach "$1" pinned "/sys/fs/bpf/others/$2" dev w0 overwrite
}
detach()
{
	bpftool net detach "$1" dev w0
}
# begin_dump FILE OPTIONS...: in the background, its pid in $dump
begin_dump()
{
	local out=$1

	shift
	rm -f "$out"
	ax xdp dump w0 -d 20s -w "$out" "$@" >"$out.said" 2>&1 &
	dump=$!
	eventually 10 test -s "$out"
}
end_dump()
{
	wait "$dump"
	local status=$?

	cat "$1.said"
	return "$status"
}
# words FILE: its texts, each on a line
words()
{
	tr -c ' -~' '\n' <"$1" | grep -E '.{4}'
}
# (ARP is not IPv4: none of the programs drops it)
pings() # N
{
	in_world ping -c "$1" -W 1 -i 0.1 198.51.100.1
	true
}
udp() # PORT [WORD]
{
	timeout 1 nsenter -t "$world" -n peer udp 198.51.100.1 "$1" "${2:-word}"
	true
}
# said FILE N REGEX: so many of its comments match
said()
{
	words "$1"
	[ "$(words "$1" | grep -cE "$3")" = "$2" ]
}
# dumped_with N REGEX: three pings are, with so many comments like this
dumped_with()
{
	begin_dump /tmp/out -n 3 icmp echo-request || cat /tmp/out.said
	pings 3
	end_dump /tmp/out && said /tmp/out "$1" "$2"
}
dumped() # REGEX
{
	dumped_with 3 "$1"
}
refused() # COMMAND...: prints what it says
{
	! "$@" 2>&1
}
like "the kernel can" "^fexit +on" ax doctor -o wide

# --- attached alone ---

next()
{
	bpftool map update pinned /sys/fs/bpf/others-maps/others_next key 0 0 0 0 value pinned "/sys/fs/bpf/others/$1"
}
tap "one jumps to another" next others_drop
for mode in xdpgeneric xdpdrv; do
	tap "$mode: one that drops" attach $mode others_drop
	tap "$mode: what it drops" dumped '^XDP_DROP by others_drop \(id [0-9]+\)$'
	tap "$mode: is written once" said /tmp/out 0 'changed'
	tap "$mode: one that changes" attach $mode others_change
	tap "$mode: what it passes" dumped '^XDP_PASS by others_change \(id [0-9]+\)$'
	tap "$mode: and that it was changed" said /tmp/out 3 '^changed: what the host gets$'
	tap "$mode: to what" said /tmp/out 3 'CHANGE'
	tap "$mode: one that sends" attach $mode others_send
	tap "$mode: what it sends, before and after" dumped_with 6 '^XDP_TX by others_send \(id [0-9]+\)$'
	tap "$mode: and what that is" said /tmp/out 3 'SENDER'
	tap "$mode: one that jumps" attach $mode others_jump
	tap "$mode: what the other one makes of it" dumped '^XDP_DROP by others_jump \(id [0-9]+\)$'
	tap "$mode: one without types" attach $mode ../untyped
	like "$mode: is said to be one" '^ax xdp dump: what untyped on w0 makes of packets cannot be seen: it was loaded without BTF' \
		refused ax xdp dump w0 -w /tmp/refused.pcapng
	tap "$mode: and leaves no file" test ! -e /tmp/refused.pcapng
	tap "$mode: it goes" detach $mode
done
like "no program is there" 'no rules of ax are loaded on w0' refused ax xdp dump w0 -w /tmp/refused.pcapng

# --- filters ---

tap "one that drops" attach xdpdrv others_drop
wants()
{
	begin_dump /tmp/out -n 2 "$@" || cat /tmp/out.said
	udp 9000
	udp 9999
	pings 1
	udp 9999 longerword
	end_dump /tmp/out && said /tmp/out 2 '^XDP_DROP by others_drop'
}
tap "a filter is asked" wants proto udp dport 9999
tap "it has seen both" said /tmp/out 1 longerword
tap "of packets that are cut behind it, too" wants -s 20 proto udp dport 9999
tap "these are" said /tmp/out 0 longerword
like "sets are of lists" 'no such set|friends' refused ax xdp dump w0 -w /tmp/refused.pcapng src @friends

# --- what there is most of ---

top()
{
	rm -f /tmp/top
	ax xdp top w0 --once -i 4s "$@" >/tmp/top 2>&1 &
	top=$!
	sleep 1.5
	pings 5
	udp 9999
	wait "$top"
	cat /tmp/top
}
tap "top says what it does" eval 'top; grep -E "^XDP_DROP by others_drop \(id [0-9]+\) +[0-9]" /tmp/top'
tap "who sends it" grep -qE '^198.51.100.2 +[0-9]' /tmp/top
tap "to which ports" grep -qE '^udp 9999 +[0-9]' /tmp/top
tap "of what the filter wants" eval 'top -o json icmp echo-request; tr -d " \n" </tmp/top | grep -E "\"packets\":5,.*\"actions\":\[\{\"action\":\"XDP_DROPbyothers_drop[^]}]*\}\]"'
like "nothing is there" 'no rules of ax are loaded on lo' refused ax xdp top lo --once

# --- several look; whoever goes leaves nothing ---

none_is_left()
{
	! bpftool prog | grep -E 'ax_(came|went|ran)'
}
two()
{
	begin_dump /tmp/out.1 icmp echo-request || cat /tmp/out.1.said
	first=$dump
	begin_dump /tmp/out -n 3 icmp echo-request || cat /tmp/out.said
	pings 3
	end_dump /tmp/out && said /tmp/out 3 '^XDP_DROP by' || return
	kill -INT "$first"
	dump=$first
	end_dump /tmp/out.1 && said /tmp/out.1 3 '^XDP_DROP by'
}
tap "two dumps, of which one ends by Ctrl-C" two
tap "nothing is left" eventually 5 none_is_left
killed()
{
	begin_dump /tmp/out || cat /tmp/out.said
	bpftool prog | grep ax_went || return
	kill -KILL "$dump"
	wait "$dump"
	eventually 5 none_is_left
}
tap "nor of one that was killed" killed
elsewhere()
{
	bpftool net attach xdpgeneric pinned /sys/fs/bpf/others/others_drop dev lo || return
	begin_dump /tmp/out || cat /tmp/out.said
	ping -c 2 -W 1 127.0.0.1
	pings 1
	bpftool net detach xdpgeneric dev lo
	kill -INT "$dump"
	end_dump /tmp/out && said /tmp/out 1 '^XDP_DROP by'
}
tap "the program is on another interface too: its packets are not there" elsewhere

# --- another one takes its place, and goes ---

replaced()
{
	begin_dump /tmp/out -n 6 icmp echo-request || cat /tmp/out.said
	pings 3
	attach xdpdrv others_change || return
	eventually 5 grep -q 'w0 has another program now' /tmp/out.said
	pings 3
	end_dump /tmp/out && said /tmp/out 3 '^XDP_DROP by others_drop' && said /tmp/out 3 '^XDP_PASS by others_change'
}
tap "a dump follows" replaced
gone()
{
	begin_dump /tmp/out || cat /tmp/out.said
	detach xdpdrv
	! end_dump /tmp/out
}
like "or says that there is none" 'the program was taken off w0' gone
taken_by_untyped()
{
	attach xdpdrv others_drop
	begin_dump /tmp/out || cat /tmp/out.said
	attach xdpdrv ../untyped
	! end_dump /tmp/out
}
like "or that the new one cannot be seen" 'untyped on w0 makes of packets cannot be seen' taken_by_untyped
tap "it goes" detach xdpdrv

# --- packets in several buffers ---

ip link set w0 mtu 9000
in_world ip link set "$far" mtu 9000
tap "one that takes jumbo frames" attach xdpdrv others_jumbo
jumbo()
{
	begin_dump /tmp/out -n 1 proto udp dport 9999 || cat /tmp/out.said
	udp 9999 "BEGIN$(head -c 8000 /dev/zero | tr '\0' x)END"
	end_dump /tmp/out
	said /tmp/out 1 '^XDP_DROP by others_jumbo' && said /tmp/out 1 'BEGINx{8000}END'
}
tap "every byte of a packet in several buffers" jumbo
tap "it goes" detach xdpdrv
ip link set w0 mtu 1500
in_world ip link set "$far" mtu 1500

# --- libxdp's dispatcher ---

tap "xdp-filter loads" xdp-filter load -f udp w0
tap "and blocks a port" xdp-filter port -m dst -p udp 9999
filtered()
{
	begin_dump /tmp/out -n 2 proto udp dport 9999,9000 || cat /tmp/out.said
	udp 9000
	udp 9999
	end_dump /tmp/out && said /tmp/out 1 '^XDP_PASS by xdpfilt_alw_udp \(id [0-9]+\)$' &&
		said /tmp/out 1 '^XDP_DROP by xdpfilt_alw_udp \(id [0-9]+\)$'
}
tap "what it drops and passes" filtered
beside()
{
	begin_dump /tmp/out -n 3 proto udp dport 9999,9000 || cat /tmp/out.said
	udp 9000
	xdp-loader load -P 20 -n others_drop w0 /tests/foreign.bpf.o || return
	eventually 5 grep -q 'w0 has another program now' /tmp/out.said
	udp 9000
	udp 9999
	end_dump /tmp/out && said /tmp/out 1 '^XDP_PASS by xdpfilt_alw_udp' &&
		said /tmp/out 1 '^XDP_DROP by xdpfilt_alw_udp' && said /tmp/out 1 '^XDP_DROP by others_drop'
}
tap "one comes beside it, and each says what it drops" beside
ip link del w0
rm -rf /sys/fs/bpf/others /sys/fs/bpf/others-maps /sys/fs/bpf/untyped
kill $world
done_testing
