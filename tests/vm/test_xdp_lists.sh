# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.1
# What this kernel's verifier makes of lists: every field, in each way in which a list can be
# compiled, and everything that rules do. Generic mode on lo: it is about loading and judging.
. "${0%/*}/lib.sh"
. "${0%/*}/lists.sh"

ip link set lo up

udp="udp 10.0.0.1:5 > 10.0.0.2:53"
field "src: 10.0.0.0/9" "$udp" "udp 10.128.0.1:5 > 10.0.0.2:53"
field "src: 'fd00::/77'" "udp [fd00::1]:5 > [fd00::2]:53" "udp [fd00::8:0:0:1]:5 > [fd00::2]:53"
field "dst: [10.0.0.2, 'fd00::2']" "udp [fd00::1]:5 > [fd00::2]:53" "udp 10.0.0.1:5 > 10.0.0.3:53"
field "src: [10.0.0.1, 10.0.0.3, 10.0.7.5, 10.0.7.6, 10.0.200.1]" "udp 10.0.7.6:5 > 10.0.0.2:53" "udp 10.0.7.7:5 > 10.0.0.2:53"
field "proto: udp" "$udp" "tcp 10.0.0.1:5 > 10.0.0.2:53"
field "sport: 1-9" "$udp" "udp 10.0.0.1:10 > 10.0.0.2:53"
field "dport: [53, 80]" "$udp" "udp 10.0.0.1:5 > 10.0.0.2:54"
field "flags: [syn, '!ack']" "tcp 10.0.0.1:5 > 10.0.0.2:53" "tcp 10.0.0.1:5 > 10.0.0.2:53 flags ack"
field "icmp: 8, icmp6: echo-request" "icmp6 fd00::1 > fd00::2" "icmp 10.0.0.1 > 10.0.0.2 type 13"
field "vlan: 7" "vlan 7 $udp" "vlan 8 $udp"
field "fragment: later" "udp 10.0.0.1 > 10.0.0.2 frag later data 'x'" "$udp"
field "length: 0-99" "$udp" "$udp len 100"
field "ttl: 1-9" "$udp ttl 9" "$udp ttl 10"
field "dscp: [ef, 10-12]" "$udp dscp af11 ecn ce" "$udp dscp 13"
field "ecn: [ce, ect1]" "$udp dscp af11 ecn ce" "$udp ecn ect0"
field "payload: [at 0 0x61 0x02/0x0f at 12 0x7a, at 1 0x63]" "$udp data 'ab0000000000z'" "$udp data 'ab0000000000y'"
example_org=$(question 03777777074578616d706c65036f7267)
example_com=$(question 03777777074578616d706c6503636f6d)
field "dns-name: [example.org, a.test]" "$udp data $example_org" "$udp data $example_com"
hello=hex:1603010048010000440303$(printf '%064d' 0)0000021301010000190000001500130000107777772e6578616d706c652e6f72672e
field "tls-sni: [example.org, a.test]" "tcp 10.0.0.1:5 > 10.0.0.2:443 flags ack data $hello" \
	"tcp 10.0.0.1:5 > 10.0.0.2:443 flags ack data ${hello%72672e}"
request="tcp 10.0.0.1:5 > 10.0.0.2:80 flags ack data 'GET / HTTP/1.1\r\nAccept: a\r\nHost: www.example"
field "http-host: [example.org, a.test]" "$request.org\r\n\r\n'" "$request.com\r\n\r\n'"
field "dns-name: a.test, http-host: example.org, tls-sni: b.test" "$request.org:80\r\n\r\n'" "$request.org\r\n'"
field "mac: '02:00:00:00:00:01'" "$udp" "$udp mac 02:00:00:00:00:03 > 02:00:00:00:00:02"

# with what else is looked at behind the headers, and by which state of its flow
cat >/tmp/list.yaml <<'E'
default: drop
rules:
- {dns-name: example.org, payload: at 2 0x01, state: new, src: 10.0.0.0/8, action: pass}
- {dns-name: [deep.example.org, test], state: established, action: pass}
E
tap "names, bytes and states" taken "$udp data $example_org" "$udp data $example_com"
fillers >>/tmp/list.yaml
tap "names, bytes and states, in bit vectors" taken "$udp data $example_org" \
	"$udp data $example_com"

