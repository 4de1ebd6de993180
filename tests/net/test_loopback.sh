#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 400
# Loopback in host mode: an app's own wildcard servers are there, seen as on a machine of its own, and
# for itself alone; what it binds to a wildcard it reads back as that.
. "$(dirname "$0")/lib.sh"
build_c tcp udp
DUAL="{ipv4: $POOL4, ipv6: \"$POOL6\"}" IPV4_ONLY="{ipv4: $POOL4}"

"$PYTHON" "$SRC/loopback.py" 7000 udp 50000 >"$T/datagrams" 2>&1 # (it waits for what does not come)
HERE=(127.0.0.1 192.0.2.1 ::1 ::ffff:127.0.0.1)
# reach.py PORT ADDRESS...: from which of them something is answered by a server of UDP at that port, to sockets
# that are bound to port 0, of each address one is connected, and one is not; and to one that is connected without.
cat >"$T/reach.py" <<'EOP'
import select, socket, sys, time

def ask(address, port, connected, bound=True):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    if bound:
        s.bind(("::" if ":" in address else "0.0.0.0", 0))
    if connected:
        s.connect((address, port))
        s.send(b"question")
    else:
        s.sendto(b"question", (address, port))
    return s

sockets = {}
for address in sys.argv[2:]:
    for connected in (True, False):
        sockets[ask(address, int(sys.argv[1]), connected)] = address
    sockets[ask(address, int(sys.argv[1]), True, False)] = address
answered = dict.fromkeys(sys.argv[2:], 0)
end = time.monotonic() + 2
while sockets and time.monotonic() < end:
    for s in select.select(list(sockets), [], [], 0.1)[0]:
        try:
            s.recv(100)
            answered[sockets[s]] += 1
        except ConnectionRefusedError:
            pass
        del sockets[s]
print(*[a + ("" if n == 3 else " %d of 3" % n) for a, n in answered.items() if n], sep="\n", end="")
EOP

for pools in "$DUAL" "$IPV4_ONLY"; do
	what="IPv4 alone"
	[ "$pools" = "$IPV4_ONLY" ] || what="IPv4 and IPv6"
	echo "agent: {pool: $pools}" >"$T/config"
	agent_start "$T/config"
	"$PYTHON" "$SRC/loopback.py" 7000 >"$T/bare" 2>&1
	in_app --net host -- "$PYTHON" "$SRC/loopback.py" 7000 >"$T/host" 2>&1
	is "an app with $what: all is as without ax" "$(diff "$T/bare" "$T/host")" ""
	is "and that is 80 connections" "$(grep -c : "$T/bare")" 80

	# a server at a port of its choice, and one at a port of the kernel's, where it is on the wildcard
	run_app --net host --ip 10.77.1.1 --name owner -- "$PYTHON" -c '
