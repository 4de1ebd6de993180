#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# timeout: 400
# Which connections of apps are spliced, which are not and why; what the gate has to do with it; and
# that every byte is right meanwhile, also when the agent is killed.
. "$(dirname "$0")/lib.sh"
need jq python3 haproxy
build_c ask ask-musl
ASK=$BIN/ask
. "$(dirname "$0")/splice.sh"
PINS=/sys/fs/bpf/$INST

# config MODE [MODE]: of the agent, of the service.
config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  splice: $1
		services:
		  echo-service:
		    ip: 10.77.200.1
		    ports: [7000]
		    backends: [echo]
		    splice: ${2:-auto}
	EOF
}

apply() {
	config "$@" >"$T/$INST.yaml"
	ax config apply "$T/$INST.yaml" >/dev/null 2>&1
}

# fate NAME: of the connections of that app.
fate() {
	ax get conns -o json | jq -r --arg n "$1" \
		'.[] | select(.local_name == $n) | if has("spliced") then "spliced" else .not_spliced end' |
		sort -u
}

# bytes NAME: that it sent from socket to socket.
bytes() {
	ax get conns -o json | jq --arg n "$1" \
		'[.[] | select(.local_name == $n) | .spliced // 0] | add // 0'
}

# has_fate NAME FATE TEXT: it comes to that, and stays so.
has_fate() {
	wait_for '[ "$(fate '"'$1'"')" = "'"$2"'" ]'
	is "$3" "$(fate "$1")" "$2"
}

is_spliced() {
	has_fate "$1" spliced "$2"
	wait_for '[ "$(bytes '"'$1'"')" -gt 0 ]'
	ok "$2: bytes are counted" [ "$(bytes "$1")" -gt 0 ]
}

# ends_good TEXT: the app that was started last has had good answers only.
ends_good() {
	local out=$OUT
	stop_app "$APP"
	like "$1" "$(cat "$out")" '^good [1-9][0-9]+$'
}

client() {
	run_app "$@"
	launched client
}

echo_server() {
	serve 7000 --ip 10.77.1.1 --name echo "$@" -- "$ASK" serve 10.77.1.1 7000
}

counter() {
	ax status -o json | jq --arg n "$1" '.counters[$n] // 0'
}

# sockhashes: that the agent has open.
sockhashes() {
	grep -ls '^map_type:[[:space:]]*18$' "/proc/$AGENT/fdinfo/"* | wc -l
}

# --- what the gate finds, and results of it that say otherwise ---

agent_start - <<<"$(config auto)"
wait_for -t 100 '[ -s "$GATE" ]'
ok "the gate leaves a result" [ -s "$GATE" ]
is "which only root may see" "$(stat -c '%a %u' "$GATE")" "600 0"
wait_for '[ ! -e "$CGROUP2/$INST.gate" ]'
ok "and no cgroup" [ ! -e "$CGROUP2/$INST.gate" ]
grep -v '^\(member\|redirected\)	' "$GATE" | sed 's/^end .*/end 0/' >"$T/passes"
{
	grep -v '^end\|^\(member\|redirected\)	' "$GATE"
	printf 'member\ttwo readers\tblocking\tIPv4\tn=10 n=10\tn=10 n=EAGAIN\nend 1\n'
} >"$T/differs"
{
	grep -v '^end\|^\(member\|redirected\)	' "$GATE"
	printf 'redirected\ta reader that does not read\tblocking\tIPv4\tbounded\twithout a bound\nend 1\n'
} >"$T/unsafe"

# a new instance on a kernel that differs
agent_stop
ok "a flush takes the result along" ax agent --flush
mkdir -p "${GATE%/*}"
cp "$T/differs" "$GATE"
chmod 600 "$GATE"
agent_again
sleep 1
is "a kernel that differs: the result is taken as it is" "$(cat "$GATE")" "$(cat "$T/differs")"
is "a kernel that differs: no link and no map is pinned" "$(find "$PINS" -name '*splice*')" ""
others=$(sockhashes) # the dataplane's, of listeners

# --- forced: where it is allowed by all ---

