#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Signed triggers: a good datagram runs the configured command as the configured user, once; all
# others are counted and run nothing, also after the agent was killed.
. "$(dirname "$0")/lib.sh"
need curl jq python3 ip

# A peer with a veth pair to this host.
unshare -n sleep 1000 &
PEER_PID=$!
BACKGROUND+=("$PEER_PID")
wait_for "[ \"\$(readlink /proc/$PEER_PID/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
veth_or_skip tr0 type veth peer name eth0 netns "$PEER_PID"
ip addr add 198.51.100.1/24 dev tr0
ip -6 addr add 2001:db8:2::1/64 dev tr0 nodad
ip link set tr0 up
peer() {
	nsenter -t "$PEER_PID" -n "$@"
}
peer ip link set lo up
peer ip link set eth0 up
peer ip addr add 198.51.100.2/24 dev eth0
peer ip -6 addr add 2001:db8:2::2/64 dev eth0 nodad
wait_for "ip link show tr0 | grep -q LOWER_UP && peer ip link show eth0 | grep -q LOWER_UP"

mkdir "$T/out"
chmod 777 "$T/out"
head -c 32 /dev/urandom >"$T/key"
echo "another key, as long as it has to be" >"$T/other.key"
chmod 600 "$T/key" "$T/other.key"
cat >"$T/command" <<'SH'
#!/bin/sh
{
	echo "user=$(id -un) groups=$(id -Gn) dir=$(pwd) args=$#:$1:$2"
	env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD= | sort | tr '\n' ' '
	echo
} >"$3.new"
mv "$3.new" "$3.$$"
echo "printed by $AX_TRIGGER_NAME"
SH
printf 'echo no format >%s\n' "$T/out/shell" >"$T/noformat"
chmod 755 "$T/command" "$T/noformat"

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		xdp:
		  triggers:
		    deploy:
		      key-file: $T/key
		      command: [$T/command, "a b", "\$(id)", $T/out/deploy]
		      window: ${1:-30s}
		    other: {key-file: $T/other.key, command: ["$T/command", x, y, "$T/out/other"], user: daemon}
		    slow: {key-file: $T/key, command: [sleep, "${2:-6}"]}
		    noformat: {key-file: $T/key, command: [$T/noformat]}
		    none: {key-file: $T/key, command: [/nonexistent/program]}
		  interfaces:
		    tr0:
		      default: pass
		      rules:
		        - {name: triggers, proto: udp, dport: 9002, action: drop, trigger: yes, rate: "1000pps,burst=1000"}
	EOF
}
agent_start - < <(config)

# A text for now + SECONDS, made by another implementation than ax's: make NAME KEYFILE [SECONDS]
cat >"$T/make.py" <<'PY'
import hashlib, hmac, os, sys, time
name, path, off = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
key = open(path, "rb").read()
if key.endswith(b"\n"):
    key = key[:-1]
text = "%s %d.%s" % (name, int(time.time()) + off, os.urandom(16).hex())
print(text, hmac.new(key, text.encode(), hashlib.sha256).hexdigest())
PY
make() {
	"$PYTHON" "$T/make.py" "$@"
}
# send TEXT [ADDRESS]: from the peer
cat >"$T/send.py" <<'PY'
import socket, sys
text, address = sys.argv[1], sys.argv[2]
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(text.encode().decode("unicode_escape").encode("latin-1"), (address, 9002))
PY
send() {
	peer "$PYTHON" "$T/send.py" "$1" "${2:-198.51.100.1}"
}
counters() {
	ax status -o json | jq -c '.counters | to_entries | map(select(.key | startswith("trigger-")) |
		select(.value > 0) | (.key[8:] + "=" + (.value | tostring))) | join(" ")' -r
}
runs() {
	find "$T/out" -name "$1.[0-9]*" | wc -l
}
# counted WHAT TEXT: it adds one to that counter, and nothing runs
counted() {
	local before
	before=$(ax status -o json | jq ".counters[\"trigger-$2\"]")
	local ran
	ran=$(find "$T/out" | wc -l)
	send "$3"
	ok "$1 is counted as $2" wait_for "[ \$(ax status -o json |
		jq '.counters[\"trigger-$2\"]') -eq $((before + 1)) ]" || diag "$(counters)"
	is "and runs nothing: $1" "$(find "$T/out" | wc -l)" "$ran"
}

