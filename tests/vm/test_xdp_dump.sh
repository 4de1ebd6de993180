# SPDX-License-Identifier: GPL-2.0-or-later
# ax xdp dump and top on this kernel, where the root program may run in libxdp's dispatcher: the
# list's verdict comes back to who looks, with its rule, for lists of each kind.
. "${0%/*}/lib.sh"
. "${0%/*}/lists.sh"

ip link set lo up

# dumped LIST: what a dump of lo has said of two pings, to 127.0.0.1 and 127.0.0.2
dumped()
{
	ax xdp apply lo -m generic --force --rules "$1" >&2 || return
	rm -f /tmp/out.dump
	ax xdp dump lo -n 4 -d 15s -w /tmp/out.dump icmp echo-request &
	eventually 10 test -s /tmp/out.dump || return
	ping -c 2 -W 1 127.0.0.1 >&2
	ping -c 2 -W 1 127.0.0.2 >&2
	wait $!
	tr -c ' -~' '\n' </tmp/out.dump | grep -o '[a-z]* by [a-z]*: [a-z ]*' | sort | uniq -c | tr -s ' '
}
want=' 2 drop by two: the first rule that matches it
 2 pass by default: no rule matches it'
says() # LIST
{
	[ "$(dumped "$1" 2>/tmp/out.said)" = "$want" ] && return
	cat /tmp/out.said /tmp/out.dump
	return 1
}

echo 'rules: [{name: two, dst: 127.0.0.2, icmp: 8, action: drop}]' >/tmp/small.yaml
tap "a small list tells" says /tmp/small.yaml
{
	cat <<'L'
rules:
- {name: odd, dst: 127.0.0.9, payload: at 0 0x61, state: [new, invalid], action: drop, rate: '1mbit,burst=100000,per=src/24/64', capture: [512, frame]}
- {name: away, dst: 10.0.0.0/8, proto: tcp, dport: [53, 80], action: redirect lo, to: 192.0.2.1, to-port: 8053}
- {name: two, dst: 127.0.0.2, icmp: 8, action: drop}
L
	fillers
} >/tmp/large.yaml
tap "a list with states, payloads and bit vectors tells" says /tmp/large.yaml
top()
{
	ax xdp top lo --once -i 2s >/tmp/out.top &
	sleep 1
	ping -c 2 -W 1 127.0.0.1
	wait $! && cat /tmp/out.top && grep -q '^127.0.0.1 ' /tmp/out.top && grep -q '^icmp ' /tmp/out.top
}
tap "top counts" top
tap "it is gone" ax xdp unload lo
done_testing