cat >/tmp/fields.yaml <<'E'
rules:
- {src: [10.0.0.0/8, 'fd00::/16'], dst: 10.0.0.2, proto: udp, sport: 5, dport: [53, 9999], fragment: none, action: pass}
- {proto: tcp, flags: [syn, '!ack'], dport: 80, length: 0-200, action: drop}
- {icmp: [3, 8], icmp6: [1, 2, echo-request], action: pass}
- {vlan: [none, 7, 9-4095], mac: '02:00:00:00:00:01', length: 100-, action: pass}
- {dst: 'fd00::2', fragment: [first, later], action: drop}
- {dst: 10.0.0.4, dns-name: [example.org, test], tls-sni: [example.org, test], http-host: test, action: drop}
- {dst: 10.0.0.3, payload: [at 0 0x61, at 120 0x01 0x02 0x03 at 3 0x00/0x0f at 9 0x01 at 0 0x62], action: drop}
E
cp /tmp/fields.yaml /tmp/list.yaml
tap "all fields" taken "$udp" "tcp 10.0.0.1:5 > 10.0.0.2:80"
fillers >>/tmp/list.yaml
tap "all fields, in bit vectors" taken "$udp" "tcp 10.0.0.1:5 > 10.0.0.2:80"

cat >/tmp/list.yaml <<'E'
classes: {runt: rules, too-many-headers: rules, split-header: rules, bad-udp: pass, arp: drop}
rules:
- {dport: 53, action: pass, rate: '8bit,burst=150', capture: [2048, slot=x, ring]}
- {proto: tcp, action: drop, rate: '1mbit,burst=100000,per=src/24/64', capture: [9216, frame], log: yes, sample: 3}
- {dport: 7, action: reflect, rate: '10kpps,per=src'}
- {dport: 8, action: cpu 0}
- {dst: 10.0.0.0/8, action: redirect lo, to: 192.0.2.1, to-port: 8053, smac: '02:00:00:00:00:09'}
- {dst: 'fd00::/16', action: redirect lo, to: '2001:db8::1', checksum: recompute}
E
cp /tmp/list.yaml /tmp/actions.yaml
tap "all actions" taken "$udp" "tcp 10.0.0.1:5 > 10.0.0.2:80"
{
	cat /tmp/actions.yaml
	fillers
} >/tmp/list.yaml
tap "all actions, in bit vectors" taken "$udp" "tcp 10.0.0.1:5 > 10.0.0.2:80"

# An ICMP error is judged by what it quotes.
too_big="icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting"
{
	echo "default: drop"
	cat /tmp/fields.yaml
} >/tmp/list.yaml
sed -i 's/^- {icmp.*//' /tmp/list.yaml
tap "quotes" taken "$too_big (udp 10.0.0.2:53 > 10.0.0.1:5)" "$too_big (udp 10.0.0.2:54 > 10.0.0.1:5)"
fillers >>/tmp/list.yaml
tap "quotes, in bit vectors" taken "$too_big (udp 10.0.0.2:53 > 10.0.0.1:5)" \
	"$too_big (udp 10.0.0.2:54 > 10.0.0.1:5)"

