# SPDX-License-Identifier: GPL-2.0-or-later
# The XDP dataplane on this kernel: in libxdp's dispatcher, native on a veth pair and generic on lo,
# alone and beside the program of xdp-filter.
. "${0%/*}/lib.sh"

# The other end of the pair w0 is in a namespace of its own, whose process is $world.
unshare -n sh -c 'ip link set lo up; echo >/tmp/world; exec sleep 600' &
world=$!
eventually 5 test -e /tmp/world
ip link add w0 type veth
far=$(cd /sys/class/net && echo veth*) # busybox's ip takes no name for it
ip link set "$far" netns $world
in_world()
{
	nsenter -t $world -n "$@"
}
ip addr add 198.51.100.1/24 dev w0
ip link set w0 up
in_world ip addr add 198.51.100.2/24 dev "$far"
in_world ip link set "$far" up
ip addr add 2001:db8:2::1/64 dev w0
in_world ip addr add 2001:db8:2::2/64 dev "$far"

serve()
{
	"$@" >>/tmp/out.servers 2>&1 </dev/null &
	servers="$servers $!"
}
servers=
for port in 9000 9001 9999; do
	serve peer udp-serve 0.0.0.0 $port server
done
serve peer serve :: 80 web
listening()
{
	[ "$(grep -c listening /tmp/out.servers)" -ge 4 ]
}
eventually 10 listening

udp() # PORT: the answer
{
	timeout 2 nsenter -t "$world" -n peer udp 198.51.100.1 "$1" word
}
no_answer() # PORT
{
	! udp "$1" | grep -q '^server word'
}
answer()
{
	udp "$1" | grep -q '^server word'
}
pings()
{
	in_world ping -c 1 -W 1 198.51.100.1
}
no_pings()
{
	! pings
}
refused() # COMMAND...: prints what it says
{
	! "$@" 2>&1
}
none() # REGEX COMMAND...: what it prints has no such line
{
	local regex=$1

	shift
	"$@" >/tmp/none 2>&1
	cat /tmp/none
	! grep -qE "$regex" /tmp/none
}
# count RULE N: the rule has so many packets, in the end
counts()
{
	ax xdp stats "${3:-w0}" >/tmp/stats
	awk -v r="$1" -v n="$2" '$1 == r { found = $2 == n } END { exit !found }' /tmp/stats
}
# in_order A B: status lists programs in this order
in_order()
{
	ax xdp status w0 >/tmp/status 2>&1
	cat /tmp/status
	grep -oE "($1|$2) \(id" /tmp/status | tr '\n' ' ' | grep -qE "^$1 \(id $2 \(id $"
}

cat >/tmp/rules.yaml <<'EOF'
default: pass
sets:
  closed: {ports: [9001]}
rules:
  - {name: command, proto: udp, dport: 9000, action: pass, capture: "16,ring,slot=cmd"}
  - {name: closed, proto: udp, dport: "@closed", action: drop}
  - {name: ping6, icmp6: echo-request, action: drop}
EOF
cat >/tmp/cut.yaml <<'EOF'
default: drop
rules:
  - {name: web, proto: tcp, dport: 80, action: pass}
EOF

# --- alone ---

tap "packets come through" answer 9001
tap "load" ax xdp load w0 --rules /tmp/rules.yaml
like "natively, in libxdp's dispatcher" "attached +native, by libxdp's dispatcher" ax xdp status w0
like "as one program" "programs +ax_root \(id [0-9]+, priority 50, ours\)" ax xdp status w0
tap "a rule passes" answer 9000
tap "a rule drops" no_answer 9001
tap "no rule passes" answer 9999
like "TCP" "^web peer=198.51.100.2" in_world peer get 198.51.100.1 80
tap "ping" pings
tap "ping over IPv6 is dropped" refused in_world ping6 -c 1 -W 1 2001:db8:2::1
tap "what passed is counted" eventually 3 counts command 1
tap "and what was dropped" eventually 3 counts closed 1
like "explain" "verdict +drop" ax xdp explain w0 --packet 'udp 198.51.100.2:5 > 198.51.100.1:9001'
like "and why" "dport @closed" ax xdp explain w0 --packet 'udp 198.51.100.2:5 > 198.51.100.1:9001'

ax xdp capture w0 -n 1 >/tmp/captured 2>&1 </dev/null &
reader=$!
usleep 500000
tap "another datagram" answer 9000
wait $reader
like "is captured" "pass command  udp 198.51.100.2:[0-9]+ > 198.51.100.1:9000 .*: word" cat /tmp/captured
like "its slot" "cmd: word" ax xdp capture w0 --slots

