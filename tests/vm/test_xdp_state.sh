# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.1
# Rules that ask for a packet's state: what this kernel's verifier makes of them, with connection
# tracking and without its module, and whether its sockets are found. Generic mode on lo.
. "${0%/*}/lib.sh"
. "${0%/*}/lists.sh"

ip link set lo up
# (others in this machine have had it forward, which is when ax keeps flows)
echo 0 >/proc/sys/net/ipv4/ip_forward
echo 0 >/proc/sys/net/ipv6/conf/all/forwarding

listens()
{
	netstat -tln | grep -q ':4053 '
}
connected() # sets port to the client's
{
	port=$(netstat -tn | awk '$5 == "127.0.0.1:4053" && $6 == "ESTABLISHED" {sub(".*:", "", $4); print $4}')
	[ -n "$port" ]
}
nc -l -p 4053 -e sleep 1000 &
server=$!
tap "a server" eventually 60 listens
# what it reads never comes, so it stays
sleep 1000 | nc 127.0.0.1 4053 &
client=$!
eventually 60 connected
tap "a connection" [ -n "$port" ]

states()
{
	echo "rules: [{state: established, action: pass}]" >/tmp/list.yaml
	ax --instance l xdp load lo --mode generic --force --rules /tmp/list.yaml || return 1
	ax --instance l xdp status lo >/tmp/status
	ax --instance l xdp unload lo
	cat /tmp/status
	grep -q "^ *states *of $1" /tmp/status
}
too_big="icmp 192.0.2.9 > 127.0.0.1 type 3/4 quoting"
found()
{
	field "state: established" "tcp 127.0.0.1:4053 > 127.0.0.1:$port flags ack" \
		"tcp 127.0.0.1:4055 > 127.0.0.1:$port flags ack"
}

tap "connection tracking is asked, too" states "sockets and of connection tracking"
found
field "state: [related, new]" "$too_big (tcp 127.0.0.1:$port > 127.0.0.1:4053)" \
	"$too_big (tcp 127.0.0.1:$port > 127.0.0.1:4055)"
field "state: invalid" "tcp [fd00::1]:5 > [fd00::2]:53 flags ack" "udp [fd00::1]:5 > [fd00::2]:53"

# Where a list needs the most of the stack.
cat >/tmp/list.yaml <<'E'
default: drop
rules:
- {src: [10.0.0.0/8, 'fd00::/16'], dst: 10.0.0.2, proto: udp, sport: 5, dport: [53, 9999], fragment: none, action: pass}
- {proto: tcp, flags: [syn, '!ack'], dport: 80, length: 0-200, action: drop}
- {icmp: [3, 8], icmp6: [1, 2, echo-request], action: pass}
- {vlan: [none, 7, 9-4095], mac: '02:00:00:00:00:01', length: 100-, ttl: 3-, dscp: 0-40, ecn: [not-ect, ce], time: [00:00-12:00, mon], action: pass}
- {state: new, payload: [at 0 0x61, at 1 0x62 at 20 0x63 0x04/0x0f at 3 0x65 at 9 0x66], dport: 4056, action: pass}
- {state: established, action: pass}
E
fillers >>/tmp/list.yaml
cp /tmp/list.yaml /tmp/most.yaml
tap "with all other fields, in bit vectors" taken "tcp 127.0.0.1:4053 > 127.0.0.1:$port flags ack" \
	"tcp 127.0.0.1:4055 > 127.0.0.1:$port flags ack"

tap "and by payload" taken "udp 127.0.0.1:9 > 127.0.0.1:4056 data 'ab'" "udp 127.0.0.1:9 > 127.0.0.1:4056 data 'bb'"

unload_conntrack()
{
	for m in nft_ct nft_masq nft_nat nft_chain_nat nf_nat nf_conntrack; do
		rmmod "$m"
	done
	[ ! -e /sys/module/nf_conntrack ]
}
tap "without its module" unload_conntrack
tap "sockets are asked alone" states "sockets alone"
found

# What it would know of flows that are forwarded, ax keeps then, in both directions.
echo 1 >/proc/sys/net/ipv4/ip_forward
tap "where this host forwards, ax keeps flows" states "sockets and of flows that ax keeps"
found
keeps()
{
	ax --instance l xdp load lo --mode generic --force --track own --rules /tmp/keep.yaml || return 1
	ax --instance l xdp load lo --direction egress --track own --rules /tmp/keep.yaml || return 1
	ax --instance l xdp explain lo --direction egress --packet "$1" >/tmp/explained
	ax --instance l xdp unload lo
	ax --instance l xdp unload lo --direction egress
	cat /tmp/explained
	grep -q "^state *$2" /tmp/explained
}
cat >/tmp/keep.yaml <<'E'
default: drop
rules:
- {state: [established, related], action: pass}
- {state: new, src: [10.0.0.0/8, 'fd00::/16'], proto: [udp, tcp], sport: 5-65535, payload: at 0 0x61, action: pass}
E
tap "of what leaves, too: a connection of this host's" keeps "tcp 127.0.0.1:$port > 127.0.0.1:4053 flags ack" established
tap "of nobody's" keeps "tcp 127.0.0.1:4055 > 127.0.0.1:4053 flags ack" invalid
mv /tmp/most.yaml /tmp/keep.yaml
tap "with all other fields, in bit vectors" keeps "tcp 127.0.0.1:$port > 127.0.0.1:4053 flags ack" established
echo 0 >/proc/sys/net/ipv4/ip_forward

# The agent puts its lists in place once; one that came before the module did is put there anew.
cat >/tmp/ax.yaml <<'E'
agent:
  pool: {ipv4: 10.77.0.0/16, ipv6: "fd77::/64"}
xdp:
  interfaces:
    lo: {mode: generic, rules: [{state: established, action: pass}]}
E
asked() # asked OF
{
	ax --instance l xdp status lo >/tmp/status
	cat /tmp/status
	grep -q "^ *states *of $1" /tmp/status
}
load_conntrack()
{
	insmod /modules/*-nf_conntrack.ko
}
applied()
{
	ax --instance l config apply /tmp/ax.yaml && asked "$1"
}
generation() # which list it is
{
	ax --instance l xdp status lo | grep -o 'generation [0-9]*'
}
ax --instance l agent --config /tmp/ax.yaml >/tmp/agent.log 2>&1 </dev/null &
agent=$!
tap "a list of the agent's, without the module" eventually 60 asked "sockets alone"
before=$(generation)
tap "it is applied again" applied "sockets alone"
tap "and is not put there anew" [ -n "$before" -a "$(generation)" = "$before" ]
tap "the module comes" load_conntrack
tap "the list that is applied again asks connection tracking" applied "sockets and of connection tracking"
before=$(generation)
tap "and once more" applied "sockets and of connection tracking"
tap "that changes nothing" [ -n "$before" -a "$(generation)" = "$before" ]
kill $client $server $agent 2>/dev/null
wait $agent
tap "and is gone, for whoever comes next" ax --instance l xdp unload lo
done_testing
