# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.1
# `action challenge` on this kernel: cookies that its sockets take, by both families and on a real VLAN.
. "${0%/*}/lib.sh"

# what scripts before this one have left
ip link del w0 2>/dev/null
unshare -n sh -c "ip link set lo up; echo >/tmp/w0; exec sleep 600" &
west=$!
eventually 5 test -e /tmp/w0
ip link add w0 type veth
far=$(cd /sys/class/net && echo veth*) # busybox's ip takes no name for it
ip link set "$far" netns "$west"
ip link set w0 up
in_west()
{
	nsenter -t "$west" -n "$@"
}
in_west ip link set "$far" up
ip addr add 10.1.0.1/24 dev w0
ip addr add 2001:db8:1::1/64 dev w0
in_west ip addr add 10.1.0.2/24 dev "$far"
in_west ip addr add 2001:db8:1::2/64 dev "$far"
vconfig add w0 5 >/dev/null
in_west vconfig add "$far" 5 >/dev/null
ip addr add 10.3.0.1/24 dev w0.5
in_west ip addr add 10.3.0.2/24 dev "$far.5"
ip link set w0.5 up
in_west ip link set "$far.5" up
echo 2 >/proc/sys/net/ipv4/tcp_timestamps

peer serve :: 9000 server >/tmp/out.server 2>&1 </dev/null &
server=$!
listening()
{
	grep -q listening /tmp/out.server
}
eventually 10 listening

cat >/tmp/challenge.yaml <<'EOF'
rules:
  - {name: ask, proto: tcp, dport: 9000, action: challenge}
EOF
echo 0 >/proc/sys/net/ipv4/tcp_syncookies
refused()
{
	ax xdp load w0 --rules /tmp/challenge.yaml && return 1
	return 0
}
tap "without cookies the list is refused" refused
like "which is said" "net.ipv4.tcp_syncookies=0" ax xdp load w0 --rules /tmp/challenge.yaml
tap "load, with what it needs" ax xdp load w0 --rules /tmp/challenge.yaml --fix
tap "there are cookies" grep -q 2 /proc/sys/net/ipv4/tcp_syncookies

reason() # NAME
{
	ax xdp stats w0 | awk -v r="$1" '$1 == r { n = $2 } END { print n + 0 }'
}
kernel() # COUNTER of TcpExt
{
	awk -v c="$1" '$1 == "TcpExt:" && !n { n = split($0, names) }
		$1 == "TcpExt:" { split($0, values) }
		END { for (i = 1; i <= n; i++) if (names[i] == c) print values[i] }' /proc/net/netstat
}
# comes ADDRESS: a connection, by one more cookie, which the kernel took
comes()
{
	local asked met taken

	asked=$(reason challenged)
	met=$(reason challenge-met)
	taken=$(kernel SyncookiesRecv)
	timeout 10 nsenter -t "$west" -n peer get "$1" 9000 | tee /tmp/answer
	grep -q '^server' /tmp/answer || return 1
	ax xdp stats w0
	[ "$(reason challenged)" -gt "$asked" ] && [ "$(reason challenge-met)" -gt "$met" ] &&
		[ "$(kernel SyncookiesRecv)" -gt "$taken" ]
}
tap "IPv4" eventually 10 comes 10.1.0.1
tap "IPv6" eventually 10 comes 2001:db8:1::1
tap "on a VLAN" eventually 10 comes 10.3.0.1
tap "the kernel has made no answer itself" [ "$(kernel SyncookiesSent)" = 0 ]
like "an ACK of nobody is dropped" "bad-cookie" \
	ax xdp explain w0 --packet 'tcp 10.1.0.2:5 > 10.1.0.1:9000 flags ack'
echo 1 >/proc/sys/net/ipv4/ip_forward
like "what is for another host is left to the kernel, though all addresses listen" "challenge-other" \
	ax xdp explain w0 --packet 'tcp 10.1.0.2:5 > 10.1.0.9:9000 flags syn'
echo 1 >/proc/sys/net/ipv4/tcp_syncookies
like "and while there is room" "challenge-idle" \
	ax xdp explain w0 --packet 'tcp 10.1.0.2:5 > 10.1.0.1:9000 flags syn'
tap "who comes then" timeout 10 nsenter -t "$west" -n peer get 10.1.0.1 9000
echo 1 >/proc/sys/net/ipv4/tcp_timestamps
tap "unload" ax xdp unload w0
kill "$server" "$west"
done_testing