import socket, time
dual = [socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        for port in (7000, 0)]
print(*[s.getsockname()[1] for s in dual], flush=True)
time.sleep(1000)'
	wait_for "[ -s $OUT ]"
	ip addr add 192.0.2.1/32 dev lo
	for port in $(<"$OUT"); do
		where="an app with $what, its server on ::"
		[ "$port" = 7000 ] || where+=" with a port of the kernel's choice"
		ok "$where: others reach it at its address" \
			in_app --net host -- bash -c "exec 3<>/dev/tcp/10.77.1.1/$port"
		for to in 127.0.0.1 ::1 ::ffff:127.0.0.1 192.0.2.1; do
			connect=(bash -c "exec 3<>/dev/tcp/$to/$port")
			like "$where: another app does not reach it at $to" \
				"$(in_app --net host -- "${connect[@]}" 2>&1)" "Connection refused"
			like "$where: a program outside ax does not reach it at $to" \
				"$("${connect[@]}" 2>&1)" "Connection refused"
		done
	done
	ip addr del 192.0.2.1/32 dev lo
	stop_apps

	# what the host has on loopback is there for an app that has nothing of its own at that port
	bg "$T/host-server" "$BIN/tcp" listen 4 127.0.0.1 7001 host
	wait_for "ss -Hltn | grep -q 127.0.0.1:7001"
	is "an app with $what reaches the host's server on loopback, its own one before that" \
		"$(in_app --net host -- sh -c "$BIN/tcp connect 4 127.0.0.1 7001
			$BIN/tcp listen 4 0.0.0.0 7001 mine >/dev/null & p=\$!
			until ss -Hltn | grep -q 10.77.*:7001; do sleep 0.05; done
			$BIN/tcp connect 4 127.0.0.1 7001; kill \$p
			while $BIN/tcp connect 4 127.0.0.1 7001 | grep mine; do sleep 0.05; done >/dev/null
			$BIN/tcp connect 4 127.0.0.1 7001" 2>&1 | tee "$T/asked" | grep -o 'host\|mine' | xargs)" \
		"host mine host" || diag "$(cat "$T/asked")"
	end "$BG"

	# datagrams go by an address of the app's
	TIME_LIMIT=200 in_app --net host -- "$PYTHON" "$SRC/loopback.py" 7000 udp 50000 >"$T/host" 2>&1
	is "an app with $what: datagrams are as without ax" "$(diff "$T/datagrams" "$T/host")" ""
	ok "and those are 228, half of which are answered" \
		test "$(grep -c : "$T/datagrams")" -eq 228 -a "$(grep -c answered "$T/datagrams")" -ge 114

	# at a port of the app's choice they are for itself alone
	run_app --net host --name datagrams -- "$BIN/udp" serve 4 0.0.0.0 50000 mine
	wait_for "ss -Hlun | grep -q :50000"
	for to in 127.0.0.1 127.0.0.2; do
		unlike "an app with $what: another app's datagrams at $to do not reach it" \
			"$(in_app --net host -- timeout 3 "$BIN/udp" ask sendto 4 $to 50000 2>&1)" mine
		unlike "an app with $what: nor do those of a program outside ax" \
			"$(timeout 3 "$BIN/udp" ask sendto 4 $to 50000 2>&1)" mine
	done
	stop_apps

	# at a port of the kernel's, where they are on the wildcard, they are that, too: by no address of the machine's
	ip addr add 192.0.2.1/32 dev lo
	for server in "4 0.0.0.0" "6 ::"; do
		where="an app with $what, datagrams to ${server#* } port 0"
		# shellcheck disable=SC2086 # fields
		run_app --net host --name datagrams -- "$BIN/udp" serve $server 0 mine
		wait_for "grep -qs bound '$OUT'"
		port=$(sed -n '/^bound/s/.*://p' "$OUT")
		is "$where: another app's do not come there" "$(in_app --net host -- "$PYTHON" "$T/reach.py" "$port" "${HERE[@]}" 2>&1)" ""
		is "$where: nor do those of a program outside ax" "$("$PYTHON" "$T/reach.py" "$port" "${HERE[@]}" 2>&1)" ""
		stop_apps
	done
	is "an app with $what reaches its own at every address of the machine" \
		"$(in_app --net host -- sh -c "'$BIN/udp' serve 6 :: 0 mine >'$T/own' & p=\$!
			until grep -qs bound '$T/own'; do sleep 0.05; done
			'$PYTHON' '$T/reach.py' \$(sed -n '/^bound/s/.*://p' '$T/own') ${HERE[*]}; kill \$p" 2>&1 | xargs)" "${HERE[*]}"
	bg "$T/host-datagrams" "$BIN/udp" serve 6 :: 7002 host
	wait_for "ss -Hlun | grep -q :7002"
	is "an app with $what: at such ports come answers of the host's programs" \
		"$(in_app --net host -- "$PYTHON" "$T/reach.py" 7002 "${HERE[@]}" 2>&1 | xargs)" "${HERE[*]}"
	end "$BG"
	ip addr del 192.0.2.1/32 dev lo

	# nor by the address on which an app without IPv6 has its servers for IPv6
	run_app --net host --name only6 -- "$BIN/udp" serve 6only :: 50001 mine
	run_app --net host --name both -- "$BIN/udp" serve 6 :: 50002 mine
	wait_for "ss -Hlun | grep -q :50001 && ss -Hlun | grep -q :50002"
	addresses=$(ip -6 -o addr show dev lo | awk '$4 != "::1/128" { sub("/.*", "", $4); print $4 }')
	ok "an app with $what: there are addresses on lo" test -n "$addresses"
	for to in $addresses; do
		for port in 50001 50002; do
			if [ "$pools" = "$IPV4_ONLY" ]; then
				unlike "an app with $what: another app's datagrams at $to port $port do not reach it" \
					"$(in_app --net host -- timeout 3 "$BIN/udp" ask sendto 6 "$to" $port 2>&1)" mine
				unlike "an app with $what: nor do those of a program outside ax" \
					"$(timeout 3 "$BIN/udp" ask sendto 6 "$to" $port 2>&1)" mine
			fi
		done
	done
	stop_apps
	agent_stop
	ax agent --flush
done
done_testing
