#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The network namespace of a private app: made by its launcher before there is a process for it, the app's
# alone, and gone with it.
. "$(dirname "$0")/lib.sh"
need jq script

private_host
HOST=$(readlink /proc/self/ns/net)
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
apps:
  public: {net: host}
EOF

netns() {
	readlink "/proc/$1/ns/net"
}
# holds PID: how many descriptors of network namespaces it has
holds() {
	find "/proc/$1/fd" -lname 'net:*' | wc -l
}
parent() {
	ps -o ppid= -p "$1" | tr -d ' '
}
running() {
	[ "$(cat "/proc/$(child_of "$1")/comm")" = sleep ]
}

# --- one each ----------------------------------------------------------------------------------

run_app --name first -- sleep 60
FIRST=$APP
run_app --name second -- sleep 60
SECOND=$APP
ok "two are started at once" wait_for 'running $FIRST && running $SECOND'
IN_FIRST=$(child_of "$FIRST")
IN_SECOND=$(child_of "$SECOND")
is "three namespaces: the host's and theirs" \
	"$(printf '%s\n' "$HOST" "$(netns "$IN_FIRST")" "$(netns "$IN_SECOND")" | grep -c '^net:') of them,
$(printf '%s\n' "$HOST" "$(netns "$IN_FIRST")" "$(netns "$IN_SECOND")" | sort -u | wc -l) different" "3 of them,
3 different"
is "their launchers are in the caller's" "$(netns "$FIRST") $(netns "$SECOND")" "$HOST $HOST"
is "and hold none open" "$(holds "$FIRST") $(holds "$SECOND")" "0 0"
is "nor do the apps" "$(holds "$IN_FIRST") $(holds "$IN_SECOND")" "0 0"
is "no name leads to one" "$(ip netns list 2>&1)" ""
ax run --name detached --detach -- sleep 60 >"$T/detached"
PID=$(ax get apps -o json | jq '.[] | select(.name == "detached").pid')
SUPERVISOR=$(parent "$PID")
is "a supervisor is in the caller's, too, and holds none open" \
	"$(netns "$SUPERVISOR") $(holds "$SUPERVISOR")" "$HOST 0"

bg "$T/terminal" script -qec "$AX --instance $INST run --name typed --user nobody -- sleep 60" /dev/null
launched typed
PID=$(ax get apps -o json | jq '.[] | select(.name == "typed").pid')
MONITOR=$(parent "$PID") RELAY=$(parent "$(parent "$PID")")
is "another user's on a terminal has a monitor, and a relay before that" \
	"$(cat "/proc/$MONITOR/comm" "/proc/$RELAY/comm")" "ax-session
ax"
ok "neither holds it open" wait_for '[ "$(holds $MONITOR) $(holds $RELAY)" = "0 0" ]'
end "$BG"

# --- what is in it -----------------------------------------------------------------------------

# What ax sets there is not looked at, and what each has of its own.
cat >"$T/state" <<'EOF'
sysctl -a 2>/dev/null | grep '^net\.' |
	grep -vE '^net\.ipv[46]\.(conf|neigh)\.eth0|ip_unprivileged_port_start|ping_group_range|stable_secret|fib_sync_mem|_time_secs|\.flush'
ip -o link show lo | sed 's/^[0-9]*: //'
ip rule
ip -6 rule
EOF
look() {
	unshare -n bash -c "ip link set lo up; . $T/state" >"$T/fresh"
	ax run --name look -- bash "$T/state" >"$T/seen"
	diff "$T/fresh" "$T/seen" >"$T/differ"
}
# (a module that somebody loads in between brings sysctls with it)
look || look || look
is "an app's is like one that unshare(1) makes" "$(cat "$T/differ")" ""
for seen in fresh seen; do
	ok "(and $seen says something)" grep -q '^net.ipv4.conf.default.rp_filter' "$T/$seen"
done

# --- the config says that there is to be none --------------------------------------------------

is "a declared app in host mode is in the host's" \
	"$(ax run --name public -- readlink /proc/self/ns/net)" "$HOST"
run_app --name public -- sleep 60
ok "one stays" wait_for 'running $APP'
is "what was made for nothing is closed" "$(holds "$APP") $(holds "$(child_of "$APP")")" "0 0"

# --- many --------------------------------------------------------------------------------------

for n in $(seq 20); do
	ax run --name "row$n" -- readlink /proc/self/ns/net
done >"$T/row" 2>&1
is "twenty in a row all start" "$(grep -c '^net:' "$T/row")" 20
is "and none is in the host's" "$(grep -cxF "$HOST" "$T/row")" 0

# --- what is not finished ----------------------------------------------------------------------

# shellcheck disable=SC2034 # wait_for sees it
before=$(ip -o link | wc -l)
fails "the agent refuses a launch" ax run --ip 10.77.0.1 -- true
fails "the command is not there" ax run -- /nonexistent
fails "a volume is not there" ax run -v "$T/nothing:/mnt" -- true
ok "no device of theirs stays" wait_for '[ "$(ip -o link | wc -l)" -le "$before" ]'
agent_kill9
fails "there is no agent" ax run -- true
is "apps go on without it" "$(netns "$IN_FIRST" | wc -l) $(netns "$IN_SECOND" | wc -l)" "1 1"
agent_again
end "$SECOND"
ok "after its end nothing of an app is there" wait_for '! ax get apps | grep -q second'
done_testing
