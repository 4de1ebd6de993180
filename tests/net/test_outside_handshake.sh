#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# A client outside ax whose handshake with a backend in host mode has not ended when the service loses that backend:
# with on-remove: destroy it is reset, as those are that were through with it, and does not stay there.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/neighbour.sh"
need ip jq nft ss "$PYTHON"
build_c tcp

neighbour_begin
agent_start - <<-EOC
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
EOC
for name in h1 h2; do
	serve 7000 --net host --name $name -- "$BIN/tcp" listen 6 :: 7000 $name
done

# late.py ADDRESS PORT GO: connects, and when GO is there says who answers, or the error
cat >"$T/late.py" <<'EOP'
import errno, os, socket, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("connected", flush=True)
while not os.path.exists(sys.argv[3]):
    time.sleep(0.02)
s.settimeout(60)
try:
    s.send(b"question\n")
    print(s.recv(200).decode().split()[0])
except OSError as e:
    print(errno.errorcode.get(e.errno, "nothing"))
EOP

half_open() {
	ss -Htn state syn-recv | grep -c "$1"
}

# try ADDRESS PORT SEEN: by that way; SEEN is the address that is shown of the socket
try() {
	local go=$T/go.$2.${3//[^0-9a-f]/_} out client
	out=$go.out
	ok "$1: the service" ax service set shop --backend h1
	nsenter -t "$LAN" -n nft -f - <<-EOC
		table inet late {
			chain out {
				type filter hook output priority 0;
				tcp dport $2 tcp flags & (syn | ack) == ack drop
			}
		}
	EOC
	bg "$out" nsenter -t "$LAN" -n "$PYTHON" "$T/late.py" "$1" "$2" "$go"
	client=$BG
	ok "$1: a client has got the server's answer" wait_for "grep -q connected '$out'"
	ok "$1: the server has not heard of that" wait_for "[ \$(half_open '$3') -ge 1 ]"
	ok "$1: the backend is lost" ax service set shop --backend h2
	ok "$1: nobody is half open there" wait_for "[ \$(half_open '$3') -eq 0 ]"
	nsenter -t "$LAN" -n nft delete table inet late
	touch "$go"
	wait "$client"
	is "$1: it is reset" "$(tail -n 1 "$out")" ECONNRESET
}
ok "a service" ax service add shop --ip 10.77.9.1,fd77::9:1 -p 80:7000 -b h1 --expose 8080:80 --on-remove destroy
try 10.77.9.1 80 10.77.9.1
try fd77::9:1 80 fd77::9:1
try 198.51.100.1 8080 198.51.100.1
ok "it goes" ax service del shop
neighbour_end
done_testing
