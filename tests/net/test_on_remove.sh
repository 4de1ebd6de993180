#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# on-remove: sockets that are connected to a backend that a service has lost are ended: UDP ones, TCP ones
# on request, or none; those of other ways to the same backend go on.
. "$(dirname "$0")/lib.sh"
need "$PYTHON" jq setpriv
build_c tcp udp

# stay.py ADDR: connects by TCP (port 80) and UDP (port 81), and asks by both every 50 ms; prints who answers
# when it changes, and errors, after which it connects anew.
cat >"$T/stay.py" <<'EOF'
import errno, socket, sys, time
addr = sys.argv[1]
family = socket.AF_INET6 if ":" in addr else socket.AF_INET
socks, names = {}, {}

def say(kind, text):
    if names.get(kind) != text:
        names[kind] = text
        print(kind, text, flush=True)

while True:
    for kind, port in ("tcp", 80), ("udp", 81):
        try:
            if kind not in socks:
                s = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
                s.settimeout(10)
                s.connect((addr, port))
                socks[kind] = s
                if kind == "tcp":
                    say(kind, s.recv(256).decode().split()[0])
            s = socks[kind]
            s.send(b"?\n")
            got = s.recv(256)
            if kind == "udp":
                say(kind, got.decode().split()[0])
        except OSError as e:
            say(kind, errno.errorcode.get(e.errno, "timeout"))
            socks.pop(kind).close() if kind in socks else None
    time.sleep(0.05)
EOF

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

agent_start
both() {
	run_app --net "$1" --name "$2" --ip "$3" -- sh -c "setpriv --pdeathsig TERM \"$BIN/udp\" serve 6 :: 7001 $2 & exec \"$BIN/tcp\" listen 6 :: 7000 $2"
	wait_for -t 30 "ax get servers -o json | jq -e '[.[] | select(.app == \"$2\")] | length >= 2'"
}
both private one 10.217.90.1
both host two 10.217.90.2

# add ON-REMOVE: a service of `one`
add() {
	ax service add shop --ip 10.217.91.1 -p 80:7000 -p 81:7001/udp -b one --on-remove "$1"
}
# stay MODE ADDR: sets $OUT and $APP; it is connected
stay() {
	run_app --net "$1" -- "$PYTHON" "$T/stay.py" "$2"
	wait_for "grep -q udp $OUT && grep -q tcp $OUT"
}