tap "set add" ax xdp set add closed 9999
tap "takes effect" no_answer 9999
tap "set replace" ax xdp set replace closed 9000
tap "takes effect both ways" answer 9001
tap "set del" ax xdp set del closed 9000
tap "a rule before the others" ax xdp rule add w0 --at 1 name first proto udp dport 9001 action drop
tap "takes effect" no_answer 9001
tap "is removed" ax xdp rule del w0 first
tap "takes effect" answer 9001

tap "apply with --confirm" ax xdp apply w0 --rules /tmp/cut.yaml --confirm 2s
tap "cuts ping" no_pings
tap "which comes back by itself" eventually 6 pings
like "confirm is too late" "nothing waits for a confirmation" ax xdp confirm w0
tap "apply again" ax xdp apply w0 --rules /tmp/cut.yaml --confirm 60s
tap "confirm" ax xdp confirm w0
like "what is let through" "^web " in_world peer get 198.51.100.1 80
tap "what is not" no_pings
tap "apply with --confirm once more" ax xdp apply w0 --rules /tmp/rules.yaml --confirm 60s
tap "rollback" ax xdp rollback w0
tap "takes effect" no_pings

# --- reflect, redirect to a CPU, rates ---

cat >/tmp/more.yaml <<'EOF'
rules:
  - {name: echo, proto: udp, dport: 7, action: reflect}
  - {name: cpu, icmp: echo-request, action: cpu 1}
  - {name: rate, proto: udp, dport: 9000, action: pass, rate: "1pps,burst=2"}
EOF
tap "reflect, another CPU, a rate" ax xdp apply w0 --rules /tmp/more.yaml --fix
reflected() # a datagram that comes back is its own answer
{
	timeout 3 nsenter -t "$world" -n peer udp 198.51.100.1 7 itself
}
like "what is reflected comes back" "^itself" reflected
tap "another CPU takes packets" pings
rated()
{
	local n=0 i=0

	while [ "$i" -lt 6 ]; do
		udp 9000 | grep -q '^server' && n=$((n + 1))
		i=$((i + 1))
		[ "$n" -lt "$i" ] && break
	done
	echo "$n came through"
	[ "$n" -ge 2 ] && [ "$n" -lt 6 ]
}
tap "a rate limits" rated

tap "unload" ax xdp unload w0
tap "nothing is left" refused find /sys/fs/bpf/ax-xdp
like "status has nothing" "nothing is loaded" ax xdp status w0
tap "everything passes" answer 9001

# --- what leaves ---

cat >/tmp/out.yaml <<'EOF'
direction: egress
rules:
  - {name: closed, proto: udp, sport: 9001, length: "40-", payload: at 0 0x73, action: drop}
  - {name: ping6, icmp6: echo-reply, action: drop}
  - {name: seven, vlan: 7, action: drop}
  - {name: names, dns-name: example.org, tls-sni: test, http-host: test, action: drop}
  - {name: rest, src: "198.51.100.0/24,2001:db8::/32", action: pass, rate: 1mpps}
EOF
tap "a list for what leaves" ax xdp load w0 --rules /tmp/out.yaml
tap "drops an answer" no_answer 9001
tap "and lets another one out" answer 9000
tap "and the same of IPv6" refused in_world ping6 -c 1 -W 1 2001:db8:2::1
tap "which is counted" eventually 3 counts closed 1 w0:egress
like "and explained" "verdict +drop" ax xdp explain w0 --direction egress \
	--packet "udp 198.51.100.1:9001 > 198.51.100.2:5 data 'server and more'"
like "by a name, too" "rule +name names" ax xdp explain w0 --direction egress \
	--packet "udp 198.51.100.1:5 > 198.51.100.2:53 data hex:12340100000100000000000003777777074578616d706c65036f72670000010001"
like "and by a request's" "rule +name names" ax xdp explain w0 --direction egress \
	--packet "tcp 198.51.100.1:5 > 198.51.100.2:80 flags ack data 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n'"
tap "beside one for what comes in" ax xdp load w0 --rules /tmp/rules.yaml
tap "both drop" no_answer 9001
like "status has both" "w0:egress: 5 rules" ax xdp status w0
tap "unload" ax xdp unload w0 --direction egress
like "the other stays" "w0: 3 rules" ax xdp status w0
tap "unload it" ax xdp unload w0
tap "nothing is left" refused find /sys/fs/bpf/ax-xdp
tap "everything passes" answer 9001

