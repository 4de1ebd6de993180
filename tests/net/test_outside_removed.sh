#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# Clients outside ax of a backend that has drained past its deadline, is down, or is removed: their datagrams go
# to another one, and their TCP connections are reset where the service says so; by the service's address and by
# a port that it exposes, both modes, both families, from a neighbour and from this host itself.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/neighbour.sh"
need ip jq setpriv "$PYTHON"
build_c tcp udp

# door.py FILE: listens at port 7002 until the file is there
cat >"$T/door.py" <<'EOF'
import os, socket, sys, time
s = socket.socket(socket.AF_INET6)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("::", 7002))
s.listen(64)
s.settimeout(0.1)
while not os.path.exists(sys.argv[1]):
    try:
        s.accept()[0].close()
    except TimeoutError:
        pass
s.close()
time.sleep(3600)
EOF

# --- a neighbour, which knows the way to virtual IPs ---

neighbour_begin

# config [ON-REMOVE]: a service of each mode that exposes its ports
config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
		  private:
		    ip: "10.77.9.1,fd77::9:1"
		    ports: ["80:7000", "81:7001/udp"]
		    backends: [{app: p1}, {app: p2}]
		    on-remove: ${1:-destroy}
		    expose: ["8080:80", "8081:81/udp"]
		  host:
		    ip: "10.77.9.2,fd77::9:2"
		    ports: ["80:7000", "81:7001/udp"]
		    backends: [{app: h1}, {app: h2}]
		    on-remove: ${1:-destroy}
		    expose: ["9080:80", "9081:81/udp"]
	EOF
}
agent_start - < <(config)
# both MODE NAME IP: answers by TCP and UDP, and listens for checks until $T/shut.NAME is there
both() {
	run_app --net "$1" --name "$2" --ip "$3" -- sh -c "setpriv --pdeathsig TERM \"$BIN/udp\" serve 6 :: 7001 $2 & setpriv --pdeathsig TERM \"$PYTHON\" \"$T/door.py\" \"$T/shut.$2\" & exec \"$BIN/tcp\" listen 6 :: 7000 $2"
	wait_for -t 30 "ax get servers -o json | jq -e '[.[] | select(.app == \"$2\").port] | unique == [7000, 7001, 7002]'"
}
both private p1 10.77.1.1,fd77::1:1
both private p2 10.77.1.2,fd77::1:2
both host h1 10.77.1.3,fd77::1:3
both host h2 10.77.1.4,fd77::1:4

# --- the clients ---