for mode in private host; do
	ok "udp" add udp
	stay $mode 10.217.91.1
	through=$OUT client=$APP
	run_app --net $mode -- "$BIN/udp" follow 4 10.217.90.1 7001 60
	direct=$OUT direct_app=$APP
	wait_for "grep -q one $direct"
	ok "$mode: another backend" ax service set shop --backend two
	ok "$mode: UDP connects anew" wait_for "grep -q 'udp two' $through"
	like "$mode: it was told so" "$(cat "$through")" "udp E(CONNABORTED|DESTADDRREQ)"
	unlike "$mode: TCP goes on" "$(cat "$through")" "tcp (two|E)"
	is "$mode: who is connected to it directly goes on" "$(cat "$direct")" one
	ok "$mode: it is counted" wait_for "ax get services shop -o json | jq -e '.[].ended == 1'"
	stop_app "$direct_app"
	stop_app "$client"

	ok "$mode: destroy" ax service set shop --on-remove destroy
	stay $mode 10.217.91.1
	through=$OUT client=$APP
	agent_kill9
	agent_again
	ok "$mode: by the next agent" ax service set shop --backend one
	ok "$mode: both connect anew" wait_for "grep -q 'udp one' $through && grep -q 'tcp one' $through"
	is "$mode: both were told so" "$(grep -cE ' E(CONNABORTED|DESTADDRREQ)' "$through")" 2
	ok "$mode: it is shown" wait_for "ax get services shop -o wide | grep -q 'destroy, 2 ended'"
	stop_app "$client"

	ok "$mode: keep" ax service set shop --on-remove keep
	stay $mode 10.217.91.1
	through=$OUT client=$APP
	ok "$mode: drain" ax service drain shop one
	ok "$mode: another one" ax service set shop --backend two
	ok "$mode: keep: time passes" wait_for "ax service set shop --backend two"
	is "$mode: both go on" "$(sort "$through" | tr '\n' ' ')" "tcp one udp one "
	stop_app "$client"

	# who drains is not lost; when it goes for good, it is
	ok "$mode: the first one again" ax service set shop --backend one --backend two --on-remove destroy
	ax service drain shop two
	ax service drain shop one --undo
	stay $mode 10.217.91.1
	through=$OUT client=$APP
	ok "$mode: drain" ax service drain shop one
	is "$mode: who drains goes on" "$(sort "$through" | tr '\n' ' ')" "tcp one udp one "
	ax service drain shop two --undo
	ok "$mode: removed while it drains" ax service set shop --backend two
	ok "$mode: both connect anew" wait_for "grep -q 'udp two' $through && grep -q 'tcp two' $through"
	# down, as its check finds: at another port than the connections'
	run_app --net "$mode" --name "door$mode" --ip 10.217.90.3 -- sh -c "setpriv --pdeathsig TERM \"$BIN/udp\" serve 6 :: 7001 door & setpriv --pdeathsig TERM \"$BIN/tcp\" listen 6 :: 7000 door & exec \"$PYTHON\" \"$T/door.py\" \"$T/shut.$mode\""
	door=$APP
	wait_for -t 30 "ax get servers -o json | jq -e '[.[] | select(.app == \"door$mode\")] | length >= 3'"
	ok "$mode: one that is checked" ax service set shop --backend "door$mode" --check tcp --check-port 7002 --check-every 100ms
	ok "$mode: both connect to it" wait_for "grep -q 'udp door' $through && grep -q 'tcp door' $through"
	ok "$mode: it is up" wait_for "ax get services shop -o json | jq -e '.[].backends[0].state == \"up\"'"
	touch "$T/shut.$mode"
	ok "$mode: it is down" wait_for "grep -q 'service shop: the backend door$mode .* is down' $T/$INST.log"
	ok "$mode: two comes" ax service set shop --backend "door$mode" --backend two
	ok "$mode: both go there" wait_for "grep udp $through | tail -n 1 | grep -q two && grep tcp $through | tail -n 1 | grep -q two"
	stop_app "$door"
	ok "$mode: del" ax service del shop
	ok "$mode: nobody is there" wait_for "grep tcp $through | tail -n 1 | grep -q 'tcp E' && grep udp $through | tail -n 1 | grep -q 'udp E'"
	stop_app "$client"
done

# lost while no agent runs
lost() {
	sed '/^services:/,$d' "$T/$INST.yaml" >"$T/lost.yaml"
	cat >>"$T/lost.yaml" <<-EOF
		services:
		  gone:
		    ip: 10.217.91.2
		    ports: ["80:7000", "81:7001/udp"]
		    backends: [$1]
		    on-remove: $2
	EOF
	mv "$T/lost.yaml" "$T/$INST.yaml"
}
for how in destroy keep; do
	lost "one, two" $how
	ok "$how: a service of the config" ax config apply "$T/$INST.yaml"
	outs=() clients=()
	for mode in private host; do
		ax service drain gone two
		stay $mode 10.217.91.2
		outs+=("$OUT")
		clients+=("$APP")
	done
	ax service drain gone two --undo
	agent_kill9
	lost two $how
	agent_again
	if [ $how = destroy ]; then
		for out in "${outs[@]}"; do
			ok "what it has lost meanwhile is ended by the next agent" \
				wait_for "grep -q 'udp two' $out && grep -q 'tcp two' $out"
			is "and it is told so" "$(grep -cE ' E(CONNABORTED|DESTADDRREQ)' "$out")" 2
		done
	else
		ok "keep: time passes" ax config apply "$T/$INST.yaml"
		is "keep: both go on" "$(sort -u "${outs[@]}" | tr '\n' ' ')" "tcp one udp one "
	fi
	for client in "${clients[@]}"; do stop_app "$client"; done