# --- generic mode, on lo ---

cat >/tmp/lo.yaml <<'EOF'
mode: generic
rules:
  - {name: closed, dst: 127.0.0.0/8, proto: udp, dport: 9001, action: drop}
EOF
local_udp()
{
	timeout 2 peer udp 127.0.0.1 "$1" word | grep -q '^server'
}
tap "load on lo, generic" ax xdp load lo --rules /tmp/lo.yaml
like "it is" "attached +generic" ax xdp status lo
tap "a rule passes" local_udp 9000
tap "a rule drops" refused local_udp 9001
tap "it is counted" eventually 3 counts closed 1 lo
tap "unload" ax xdp unload lo
tap "passes" local_udp 9001
like "native mode is refused there" "native mode" ax xdp load lo --mode native

# --- long lists, and lists of everything: each kind alone is test_xdp_lists.sh's ---

cat >/tmp/kinds <<'EOF'
{src: 10.0.0.0/8, action: drop}
{src: "fd00::/8", action: drop}
{src: "10.0.0.0/8,fd00::/8", dst: "192.0.2.0/24,2001:db8::/32", action: drop}
{proto: 47, action: drop}
{proto: tcp, sport: 1-1023, action: drop}
{proto: tcp, flags: "syn,!ack", action: drop}
{icmp: echo-request, icmp6: echo-request, action: drop}
{vlan: "100-199,none", action: drop}
{fragment: later, action: drop}
{length: "0-63,1500-", action: drop}
{mac: "02:00:00:00:00:01", action: drop}
{mac: "02:00:00:00:00:01", src: "fd00::/8", proto: udp, dport: 7, length: 64, vlan: none, action: drop}
{proto: udp, action: pass, capture: 64}
{proto: udp, action: pass, capture: "2048,frame,ring,slot=s", log: yes, sample: 10}
{proto: udp, action: drop, trigger: yes}
{proto: udp, action: pass, rate: "10mbit,per=src/24/64"}
{src: 10.0.0.0/8, action: reflect}
{proto: udp, dport: 514, action: redirect w0, smac: "02:00:00:00:00:01", dmac: "02:00:00:00:00:02", to: 198.51.100.2, to-port: 5514}
{proto: tcp, action: redirect w0, checksum: recompute}
{dst: 10.0.0.0/8, action: route, checksum: recompute}
{action: cpu 0}
{dst: 203.0.113.1, proto: tcp, dport: 80, action: balance nat}
{dst: "2001:db8:9::1", proto: udp, action: balance ipip}
{dst: 203.0.113.1, icmp: echo-request, action: balance gue}
EOF
takes() # RULES: a list of them, as YAML
{
	cat >/tmp/kind.yaml <<-EOF
		default: drop
		balancers:
		  nat: {backends: ["198.51.100.2:80", "[2001:db8:2::2]:80"]}
		  ipip: {mode: ipip, backends: [198.51.100.2, "2001:db8:2::2"]}
		  gue: {mode: gue, backends: [198.51.100.2, "2001:db8:2::2"]}
		rules:
		$1
	EOF
	ax xdp apply w0 --rules /tmp/kind.yaml --force
}
tap "load" ax xdp load w0
tap "rules of all kinds" takes "$(sed 's/^/  - /' /tmp/kinds)"
many=$(awk 'BEGIN { for (i = 0; i < 2000; i++)
	printf "  - {src: 10.%d.%d.0/24, proto: udp, dport: %d, vlan: %d, action: drop}\n", \
		i / 256, i % 256, i % 200 + 1, i % 50 }')
tap "2,000 rules" takes "$many"
tap "unload" ax xdp unload w0
{
	echo 'direction: egress'
	echo 'default: drop'
	echo 'sets: {bad: []}'
	echo 'rules:'
	grep -vE 'reflect|redirect|cpu|balance|route|trigger' /tmp/kinds | sed 's/^/  - /'
	echo '  - {dst: "@bad", time: mon-fri/08:00-18:00, payload: at 0 0x16, ttl: 1-5, dscp: ef, ecn: ce, action: drop}'
	echo '  - {dns-name: [example.org, test], tls-sni: example.org, http-host: ., ttl: 1-5, action: drop}'
	echo '  - {proto: udp, rate: "100pps,per=src", learn: "@bad,10m,dst,above-rate", action: pass}'
} >/tmp/out-kinds.yaml
tap "rules of all kinds, for what leaves" ax xdp load w0 --rules /tmp/out-kinds.yaml
tap "unload" ax xdp unload w0 --direction egress