STAYED=0
# stay WHERE ADDR TCP UDP
stay() {
	local run=() out
	STAYED=$((STAYED + 1)) out=$T/client.$STAYED
	[ "$1" = host ] || run=(nsenter -t "$LAN" -n)
	bg "$out" "${run[@]}" "$PYTHON" "$SRC/stay.py" "$2" "$3" "$4"
	CLIENTS+=("$BG")
	OUTS+=("$out")
	[ "$3" = 0 ] || TCP=$((TCP + 1)) KINDS[${#OUTS[@]} - 1]=tcp
	[ "$4" = 0 ] || UDP=$((UDP + 1)) KINDS[${#OUTS[@]} - 1]+=udp
}
# clients MODE: by every way that there is. (Datagrams to a service's address are for private backends.)
clients() {
	CLIENTS=() OUTS=() KINDS=() TCP=0 UDP=0
	if [ "$1" = private ]; then
		stay lan 10.77.9.1 80 81
		stay lan fd77::9:1 80 81
		stay host 10.77.9.1 80 81
		stay host fd77::9:1 80 81
		set -- "$1" 8080 8081
	else
		stay lan 10.77.9.2 80 0
		stay lan fd77::9:2 80 0
		stay host 10.77.9.2 80 0
		set -- "$1" 9080 9081
	fi
	stay lan 198.51.100.1 "$2" "$3"
	stay lan 2001:db8:1::1 "$2" "$3"
	stay host 127.0.0.1 "$2" "$3"
	stay host ::1 "$2" "$3"
}
# last KIND FILE: what it was told last by that protocol
last() {
	grep "^$1 " "$2" | tail -n 1 | cut -d' ' -f2
}
# all_at KIND NAME: all clients are at that backend by that protocol
all_at() {
	local i
	for i in "${!OUTS[@]}"; do
		[[ ${KINDS[$i]} != *$1* ]] || [ "$(last "$1" "${OUTS[$i]}")" = "$2" ] || return 1
	done
}
# all_go_on KIND NAME: each of them has gone on asking there since
all_go_on() {
	local i n=()
	for i in "${!OUTS[@]}"; do
		n[i]=$(grep -c "^still $1 $2" "${OUTS[$i]}")
	done
	for i in "${!OUTS[@]}"; do
		[[ ${KINDS[$i]} == *$1* ]] || continue
		wait_for "[ \$(grep -c '^still $1 $2' ${OUTS[$i]}) -gt $((n[i] + 1)) ]" || return 1
		[ "$(last "$1" "${OUTS[$i]}")" = "$2" ] || return 1
	done
}
told() {
	local out
	for out in "${OUTS[@]}"; do
		grep '^tcp ' "$out" | grep -v ' [ph][12]$' | tail -n 1
	done | sort -u
}
shown() {
	tail -n 3 "${OUTS[@]}"
}
both_at() { # WHAT NAME
	ok "$1: datagrams go to $2" wait_for "all_at udp $2" || shown
	ok "$1: so does TCP" wait_for "all_at tcp $2" || shown
}
ended() { # SERVICE: how many, by removal
	ax get services "$1" -o json | jq '.[].ended // 0'
}

for mode in private host; do
	one=${mode:0:1}1 two=${mode:0:1}2
	ax service drain $mode "$two"
	clients $mode
	both_at "$mode: $two drains" "$one"
	ax service drain $mode "$two" --undo

	# before its deadline a backend keeps what it has
	ok "$mode: $one drains" ax service drain $mode "$one" --deadline 60m
	ok "$mode: before the deadline datagrams stay" all_go_on udp "$one" || shown
	ok "$mode: and TCP does" all_go_on tcp "$one" || shown
	ok "$mode: its deadline comes" ax service drain $mode "$one" --deadline 100ms
	both_at "$mode: the deadline is over" "$two"
	is "$mode: TCP was reset" "$(told)" "tcp ECONNRESET"
	ok "$mode: and that is counted, as apps' are" \
		wait_for "grep -q 'service $mode: $one has drained, $((TCP + UDP)) connections had to be ended' $T/$INST.log" ||
		diag "$(grep "has drained" "$T/$INST.log")"
	ok "$mode: they stay there" all_go_on udp "$two" || shown
	ok "$mode: $one is there again" ax service drain $mode "$one" --undo

	# down
	was=$(ended $mode)
	ok "$mode: they are checked" ax config apply <(config | sed "/^  $mode:/a\\    check: {type: tcp, port: 7002, every: 100ms}")
	ok "$mode: both are up" wait_for "[ \$(ax get services $mode -o json | jq '[.[].backends[] | select(.state == \"up\")] | length') = 4 ]"
	touch "$T/shut.$two"
	both_at "$mode: $two is down" "$one"
	is "$mode: TCP was reset again" "$(told)" "tcp ECONNRESET"
	ok "$mode: that is counted" wait_for "[ \$(ended $mode) = $((was + TCP + UDP)) ]" || diag "$(ended $mode)"
	ok "$mode: no check" ax config apply <(config)

	# removed
	was=$(ended $mode)
	ok "$mode: $one is removed" ax config apply <(config | sed "s/{app: $one}, //")
	both_at "$mode: it is gone" "$two"
	ok "$mode: that is counted" wait_for "[ \$(ended $mode) = $((was + TCP + UDP)) ]" || diag "$(ended $mode)"

	# on-remove: udp, keep
	ok "$mode: TCP may stay" ax config apply <(config udp | sed "s/{app: $one}, //")
	ok "$mode: another one instead" ax config apply <(config udp | sed "s/, {app: $two}//")
	ok "$mode: datagrams go there" wait_for "all_at udp $one" || shown
	ok "$mode: TCP stays where it is" all_go_on tcp "$two" || shown
	ok "$mode: all may stay" ax config apply <(config keep | sed "s/, {app: $two}//")
	ok "$mode: another one again" ax config apply <(config keep | sed "s/{app: $one}, //")
	ok "$mode: datagrams stay" all_go_on udp "$one" || shown
	ok "$mode: and TCP does" all_go_on tcp "$two" || shown

	# while no agent runs
	ok "$mode: as at first" ax config apply <(config)
	ax service drain $mode "$one"
	ax service drain $mode "$one" --deadline 100ms
	both_at "$mode: all are at $two" "$two"
	ax service drain $mode "$one" --undo
	agent_kill9
	config | sed "s/, {app: $two}//" >"$T/$INST.yaml"
	agent_again
	both_at "$mode: what was removed while no agent ran is gone" "$one"
	config >"$T/$INST.yaml"
	ok "$mode: both again" ax config apply "$T/$INST.yaml"

	# the service
	ok "$mode: the service is removed" ax config apply <(config | sed "/^  $mode:/,/expose/d")
	for i in "${!OUTS[@]}"; do
		ok "$mode: client $i has no connection any more" wait_for "last tcp ${OUTS[$i]} | grep -qvE '^[ph][12]\$'"
	done
	for pid in "${CLIENTS[@]}"; do end "$pid"; done
	ok "$mode: it is there again" ax config apply <(config)
done

# --- a port that comes to another service ---

CLIENTS=() OUTS=() KINDS=() TCP=0 UDP=0
stay lan 198.51.100.1 0 8081
ok "a client of a port" wait_for "grep -q '^udp p' ${OUTS[0]}" || shown
ok "the port comes to another service" ax config apply <(config |
	sed 's/, "8081:81.udp"//; s/"9081:81.udp"/"9081:81\/udp", "8081:81\/udp"/')
ok "and so do its clients" wait_for "grep -q '^udp h' ${OUTS[0]}" || shown
end "${CLIENTS[0]}"
stop_apps
end "$LAN"
ip link del lan0 2>/dev/null
neighbour_end
done_testing
