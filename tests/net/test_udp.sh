#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# UDP: connected and unconnected sockets of every kind, by address, name and service; the source of
# every reply is the address that was asked (the program udp ends with 1 otherwise).
. "$(dirname "$0")/lib.sh"
need socat
build_c udp

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  usvc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["9000:7000/udp"]
    backends: [echo]
  usvc2:
    ip: 10.77.200.2,fd77::200:2
    ports: ["9000:7000/udp"]
    backends: [echo2]
EOF

for mode in private host; do
	serve 7000/udp --net $mode --ip 10.77.1.1,fd77::1:1 --name echo -- "$BIN/udp" serve 6 :: 7000 echo
	first=$APP
	serve 7000/udp --net $mode --ip 10.77.1.2,fd77::1:2 --name echo2 -- "$BIN/udp" serve 6 :: 7000 echo2
	second=$APP
	for client in private host; do
		run=(in_app --net "$client" --ip "10.77.1.9,fd77::1:9" -- "$BIN/udp" ask)
		for method in connected sendto sendmsg sendmmsg; do
			what="$mode server, $client client, $method"
			ok "$what: IPv4, direct" "${run[@]}" $method 4 10.77.1.1 7000
			ok "$what: IPv6, direct" "${run[@]}" $method 6 fd77::1:1 7000
			ok "$what: v4-mapped, direct" "${run[@]}" $method 6 10.77.1.1 7000
			ok "$what: IPv4, service" "${run[@]}" $method 4 10.77.200.1 9000
			ok "$what: IPv6, service" "${run[@]}" $method 6 fd77::200:1 9000
			ok "$what: v4-mapped, service" "${run[@]}" $method 6 10.77.200.1 9000
			ok "$what: IPv6 only, service" "${run[@]}" $method 6only fd77::200:1 9000
			ok "$what: one socket asks several, IPv4" "${run[@]}" $method 4 10.77.200.1 9000 \
				10.77.1.2 7000 10.77.200.1 9000
			# at the same time, what comes from one server can only be told from one question
			if [ $method = sendmmsg ]; then
				several=(fd77::200:1 9000 fd77::200:2 9000)
			else
				several=(fd77::200:1 9000 fd77::200:2 9000 fd77::1:2 7000)
			fi
			ok "$what: one socket asks several, IPv6" "${run[@]}" $method 6 "${several[@]}"
			# a connected socket that has an IPv6 source does not get to IPv4 any more, ax or not
			[ $method = connected ] ||
				ok "$what: one socket asks several, IPv6 and mapped" "${run[@]}" $method 6 \
					fd77::200:1 9000 10.77.200.2 9000 fd77::1:2 7000
		done
		like "$mode server sees the $client client's IPv4 address" \
			"$("${run[@]}" sendto 4 10.77.200.1 9000 2>&1)" "you=\[::ffff:10.77.1.9\]:"
		like "$mode server sees the $client client's IPv6 address" \
			"$("${run[@]}" sendto 6 fd77::200:1 9000 2>&1)" "you=\[fd77::1:9\]:"
		like "$client client, connected: getpeername is the service's" \
			"$("${run[@]}" connected 4 10.77.200.1 9000 2>&1)" \
			"peer=10.77.200.1:9000 local=10.77.1.9:"
		like "$client client, connected, IPv6: getpeername is the service's" \
			"$("${run[@]}" connected 6 fd77::200:1 9000 2>&1)" \
			"peer=\[fd77::200:1\]:9000 local=\[fd77::1:9\]:"
	done
	# bind() has put such a socket on the app's IPv4 address
	for to in fd77::1:1 fd77::200:1; do
		port=7000
		[ $to = fd77::1:1 ] || port=9000
		is "$mode server, host client, dual-stack socket with a port of its own, connected to $to" \
			"$(in_app --net host --ip "10.77.1.9,fd77::1:9" -- "$PYTHON" -c '
import socket, sys
to, port = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.settimeout(5)
s.bind(("::", 6000))
s.connect((to, port))
s.send(b"hello")
data, who = s.recvfrom(2000)
print("echo" in data.decode(), who[:2] == s.getpeername()[:2] == (to, port))' $to $port 2>&1)" \
			"True True"
	done
	# and is brought what comes to the IPv6 one, wherever its port is, once the agent has seen it
	for own in 6000 50000; do
		for to in fd77::1:1 ::ffff:10.77.1.1; do
			is "$mode server, host client, dual-stack socket with port $own asks $to" \
				"$(in_app --net host --ip "10.77.1.9,fd77::1:9" -- "$PYTHON" -c '
import socket, sys
to, own = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.settimeout(1)
s.bind(("::", own))
for i in range(10):
    s.sendto(b"hello", (to, 7000))
    try:
        data, who = s.recvfrom(2000)
        print("echo" in data.decode(), who[:2] == (to, 7000))
        break
    except TimeoutError:
        pass' $to $own 2>&1)" "True True"
		done
	done
	stop_app $first
	stop_app $second
done

# socat: connected (UDP4:) and unconnected (UDP4-DATAGRAM:, which takes answers from anybody, and
# with a range option only from whom it asked)
for mode in private host; do
	serve 7000/udp --net $mode --ip 10.77.1.1,fd77::1:1 --name echo -- \
		socat UDP6-RECVFROM:7000,fork,ipv6only=0 SYSTEM:'read line; echo "got $line"'
	pid=$APP
	for client in private host; do
		for to in UDP4:10.77.1.1:7000 "UDP6:[fd77::1:1]:7000" UDP4:10.77.200.1:9000 \
			"UDP6:[fd77::200:1]:9000" UDP4:usvc:9000 UDP6:usvc.ax.internal:9000 \
			UDP4-DATAGRAM:10.77.200.1:9000,range=10.77.200.1/32 \
			"UDP6-DATAGRAM:[fd77::200:1]:9000,range=[fd77::200:1]/128"; do
			is "socat: $mode server, $client client, $to" \
				"$(in_app --net $client -- sh -c "echo hello | socat -t 1 -T 3 - '$to'" 2>&1)" \
				"got hello"
		done
	done
	stop_app $pid
done

serve 7000/udp --ip 10.77.1.1 --name echo -- "$BIN/udp" serve 4 0.0.0.0 7000
ok "a program outside ax asks a private server" "$BIN/udp" ask sendto 4 10.77.1.1 7000
stop_app $APP
serve 7000/udp --net host --ip 10.77.1.1 --name echo -- "$BIN/udp" serve 4 0.0.0.0 7000
ok "a program outside ax asks a server in host mode" "$BIN/udp" ask sendto 4 10.77.1.1 7000
stop_app $APP
done_testing