# --- a VLAN device, with a dot in its name ---

vconfig add w0 100 >/dev/null 2>&1
ip link set w0.100 up
tap "load on a VLAN device" ax xdp load w0.100 --rules /tmp/cut.yaml
like "it has its rules" "w0.100: 1 rule" ax xdp status
tap "unload" ax xdp unload w0.100
ip link del w0.100

# --- another's program that was there first ---

# Debian's xdp-filter brings libxdp 1.3.1 and its dispatcher, which from Linux 6.12.5 on takes no
# program that may change packets: with it, what is beside ours can be neither loaded nor unloaded.
own_libxdp_takes_ours()
{
	case $(uname -r) in
	6.1.* | 5.*) return 0 ;;
	*) return 1 ;;
	esac
}

tap "xdp-filter loads" xdp-filter load -f udp w0
tap "and blocks a port" xdp-filter port -m dst -p udp 9999
tap "as it says" no_answer 9999
tap "load beside it" ax xdp load w0 --rules /tmp/rules.yaml
like "both are in the dispatcher" "by libxdp's dispatcher" ax xdp status w0
tap "in the order of their priorities" in_order xdpfilt_alw_udp ax_root
like "xdp-filter's is 10" "xdpfilt_alw_udp \(id [0-9]+, priority 10\)" ax xdp status w0
tap "both judge: theirs" no_answer 9999
tap "and ours" no_answer 9001
tap "what neither drops passes" answer 9000
tap "ping" pings
like "xdp-loader sees both" "ax_root" xdp-loader status w0
tap "a change of ours" ax xdp rule add w0 --at 1 name web proto tcp dport 80 action drop
like "leaves theirs" "xdpfilt_alw_udp" ax xdp status w0
tap "a change of theirs" xdp-filter port -m dst -p udp 9000
tap "leaves ours" no_answer 9001
tap "and takes effect" no_answer 9000
tap "unload ours" ax xdp unload w0
like "theirs stays" "xdpfilt_alw_udp" ax xdp status w0
none_of_ours()
{
	none ax_root ax xdp status w0
}
tap "ours is gone" none_of_ours
tap "theirs judges" no_answer 9999
tap "ours does not" answer 9001
like "and is asked, through the dispatcher" "verdict +drop" ax xdp explain w0 --packet "udp 10.0.0.1:5 > 10.0.0.2:9999"
like "what it lets through" "verdict +pass" ax xdp explain w0 --packet "udp 10.0.0.1:5 > 10.0.0.2:9001"
like "and named" "by +xdpfilt_alw_udp \(id [0-9]+\), in libxdp's dispatcher" \
	ax xdp explain w0 --packet "udp 10.0.0.1:5 > 10.0.0.2:9001"

tap "load with a priority before it" ax xdp load w0 --rules /tmp/rules.yaml --priority 5
tap "it comes first" in_order ax_root xdpfilt_alw_udp
tap "ours drops" no_answer 9001
tap "theirs drops" no_answer 9999
if own_libxdp_takes_ours; then
	tap "xdp-filter unloads" xdp-filter unload w0
	like "ours stays" "ax_root \(id [0-9]+, priority 5, ours\)" ax xdp status w0
	tap "and drops" no_answer 9001
	tap "theirs does not any more" answer 9999
	tap "unload" ax xdp unload w0
else
	tap "xdp-filter cannot unload beside ours" refused xdp-filter unload w0
	tap "nothing has changed" in_order ax_root xdpfilt_alw_udp
	tap "ours drops" no_answer 9001
	tap "unload ours first" ax xdp unload w0
	tap "then it can" xdp-filter unload w0
	tap "it drops nothing any more" answer 9999
fi
like "nothing is loaded" "nothing is loaded" ax xdp status w0

# --- another's program that comes after ours ---

tap "load" ax xdp load w0 --rules /tmp/rules.yaml
if own_libxdp_takes_ours; then
	tap "xdp-filter loads beside it" xdp-filter load -f udp w0
	tap "and blocks a port" xdp-filter port -m dst -p udp 9999
	tap "both are there in their order" in_order xdpfilt_alw_udp ax_root
	tap "theirs drops" no_answer 9999
	tap "ours is known" ax xdp rule add w0 name more proto udp dport 9000 action drop
	tap "ours drops" no_answer 9001
	tap "unload ours" ax xdp unload w0
	tap "theirs stays" no_answer 9999
	tap "xdp-filter unloads" xdp-filter unload w0
