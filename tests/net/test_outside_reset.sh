#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# A program outside ax that goes on by a connection to a service with private backends, whose own one is gone, is
# told so: it gets a reset, and does not wait for nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/neighbour.sh"
need "$PYTHON"
build_c tcp

neighbour_begin
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  shop: {ip: "10.77.200.1,fd77::200:1", ports: ["80:7000"], backends: [one, two], strategy: round-robin}
EOF

# goes-on.py ADDR FILE: connects, tells who answers, waits for the file, and sends until it is told of an error
cat >"$T/goes-on.py" <<'EOF'
import errno, os, socket, sys, time
s = socket.create_connection((sys.argv[1], 80))
name = s.recv(256).decode().split()[0]
print(name, flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
end = time.monotonic() + (20 if name == "one" else 0)
try:
    while time.monotonic() < end:
        s.send(b"?")
        time.sleep(0.05)
    print("time is over")
except OSError as e:
    print(errno.errorcode[e.errno])
EOF

for who in host neighbour; do
	for to in 10.77.200.1 fd77::200:1; do
		rm -f "$T/gone"
		serve 7000 --name one -- "$BIN/tcp" listen 6 :: 7000 one patient
		one=$APP
		serve 7000 --name two -- "$BIN/tcp" listen 6 :: 7000 two patient
		two=$APP
		in_lan=()
		[ $who = host ] || in_lan=(nsenter -t "$LAN" -n)
		outs=()
		for n in 1 2 3 4; do
			outs+=("$T/goes.$who.$to.$n")
			bg "$T/goes.$who.$to.$n" "${in_lan[@]}" "$PYTHON" "$T/goes-on.py" $to "$T/gone"
		done
		for out in "${outs[@]}"; do
			wait_for "grep -qE '^(one|two)' $out"
		done
		# (what is left of its connections goes with its network)
		stop_app "$one"
		touch "$T/gone"
		for out in "${outs[@]}"; do
			if grep -q '^one' "$out"; then
				ok "$who, $to: who had the one that is gone is told so" \
					wait_for "grep -qE 'ECONNRESET|EPIPE' $out"
			fi
		done
		stop_app "$two"
		like "$who, $to: with both, that is all of them" "$(cat "${outs[@]}" | grep -c one)" "^[1-4]$"
	done
done
neighbour_end
done_testing