done

# another port of the same address, or no service at all, while no agent runs
target() {
	lost "one" destroy
	sed -i "s/80:7000/80:$1/; s/81:7001/81:$2/" "$T/$INST.yaml"
}
target 7000 7001
ok "the ports of a service" ax config apply "$T/$INST.yaml"
outs=() clients=()
for mode in private host; do
	stay $mode 10.217.91.2
	outs+=("$OUT")
	clients+=("$APP")
done
agent_kill9
agent_again
ok "an agent that finds all as it was: time passes" ax config apply "$T/$INST.yaml"
is "it ends nothing" "$(sort -u "${outs[@]}" | tr '\n' ' ')" "tcp one udp one "
agent_kill9
target 7000 7003
agent_again
for out in "${outs[@]}"; do
	ok "what went to a port that it has lost meanwhile is ended by the next agent" \
		wait_for "grep -q 'udp E' $out"
	is "and nothing else" "$(grep -c 'tcp E' "$out")" 0
done
for client in "${clients[@]}"; do stop_app "$client"; done

# services that the config does not have any more, removed while no agent runs
{
	sed '/^services:/,$d' "$T/$INST.yaml"
	echo services:
	for how in 2=destroy 3=udp 4=keep 5=destroy 6=destroy; do
		echo "  ${how#*=}${how%=*}: {ip: 10.217.91.${how%=*}, ports: [\"80:7000\", \"81:7001/udp\"],"
		echo "    backends: [one], on-remove: ${how#*=}}"
	done
} >"$T/five.yaml"
ok "five services" ax config apply "$T/five.yaml"
cp "$T/five.yaml" "$T/$INST.yaml"
run_app --name other -- sleep 600
launched other
other6=$(ax get apps -o json | jq -r '.[] | select(.name == "other").ip6')
declare -A out_of
clients=()
for mode in private host; do
	for n in 2 3 4 5 6; do
		stay $mode 10.217.91.$n
		out_of[$mode$n]=$OUT
		clients+=("$APP")
	done
done
agent_kill9
# (one wants the address of an app that runs besides its own, so it cannot be declared)
sed "/ip: 10.217.91.[234],/,+1d; s/ip: 10.217.91.6,/ip: \"10.217.91.6,$other6\",/" "$T/five.yaml" >"$T/$INST.yaml"
agent_again
is "a service of the config that could not be declared is not there" \
	"$(ax get services -o json | jq -r '[.[].name] | join(" ")')" destroy5
for mode in private host; do
	ok "$mode: destroy: TCP through a service that was removed while no agent ran is ended" \
		wait_for "grep -q 'tcp E' ${out_of[${mode}2]}"
	for n in 2 3; do
		ok "$mode: UDP is, as the config had it ($n)" wait_for "grep -q 'udp E' ${out_of[$mode$n]}"
	done
	is "$mode: udp: TCP goes on" "$(grep -c 'tcp E' "${out_of[${mode}3]}")" 0
	is "$mode: keep: both go on" "$(sort "${out_of[${mode}4]}" | tr '\n' ' ')" "tcp one udp one "
	is "$mode: a service that is there: both go on" "$(sort "${out_of[${mode}5]}" | tr '\n' ' ')" \
		"tcp one udp one "
	is "$mode: and so does what goes through one that could not be declared" \
		"$(sort "${out_of[${mode}6]}" | tr '\n' ' ')" "tcp one udp one "
done
like "the log says so" "$(cat "$T/$INST.log")" \
	'connections? through 10.217.91.2:80 had to be ended: the service was removed while no agent ran'
for client in "${clients[@]}"; do stop_app "$client"; done

sed '/^services:/,$d' "$T/$INST.yaml" >"$T/none.yaml"
ok "no service any more" ax config apply "$T/none.yaml"
done_testing
