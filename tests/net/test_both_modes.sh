#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# A service whose backends are of both modes, for clients outside ax: by its address and by a port that it
# exposes, from a neighbour and from this host itself, both families. Those of both modes are had; one that runs
# and does not listen yet keeps nobody from another; and what is open goes on while backends of the other mode
# come, drain and go, and while the agent dies.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/neighbour.sh"
need ip jq setpriv "$PYTHON"
build_c tcp udp

neighbour_begin

# config [STRATEGY [BACKENDS [EXPOSE]]]
config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
		  both:
		    ip: "10.77.9.1,fd77::9:1"
		    ports: ["80:7000", "81:7001/udp"]
		    backends: [${2:-p1, h1}]
		    strategy: ${1:-round-robin}
		    on-remove: keep
		    expose: [${3:-"8080:80"}]
	EOF
}
agent_start - < <(config)

# server MODE NAME IP [listens when that file is there]
server() {
	run_app --net "$1" --name "$2" --ip "$3" -- sh -c "${4:+while [ ! -e $4 ]; do sleep 0.02; done;} exec $BIN/tcp listen 6 :: 7000 $2 patient"
	launched "$2"
	[ -n "${4:-}" ] || wait_for "ax get servers -o json | jq -e '.[] | select(.app == \"$2\")'"
}

# --- clients that stay, and new ones ---

CLIENTS=() OUTS=()
# stay WHERE ADDR PORT
stay() {
	local run=() out=$T/client.${#OUTS[@]}
	[ "$1" = host ] || run=(nsenter -t "$LAN" -n)
	bg "$out" "${run[@]}" "$PYTHON" "$SRC/stay.py" "$2" "$3" 0
	CLIENTS+=("$BG") OUTS+=("$out")
}
WAYS=("lan 10.77.9.1 80" "lan fd77::9:1 80" "host 10.77.9.1 80" "host fd77::9:1 80" "lan 198.51.100.1 8080"
	"lan 2001:db8:1::1 8080" "host 127.0.0.1 8080" "host ::1 8080" "host 198.51.100.1 8080")
clients() {
	local way
	CLIENTS=() OUTS=()
	rm -f "$T"/client.*
	for way in "${WAYS[@]}"; do
		# shellcheck disable=SC2086 # its words
		stay $way
	done
}
end_clients() {
	local pid
	for pid in "${CLIENTS[@]}"; do end "$pid"; done
}
# all_at NAME: all stay there
all_at() {
	local out
	for out in "${OUTS[@]}"; do
		wait_for "grep -q '^still tcp $1' $out" || return 1
	done
}
# go_on WHAT NAME: each has gone on there since, and has never been anywhere else
go_on() {
	local i n=() failed=0
	for i in "${!OUTS[@]}"; do
		n[i]=$(grep -c "^still tcp $2" "${OUTS[$i]}")
	done
	for i in "${!OUTS[@]}"; do
		wait_for "[ \$(grep -c '^still tcp $2' ${OUTS[$i]}) -gt $((n[i] + 1)) ]" || failed=1
	done
	is "$1: what is open goes on" "$failed $(grep -hv '^still' "${OUTS[@]}" | sort | uniq -c | tr -s ' ')" \
		"0  ${#OUTS[@]} tcp $2"
}
# new WAY N: that many new connections by it; prints who answered how often, and what failed
new() {
	local run=() where=${1%% *}
	[ "$where" = host ] || run=(nsenter -t "$LAN" -n)
	# shellcheck disable=SC2086 # its words
	"${run[@]}" "$PYTHON" - $1 "$2" <<-'EOF2'
		import collections, errno, socket, sys
		_, addr, port, n = sys.argv[1:]
		seen = collections.Counter()
		for _ in range(int(n)):
		    s = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET)
		    s.settimeout(10)
		    try:
		        s.connect((addr, int(port)))
		        seen[s.recv(256).decode().split()[0]] += 1
		    except OSError as e:
		        seen[errno.errorcode.get(e.errno, "timeout")] += 1
		    s.close()
		print(*(f"{k}:{seen[k]}" for k in sorted(seen)))
	EOF2
}
# all_new WHAT N EXPECTED: by every way
all_new() {
	local way
	for way in "${WAYS[@]}"; do
		is "$1: new ones by $way" "$(new "$way" "$2")" "$3"
	done
}

# --- the first is in host mode ---

server host h1 10.77.1.3,fd77::1:3
clients
ok "in host mode alone" all_at h1 || diag "$(tail -n 3 "${OUTS[@]}")"
server private p1 10.77.1.1,fd77::1:1 "$T/p1"
go_on "a private one begins" h1
all_new "a private one that does not listen yet" 4 "h1:4"
touch "$T/p1"
wait_for "ax get servers -o json | jq -e '.[] | select(.app == \"p1\")'"
go_on "a private one listens" h1
all_new "both, in turn" 6 "h1:3 p1:3"
agent_kill9
go_on "no agent" h1
all_new "no agent" 4 "h1:2 p1:2"
agent_again
go_on "another agent" h1
all_new "another agent" 4 "h1:2 p1:2"
ok "h1 drains" ax service drain both h1
go_on "it drains" h1
all_new "it drains" 3 "p1:3"
ok "and no more" ax service drain both h1 --undo
ok "h1 is taken out" ax config apply <(config round-robin p1)
go_on "it is taken out" h1
all_new "it is taken out" 3 "p1:3"
ok "it is a backend again" ax config apply <(config)
go_on "it is back" h1
all_new "it is back" 4 "h1:2 p1:2"
ok "the private one is taken out" ax config apply <(config round-robin h1)
go_on "the private one is taken out" h1
all_new "the private one is taken out" 3 "h1:3"
ok "both again" ax config apply <(config)
end_clients

# --- whom strategies choose ---

ok "by the client's address" ax config apply <(config maglev)
for way in "${WAYS[@]}"; do
	like "by the client's address: $way" "$(new "$way" 5)" "^(h1|p1):5$"
done
ok "by connections" ax config apply <(config least-connections)
CLIENTS=() OUTS=()
rm -f "$T"/client.*
for way in "${WAYS[@]:0:4}"; do
	# shellcheck disable=SC2086 # its words
	stay $way
	wait_for "grep -q '^still' ${OUTS[-1]}"
done
is "by connections: both have as many" "$(cat "${OUTS[@]}" | grep '^tcp' | sort | uniq -c | tr -s ' \n' ' ')" \
	" 2 tcp h1 2 tcp p1 "
end_clients
ok "in turn" ax config apply <(config)
stop_apps

# --- the first is private ---

server private p1 10.77.1.1,fd77::1:1
clients
ok "a private one alone" all_at p1 || diag "$(tail -n 3 "${OUTS[@]}")"
server host h1 10.77.1.3,fd77::1:3 "$T/h1"
go_on "one in host mode begins" p1
all_new "one in host mode that does not listen yet" 4 "p1:4"
touch "$T/h1"
wait_for "ax get servers -o json | jq -e '.[] | select(.app == \"h1\")'"
go_on "one in host mode listens" p1
all_new "both, in turn" 6 "h1:3 p1:3"
stop_app "$APP"
go_on "the one in host mode ends" p1
all_new "the one in host mode has ended" 3 "p1:3"
agent_kill9
agent_again
go_on "another agent" p1
end_clients
stop_apps
end "$LAN"
ip link del lan0 2>/dev/null
neighbour_end
done_testing