rm -f "$GATE"
agent_stop
agent_again
wait_for -t 100 '[ -s "$GATE" ]'
apply forced
wait_for '[ "$(sockhashes)" -gt "$others" ]'
is "forced: there is a sockhash, and only then" "$(sockhashes)" $((others + 1))
for server in private host; do
	echo_server --net $server
	echo=$APP
	for net in private host; do
		for to in 10.77.1.1 10.77.200.1; do
			client --name client --net $net -- "$ASK" ask $to 7000
			is_spliced client "$net client of a $server server at $to"
			is_spliced echo "$net client of a $server server at $to: the server"
			ends_good "$net client of a $server server at $to: every byte is right"
		done
	done
	stop_app "$echo"
done
ok "messages are counted" [ "$(counter splice_redirected)" -gt 1000 ]
like "a table has the bytes" "$(ax get conns -o wide --no-headers 2>&1; ax get conns -o wide)" SPLICE

# --- forced: what is not ---

echo_server
echo=$APP
client --name client -- "$ASK" ask 10.77.1.1 7000 blocking
has_fate client blocking "a client that blocks"
ends_good "a client that blocks gets its answers"

client --name client --splice off -- "$ASK" ask 10.77.1.1 7000
has_fate client off "an app that says off"
has_fate echo off "and its peer"
like "doctor says why, too" "$(ax doctor 2>&1)" "not spliced, and why.*"$'\n'"  [0-9]+: off"$'\n'
like "doctor says why in JSON" \
	"$(ax doctor -o json | jq '.[] | select(.name == "splice-auto").not_spliced.off')" '^[1-9]'
ends_good "an app that says off gets its answers"

client --name client -- "$PYTHON" -c '
import select, socket
s = socket.create_connection(("10.77.1.1", 7000))
s.setblocking(False)
while True:
    s.send(b"x" * 100)
    select.select([s], [], [])
    s.recv(100)
'
has_fate client "uses splice(2)" "Python has splice(2)"
stop_app "$APP"

cat >"$T/haproxy.cfg" <<-EOF
	global
	    maxconn 10
	defaults
	    mode tcp
	    timeout connect 5s
	    timeout client 60s
	    timeout server 60s
	listen through
	    bind 10.77.1.3:7003
	    option splice-auto
	    server echo 10.77.1.1:7000
EOF
run_app --name proxy --ip 10.77.1.3 -- haproxy -db -f "$T/haproxy.cfg"
proxy=$APP
wait_for 'listens $proxy 7003'
client --name client -- "$ASK" ask 10.77.1.3 7003
has_fate client "uses splice(2)" "HAProxy has splice(2)"
has_fate proxy "uses splice(2)" "and its own connection has, too"
ends_good "HAProxy's client gets its answers"
stop_app "$proxy"

# poured SIZE PAUSE FATE TEXT [edges]: a stream, all of whose bytes are right
poured() {
	local sink sink_out client client_out sent
	run_app --name sink --ip 10.77.1.2 -- "$ASK" drain 10.77.1.2 7001 "${5:-}"
	sink=$APP sink_out=$OUT
	wait_for "listens $sink 7001"
	run_app --name client -- "$ASK" pour 10.77.1.2 7001 "$1" "$2"
	client=$APP client_out=$OUT
	launched client
	if [ "$3" = spliced ]; then
		is_spliced client "$4"
		is "$4: in one direction" "$(bytes sink)" 0
	else
		has_fate client "$3" "$4"
	fi
	stop_app "$client"
	wait "$sink"
	sent=$(cat "$client_out")
	like "$4: it flows" "$sent" '^good [1-9][0-9]+$'
	is "$4: every byte is right" "$(cat "$sink_out")" "$sent"
}
poured 512 50 stream "a stream of small writes"
poured 4096 100 stream "a stream of writes of 4 KiB"
poured 16384 100 stream "a stream of writes of 16 KiB"
poured 65536 0 spliced "a stream of writes of 64 KiB"
poured 200000 0 spliced "a stream of writes that are larger than half a buffer"
poured 65536 200 "stream, edge-triggered" "a stream for a reader that waits for edges" edges

# --- the agent is killed, and another one takes over ---