# Addresses that come to sets for a time: learned from packets, and held by a command.
learned()
{
	ax --instance l xdp set list lo seen
}
learns()
{
	local status=0

	ax --instance l xdp load lo --mode generic --force --rules /tmp/list.yaml || return 1
	verdict pass "udp 10.5.5.5:5 > 10.0.0.2:53" || status=1
	ping -c 1 -W 1 127.0.0.1 >/dev/null 2>&1
	learned | grep -q '^127.0.0.1  for .* by a rule' || status=1
	ax --instance l xdp set add bad 10.5.5.5 fd00::5 --for 10m -i lo || status=1
	verdict drop "udp 10.5.5.5:5 > 10.0.0.2:53" || status=1
	verdict drop "udp [fd00::5]:5 > [fd00::2]:53" || status=1
	verdict pass "udp 10.5.5.6:5 > 10.0.0.2:53" || status=1
	ax --instance l xdp set del bad 10.5.5.5 || status=1
	verdict pass "udp 10.5.5.5:5 > 10.0.0.2:53" || status=1
	ax --instance l xdp unload lo || status=1
	return "$status"
}
cat >/tmp/list.yaml <<'E'
sets: {bad: {timed: yes}, seen: [], on: [], off: []}
rules:
- {src: ['@bad', '@off'], action: drop}
- {dst: '@on', proto: tcp, dport: 9, action: drop}
- {src: '@seen', proto: tcp, dport: 7, rate: '10pps,per=src', learn: '@off,10m,above-rate', action: pass}
- {proto: tcp, dport: 8, learn: '@on,10m,dst/24', action: pass}
- {icmp: echo-request, learn: '@seen,10m', action: pass}
E
tap "rules that learn" learns
{
	cat /tmp/list.yaml
	fillers
	echo "- {vlan: [none, 7], mac: '02:00:00:00:00:01', length: 100-, ttl: 3-, dscp: 0-40, ecn: [not-ect, ce], time: [00:00-12:00, mon], fragment: none, flags: [syn], action: pass}"
	echo "- {state: established, action: pass}"
} >/tmp/learn.yaml
mv /tmp/learn.yaml /tmp/list.yaml
tap "rules that learn, in bit vectors" learns
cat >/tmp/list.yaml <<'E'
sets: {bad: {timed: yes}, seen: {timed: yes}}
rules:
- {src: '@bad', action: drop}
- {icmp: echo-request, learn: '@seen,10m', action: pass}
E
tap "rules that learn, few of them" learns

# Flows, which are in sets of their own kind; both ways.
flows_held()
{
	local place=$1 status=0

	shift
	ax --instance l xdp load lo "$@" --force --rules /tmp/list.yaml || return 1
	ping -c 1 -W 1 127.0.0.1 >/dev/null 2>&1
	ax --instance l xdp set list "$place" in | grep -q '^127.0.0.1-127.0.0.1:22/tcp  for .* by a rule' || status=1
	verdict_on "$place" pass "tcp 127.0.0.1:5 > 127.0.0.1:22" || status=1
	verdict_on "$place" drop "tcp 127.0.0.1:5 > 127.0.0.1:23" || status=1
	ax --instance l xdp set add in '10.5.5.5-10.0.0.2:53/udp' 'fd00::5-[fd00::2]:53/udp' --for 10m \
		-i "$place" || status=1
	verdict_on "$place" pass "udp 10.5.5.5:5 > 10.0.0.2:53" || status=1
	verdict_on "$place" pass "udp [fd00::5]:5 > [fd00::2]:53" || status=1
	verdict_on "$place" drop "tcp 10.5.5.5:5 > 10.0.0.2:53" || status=1
	verdict_on "$place" drop "udp 10.5.5.6:5 > 10.0.0.2:53" || status=1
	ax --instance l xdp unload "$place" || status=1
	return "$status"
}
cat >/tmp/list.yaml <<'E'
default: drop
sets: {in: {flows: []}, on: {flows: []}, bad: {timed: yes}, off: []}
rules:
- {src: '@bad', dst: '@off', action: drop}
- {flow: ['@in', '@on'], action: pass}
- {icmp: echo-request, learn: '@in,10m,flow=22/tcp', action: pass}
- {proto: tcp, dport: 8, learn: '@on,10m,flow', action: pass}
E
tap "flows" flows_held lo --mode generic
cp /tmp/list.yaml /tmp/flows.yaml
fillers >>/tmp/list.yaml
tap "flows, in bit vectors" flows_held lo --mode generic
mv /tmp/flows.yaml /tmp/list.yaml
tap "flows that leave" flows_held lo:egress --direction egress

awk 'BEGIN {
	print "rules:"
	for (i = 0; i < 5000; i++)
		printf "- {src: 10.%d.%d.0/24, dport: %d, action: drop}\n", i / 256, i % 256, i % 1000 + 1
}' >/tmp/list.yaml
tap "5000 rules" taken "udp 10.19.135.1:5 > 10.0.0.2:999" "udp 10.19.135.1:5 > 10.0.0.2:1000"
done_testing