else
	tap "xdp-filter cannot load beside it" refused xdp-filter load -f udp w0
	like "ours is alone" "programs +ax_root \(id [0-9]+, priority 50, ours\)" ax xdp status w0
	tap "and judges on" no_answer 9001
	tap "unload" ax xdp unload w0
fi
tap "everything passes" answer 9001

# --- killed loads ---

killed()
{
	local i=0

	while [ "$i" -lt 12 ]; do
		ax xdp apply w0 --rules /tmp/rules.yaml >/dev/null 2>&1 &
		usleep $((i * 40000 + 20000))
		kill -9 $! 2>/dev/null
		wait $!
		[ $((i % 3)) -eq 2 ] && ax xdp unload w0
		i=$((i + 1))
	done
	ax xdp apply w0 --rules /tmp/rules.yaml || return
	ax xdp status w0
	[ "$(ax xdp status w0 | grep -c ax_root)" = 1 ] && no_answer 9001
}
tap "loads that are killed leave nothing in the way" killed
tap "unload" ax xdp unload w0
like "nothing is loaded" "nothing is loaded" ax xdp status w0

# --- QUIC connection ids ---

cat >/tmp/quic.yaml <<'EOF'
balancers:
  nat: {backends: [{address: 198.51.100.2, quic-id: 1}, {address: "2001:db8:2::2", quic-id: 1}]}
  ipip: {mode: ipip, backends: [{address: 198.51.100.2, quic-id: 1}, {address: "2001:db8:2::2", quic-id: 1}]}
  gue: {mode: gue, backends: [{address: 198.51.100.2, quic-id: 1}, {address: "2001:db8:2::2", quic-id: 1}]}
rules:
  - {dst: [203.0.113.1, "2001:db8:9::1"], proto: udp, action: balance nat}
  - {dst: [203.0.113.2, "2001:db8:9::2"], proto: udp, action: balance ipip}
  - {dst: [203.0.113.3, "2001:db8:9::3"], proto: udp, action: balance gue}
EOF
tap "balancers with QUIC ids" ax xdp load w0 --rules /tmp/quic.yaml --force
# who cannot be sent would be told so instead
echo 1 >/proc/sys/net/ipv4/conf/w0/forwarding
echo 1 >/proc/sys/net/ipv6/conf/w0/forwarding
neighbours_known()
{
	ping -c 1 -W 1 198.51.100.2 && ping -6 -c 1 -W 1 2001:db8:2::2
}
eventually 10 neighbours_known >/dev/null 2>&1
for k in 1 2 3; do
	for to in "10.0.0.9:5 > 203.0.113.$k:443" "[2001:db8:8::9]:5 > [2001:db8:9::$k]:443"; do
		like "an id is looked at: $to" "its QUIC connection id says which backend" \
			ax xdp explain w0 --packet "udp $to data hex:400000010102030405"
		like "one of nobody, too" "its QUIC connection id says no backend that is there" \
			ax xdp explain w0 --packet "udp $to data hex:40000002010203"
	done
done
tap "unload" ax xdp unload w0

# --- a balanced address ---

cat >/tmp/vip.yaml <<'EOF'
balancers:
  shop:
    backends: ["198.51.100.2:8081"]
rules:
  - {name: shop, dst: 203.0.113.1, proto: tcp, dport: 80, action: balance shop}
EOF
in_world peer serve 198.51.100.2 8081 backend >/tmp/out.backend 2>&1 </dev/null &
backend=$!
eventually 5 grep -q listening /tmp/out.backend
in_world ip route add 203.0.113.1 via 198.51.100.1
echo 1 >/proc/sys/net/ipv4/conf/w0/forwarding
tap "load a balancer" ax xdp load w0 --rules /tmp/vip.yaml --fix
vip()
{
	timeout 5 nsenter -t $world -n peer get 203.0.113.1 80
}
vip >/dev/null 2>&1 # the neighbour is found meanwhile
like "a connection to its address comes to a backend" "^backend peer=" vip
tap "unload" ax xdp unload w0

# --- the end ---

tap "nothing is pinned" refused find /sys/fs/bpf/ax-xdp
kernel_is_well()
{
	none 'BUG|Oops|WARNING:|RIP:|general protection|hung task|rcu.*stall' dmesg
}
tap "the kernel complains of nothing" kernel_is_well
# shellcheck disable=SC2086 # $servers: a list
kill $servers $backend $world 2>/dev/null
# shellcheck disable=SC2086 # $servers: a list
wait $servers $backend $world
done_testing