client --name client -- "$ASK" ask 10.77.200.1 7000
survivor=$APP out=$OUT
is_spliced client "before the agent is killed"
before=$(bytes client)
agent_kill9
sent=$(passed)
wait_for '[ "$(passed)" -gt "$sent" ]' # the last request was answered, and read
alone=$(redirected) sent=$(passed)
wait_for '[ "$(passed)" -gt $((sent + 20)) ]'
ok "without an agent all goes by TCP" [ "$(passed)" -gt "$sent" ]
ok "without an agent the client lives on" alive "$survivor"
is "without an agent nothing is handed on: who would wake a reader?" "$(redirected)" "$alone"
agent_again
wait_for '[ "$(bytes client)" -gt "$before" ]'
ok "the next agent counts on" [ "$(bytes client)" -gt "$before" ]
is "the next agent knows the connection" "$(fate client)" spliced

# --- off of a service, while it runs: its connections part ---

apply forced off
has_fate client off "a service that says off now"
has_fate echo off "a service that says off now: the server's end"
before=$(bytes client)
sleep 0.5
is "a service that says off now: nothing is handed on any more" "$(bytes client)" "$before"
apply forced
is_spliced client "a service that says nothing any more"
wait_for '[ "$(bytes client)" -gt "$before" ]'
ok "a service that says nothing any more: it is handed on again" [ "$(bytes client)" -gt "$before" ]

# --- off, while it runs ---

apply off
has_fate client off "off: nothing is spliced any more"
is "off: no program is told of connections" "$(find "$PINS" -name 'link_ax_splice*')" ""
sleep 1
ok "off: the connection goes on" alive "$survivor"
apply forced
is_spliced client "forced again: it is spliced as before"
APP=$survivor OUT=$out
ends_good "every byte was right from before the agent was killed until now"

# --- on: a kernel that tells members by FIONREAD that there is nothing needs more ---

apply on
client --name client -- "$ASK" ask 10.77.1.1 7000
if grep -q '	FIONREAD	' "$GATE"; then
	has_fate client "FIONREAD is wrong here" "on, where FIONREAD is wrong"
else
	has_fate client spliced "on, where FIONREAD is right"
fi
ends_good "on: every byte is right"

# --- auto: as the gate says ---

# with_gate FILE: the agent is started again with that result.
with_gate() {
	stop_app "$echo"
	agent_stop
	cp "$1" "$GATE"
	chmod 600 "$GATE"
	agent_again
	sleep 0.5
	is "$2: the result is taken as it is" "$(cat "$GATE")" "$(cat "$1")"
	echo_server
	echo=$APP
}

config auto >"$T/$INST.yaml"
with_gate "$T/differs" "a kernel that differs"
is "a kernel that differs: no program is told of connections" \
	"$(find "$PINS" -name 'link_ax_splice*')" ""
like "a kernel that differs: doctor names the line" "$(ax doctor 2>&1)" \
	"two readers .*TCP n=10 n=10; here n=10 n=EAGAIN"
is "a kernel that differs: doctor names it in JSON" \
	"$(ax doctor -o json | jq -r '.[] | select(.name == "splice-auto") | .differs[].behaviour')" \
	"two readers"
client --name client -- "$ASK" ask 10.77.200.1 7000
has_fate client "auto: this kernel differs" "a kernel that differs: auto is off"
ends_good "a kernel that differs: answers"

# one app's word alone does not hold for its peer
client --name client --splice forced -- "$ASK" ask 10.77.1.1 7000
has_fate client "auto: this kernel differs" "an app cannot splice with one that does not say on"
ends_good "an app that says forced alone gets its answers"
stop_app "$echo"
echo_server --splice on
echo=$APP
client --name client --splice forced -- "$ASK" ask 10.77.1.1 7000
is_spliced client "forced and on, of a pair"
ends_good "forced and on: every byte is right"

# a static program may do what no file of it says
client --name client --splice on -- "$BIN/ask-musl" ask 10.77.1.1 7000
has_fate client "may use splice(2)" "a static program, with on"
ends_good "a static program gets its answers"
client --name client --splice forced -- "$BIN/ask-musl" ask 10.77.1.1 7000
is_spliced client "a static program, with forced"
ends_good "a static program, forced: every byte is right"

with_gate "$T/passes" "a kernel that passes"
like "a kernel that passes: doctor says so" "$(ax doctor 2>&1)" "splice-auto +on "
client --name client -- "$ASK" ask 10.77.200.1 7000
is_spliced client "a kernel that passes: auto engages"
ends_good "a kernel that passes: every byte is right"
client --name client --splice off -- "$ASK" ask 10.77.200.1 7000
has_fate client off "a kernel that passes: off is off"
ends_good "a kernel that passes: off gets its answers"