is "the interface is shown" "$(ax get interfaces -o json | jq -c '.[]')" \
	'{"name":"tr0","state":"active","rules":1,"triggers":true}'
bg "$T/events" "$AX" --instance "$INST" events -f -o json
EVENTS=$BG
bg "$T/table" "$AX" --instance "$INST" events
TABLE=$BG
events_told "$T/events" "$T/table"

good=$(make deploy "$T/key")
send "$good"
ok "a good datagram runs the command" wait_for "[ \$(runs deploy) -eq 1 ]" || diag "$(counters; tail -n 5 "$T/$INST.log")"
is "as the user, with nothing else's rights, and its own words" "$(sed -n 1p "$T/out"/deploy.*)" \
	'user=nobody groups=nogroup dir=/ args=3:a b:$(id)'
is "in an environment of its own" "$(sed -n 2p "$T/out"/deploy.*)" \
	"AX_TRIGGER_NAME=deploy AX_TRIGGER_SOURCE=198.51.100.2 HOME=/nonexistent LOGNAME=nobody PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SHELL=$(getent passwd nobody | cut -d: -f7) USER=nobody "
ok "its output is logged" wait_for "grep -qx 'printed by deploy' /run/ax/$INST/log/deploy.trigger.log"
is "and is not for everybody" "$(stat -c %a "/run/ax/$INST/log/deploy.trigger.log")" 640
rm -f "$T/out"/*
send "$(make other "$T/other.key")\\n" 2001:db8:2::1
ok "with a line's end, over IPv6, as another user" wait_for "[ \$(runs other) -eq 1 ]"
like "as that user" "$(cat "$T/out"/other.*)" "user=daemon.*AX_TRIGGER_SOURCE=2001:db8:2::2"
is "both are counted" "$(counters)" "accepted=2"
send "$(ax xdp sign deploy --key-file "$T/key")"
ok "ax xdp sign makes a good one" wait_for "[ \$(runs deploy) -eq 1 ]"
wait_for "[ \$(jq -c 'select(.event == \"trigger\")' <$T/events | wc -l) -eq 3 ]"
is "events" "$(jq -c 'select(.event == "trigger") | [.trigger, .interface, .remote, .pid > 1, .remote_port > 0]' <"$T/events" | tr '\n' ' ')" \
	'["deploy","tr0","198.51.100.2",true,true] ["other","tr0","2001:db8:2::2",true,true] ["deploy","tr0","198.51.100.2",true,true] '
like "as a table" "$(cat "$T/table")" "trigger +deploy \(pid [0-9]+\)  on tr0 from 198.51.100.2:[0-9]+"

counted "the same again" replayed "$good"
counted "the same with a line's end" replayed "$good\\n"
counted "another key's" bad-mac "$(make deploy "$T/other.key")"
counted "another trigger's MAC" bad-mac "$(make slow "$T/key" | sed 's/^slow/deploy/')"
counted "an unknown name" unknown "$(make nobody "$T/key")"
counted "one of the past" stale "$(make deploy "$T/key" -40)"
counted "one of the future" stale "$(make deploy "$T/key" 40)"
for text in "" "deploy" "$good x" "\$(touch $T/out/x)" "; touch $T/out/x" "$(head -c 1300 /dev/zero | tr '\0' a)"; do
	counted "'${text:0:20}'" malformed "$text"
done
ok "a clock that is a little off is no reason" wait_for "send '$(make deploy "$T/key" -25)';
	[ \$(runs deploy) -eq 2 ]"
send "$(make deploy "$T/key" 25)"
ok "nor is one that is ahead" wait_for "[ \$(runs deploy) -eq 3 ]"
ahead=$(make deploy "$T/key" 28)
send "$ahead"
wait_for "[ \$(runs deploy) -eq 4 ]"

# without a shell
accepted=$(ax status -o json | jq '.counters["trigger-accepted"]')
send "$(make noformat "$T/key")"
ok "a program without a format is not given to a shell" wait_for \
	"grep -q 'cannot execute $T/noformat' /run/ax/$INST/log/noformat.trigger.log"
ok "nothing ran" test ! -e "$T/out/shell"
send "$(make none "$T/key")"
ok "a program that is not there is told" wait_for \
	"grep -q 'the trigger none ended with status 127' $T/$INST.log"
is "both were accepted" "$(ax status -o json | jq '.counters["trigger-accepted"]')" $((accepted + 2))

# at most eight at a time
many=()
for _ in 1 2 3 4 5 6 7 8; do
	many+=("$(make slow "$T/key")")
done
extra=$(make slow "$T/key")
for text in "${many[@]}"; do
	send "$text"
done
ok "eight run" wait_for "[ \$(pgrep -P $AGENT -x sleep | wc -l) -eq 8 ]"
counted "a ninth" overload "$extra"
counted "and is used up" replayed "$extra"
ok "they end" wait_for "! pgrep -P $AGENT -x sleep"
is "and are reaped" "$(pgrep -c -P "$AGENT" -r Z)" 0
ok "then there is room" wait_for "send '$(make slow "$T/key")'; pgrep -P $AGENT -x sleep"
mapfile -t slow < <(pgrep -P "$AGENT" -x sleep)
kill "${slow[@]}"

# the next agent remembers
rm -f "$T/out"/*
recent=$(make deploy "$T/key") # (the first one of all is soon too old)
send "$recent"
ok "one runs before" wait_for "[ \$(runs deploy) -eq 1 ]"
rm -f "$T/out"/*
agent_kill9
send "$(make deploy "$T/key")"
agent_again
ok "what came while no agent ran is not lost" wait_for "[ \$(runs deploy) -eq 1 ]"
before=$(runs deploy)
counted "after a restart: the same again" replayed "$recent"
counted "after a restart: one from ahead" replayed "$ahead"
send "$(make deploy "$T/key")"
ok "new ones run" wait_for "[ \$(runs deploy) -eq $((before + 1)) ]"

# the key
chmod 644 "$T/key"
counted "with a key that others can read" failed "$(make deploy "$T/key")"
like "the reason is logged" "$(cat "$T/$INST.log")" "can be read or changed by others: chmod 600"
out=$(ax config apply "$T/$INST.yaml" 2>&1)
like "and told to who applies it" "$out" "the trigger [a-z]+ cannot be used: the key file .* can be read"
chmod 600 "$T/key"
head -c 32 /dev/urandom >"$T/newkey"
old=$(make deploy "$T/key")
cp "$T/newkey" "$T/key"
counted "a new key holds at once" bad-mac "$old"
config 2s 0.1 >"$T/window.yaml"
like "another window is a change" "$(ax config apply --dry-run "$T/window.yaml")" "~ trigger deploy"
ok "it is applied" ax config apply "$T/window.yaml"
counted "a smaller window holds" stale "$(make deploy "$T/key" -4)"

# nobody reads: nothing stops
default_config >"$T/none.yaml"
ok "no xdp section" ax config apply "$T/none.yaml"
is "no interface" "$(ax get interfaces -o json)" "[]"
like "no program" "$(ip -d link show tr0)" "tr0"
unlike "no program" "$(ip -d link show tr0)" "prog/xdp"
end "$EVENTS"
end "$TABLE"
end "$PEER_PID"
ip link del tr0 2>/dev/null # (without waiting for its other end)
done_testing