# the service's word, which holds for those who ask for it
apply auto off
client --name client -- "$ASK" ask 10.77.200.1 7000
has_fate client off "a service that says off"
apply auto auto
is_spliced client "a service that says nothing any more"
ends_good "a service that changes its word: every byte is right"
apply off on
client --name client -- "$ASK" ask 10.77.200.1 7000
is_spliced client "a service that says on, of an agent that says off"
ends_good "a service that says on: every byte is right"
client --name client -- "$ASK" ask 10.77.1.1 7000
has_fate client off "past the service, the agent's word holds"
ends_good "past the service: answers"
apply auto

# --- what nobody can have: a kernel that loses bytes, or takes them without a bound ---

config forced >"$T/$INST.yaml"
with_gate "$T/unsafe" "a kernel that is not safe"
like "a kernel that is not safe: doctor names the line" "$(ax doctor 2>&1)" \
	"a reader that does not read .*TCP bounded; here without a bound"
client --name client -- "$ASK" ask 10.77.1.1 7000
has_fate client "not safe on this kernel" "a kernel that is not safe, with forced"
ends_good "a kernel that is not safe: answers"
stop_app "$echo"

# --- a gate that does not come to its end, and one that has none ---

agent_stop
rm -f "$GATE"
"$AX" --instance "$INST" agent --config "$T/$INST.yaml" >>"$T/$INST.log" 2>&1 </dev/null &
AGENT=$!
BACKGROUND+=("$AGENT")
ok "its processes stand still" wait_for 'echo 1 >"$CGROUP2/$INST.gate/cgroup.freeze"'
wait_for -t 60 'ax status'
echo_server
echo=$APP
client --name client -- "$ASK" ask 10.77.1.1 7000
has_fate client "the kernel is being tried" "while the kernel is being tried"
echo 1 >"$CGROUP2/$INST.gate/cgroup.kill"
has_fate client "the kernel could not be tried" "a gate that is killed"
ends_good "a gate that is killed: answers"
ok "a gate that is killed leaves no result" [ ! -e "$GATE" ]
ok "and no cgroup" wait_for '[ ! -e "$CGROUP2/$INST.gate" ]'
stop_app "$echo"
agent_stop
cp "$T/passes" "$GATE"
config auto >"$T/$INST.yaml"
agent_again

# --- who else could write the result ---

before=$(cat "$GATE")
in_app --user 65534 -- sh -c "echo x >$GATE; rm -f $GATE; mv /dev/null $GATE" >/dev/null 2>&1
is "an app cannot write the gate's result" "$(cat "$GATE")" "$before"
agent_stop
sed -i 's/^boot .*/boot 0/' "$GATE"
agent_again
wait_for '! grep -q "^boot 0$" "$GATE"'
like "the result of another boot is not taken" "$(cat "$GATE")" "boot $(cat /proc/sys/kernel/random/boot_id)"
agent_stop
cp "$T/passes" "$GATE"
chmod 666 "$GATE"
agent_again
wait_for '[ "$(stat -c %a "$GATE")" = 600 ]'
is "what others may write is no result" "$(stat -c %a "$GATE")" 600
agent_stop

# --- an agent that dies while its gate runs ---

rm -f "$GATE"
"$AX" --instance "$INST" agent --config "$T/$INST.yaml" >>"$T/$INST.log" 2>&1 </dev/null &
AGENT=$!
BACKGROUND+=("$AGENT")
wait_for '[ -e "$CGROUP2/$INST.gate" ]'
agent_kill9
ok "no result is kept of half a gate" [ ! -e "$GATE" ]
agent_again
wait_for -t 100 '[ -s "$GATE" ]'
ok "the next agent has it run anew" [ -s "$GATE" ]
wait_for '[ ! -e "$CGROUP2/$INST.gate" ]'
ok "and leaves no cgroup" [ ! -e "$CGROUP2/$INST.gate" ]
apply off
agent_kill9
rm -f "$GATE"
agent_again
sleep 1
ok "with off, no gate runs" [ ! -e "$GATE" ]
done_testing
