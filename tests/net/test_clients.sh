#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What members of the group ax do to the agent's socket is not felt by root, nor by each other.
. "$(dirname "$0")/lib.sh"
need setpriv prlimit jq

# a group ax of this mount namespace's own, before the agent looks for it
{ sed '/^ax:/d' /etc/group; echo "ax:x:64999:"; } >"$T/group"
mount --bind "$T/group" /etc/group
cp "$AX" "$T/ax" # where every user gets at it

NAMES=4000
{
	default_config
	echo "apps:"
	awk -v n=$NAMES 'BEGIN { for (i = 0; i < n; i++)
		printf "  app%d: {ip: 10.78.%d.%d}\n", i, i / 250, 1 + i % 250 }'
} >"$T/names.yaml"
agent_start "$T/names.yaml"
SOCKET=/run/ax/$INST/control.sock

# clients UID MODE ARGUMENT...: in the background, what it says is in $SAID; over with clients_end.
clients() {
	mkfifo "$T/hold.$((++HOLDS))"
	SAID=$T/said.$HOLDS
	"$PYTHON" "$SRC/clients.py" "$SOCKET" "$@" <"$T/hold.$HOLDS" >"$SAID" 2>&1 &
	CLIENTS+=("$!")
	exec {fd}>"$T/hold.$HOLDS"
	HELD+=("$fd")
	wait_for -t 30 "[ -s $SAID ]" || not_ok "the clients stand" "$(cat "$SAID")"
}

clients_end() {
	for fd in "${HELD[@]}"; do
		exec {fd}>&-
	done
	wait "${CLIENTS[@]}"
	HELD=() CLIENTS=()
}
HOLDS=0 HELD=() CLIENTS=()

as_member() {
	timeout 60 setpriv --reuid "$1" --regid 64999 --clear-groups "$T/ax" --instance "$INST" \
		"${@:2}" 2>&1 </dev/null
}

memory_mb() {
	awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$AGENT/status"
}

cpu_ticks() {
	sed 's/.*) //' "/proc/$AGENT/stat" | awk '{ print $12 + $13 }'
}

# --- places ---

clients 64997 idle 300
like "idle connections of one user have a bound" "$(cat "$SAID")" "^2[0-9]+ refused: .*too many clients"
ok "root runs an app all the same" ax run -- true
is "and another member is answered" "$(as_member 64998 get apps -o name | grep -c app)" $NAMES
clients 64998 idle 300
ok "root is answered when the group has no place left" ax status
clients_end

# --- turns ---

# each request takes the agent some ms, and there are thousands of them
clients 64997 flood '{"op":"get","what":"apps"}' 1000000
SECONDS=0
ok "root runs an app beside somebody's thousand requests" timeout 60 "$AX" --instance "$INST" run -- true
out=$(as_member 64998 status -o json)
like "another member is answered meanwhile" "$out" '"instance"'
ok "the thousand took their turns, which are not over ($SECONDS s)" alive "${CLIENTS[0]}"
clients_end

# --- work ---

{
	default_config
	echo "apps:"
	awk 'BEGIN { for (i = 0; i < 15000; i++)
		printf "  app%06d: {ip: 10.79.%d.%d}\n", i, i / 250, 1 + i % 250 }'
} >"$T/many.yaml"
{
	cat "$T/names.yaml"
	echo "  one-more: {ip: 10.77.9.9}"
} >"$T/more.yaml"
chmod 644 "$T/many.yaml"
clients 64997 try "$T/many.yaml" 60
sleep 1 # all of them have asked
ok "root's apply does not wait for somebody's sixty dry runs" timeout 30 "$AX" --instance "$INST" \
	config apply "$T/more.yaml"
out=$(as_member 64998 config apply --dry-run "$T/more.yaml")
is "nor does another member's" "$?" 0
like "which is answered" "$out" "no differences"
like "nor does the agent's end" "$(agent_stop; echo over)" "^over$"
wait "$AGENT" 2>/dev/null
clients_end
agent_again
ok "root takes it back" ax config apply "$T/names.yaml"

# --- memory ---

clients 64997 deaf '{"op":"get","what":"apps"}' 100000 60
clients 64998 deaf '{"op":"get","what":"apps"}' 100000 60
ok "root is answered beside clients that do not read" ax status
ok "and they do not grow the agent" test "$(memory_mb)" -le 150
diag "peak: $(memory_mb) MB"
clients_end

{
	default_config
	echo "apps:"
	awk 'BEGIN { for (i = 0; i < 80000; i++)
		printf "  app%06d: {ip: 10.78.%d.%d, labels: {a: b}}\n", i, i / 250 % 250, i % 250 }'
} >"$T/large.yaml"
as_member 64997 config apply --dry-run "$T/large.yaml" >"$T/large.out"
unlike "a dry run of megabytes is not the group's" "$?" "^0$"
like "and it is told so" "$(tail -n 1 "$T/large.out")" "more than 1 MiB is root's"
head -c 900000 "$T/large.yaml" | sed '$d' | sed 's/10\.78/10.79/' >"$T/half.yaml"
as_member 64997 config apply --dry-run "$T/half.yaml" >"$T/half.out"
unlike "one of less is answered" "$(tail -n 1 "$T/half.out")" "MiB"
ok "neither grows the agent" test "$(memory_mb)" -le 180
diag "peak: $(memory_mb) MB"

# --- descriptors that strangers send ---

files() { find "/proc/$AGENT/fd" -maxdepth 1 -type l | wc -l; }
fuse=$T/fuse
mkdir "$fuse"
if [ ! -e /dev/fuse ] || ! grep -qw fuse /proc/filesystems; then
	fuse=
	skip "a file of FUSE is sent" "missing kernel feature fuse"
fi
mkfifo "$T/hold"
before=$(files)
"$PYTHON" "$SRC/foreign_fds.py" "/run/ax/$INST/control.sock" 64997 64999 "$fuse" <"$T/hold" >"$T/foreign" 2>&1 &
foreign=$!
BACKGROUND+=("$foreign")
exec 9>"$T/hold"
ok "a member sends descriptors that take their time to be closed" wait_for -t 60 "grep -q sent $T/foreign"
[ "$(cat "$T/foreign")" = sent ] || diag "$(cat "$T/foreign")"
SECONDS=0
ok "root is answered" timeout 20 "$AX" --instance "$INST" status
like "another member is" "$(as_member 64998 status -o json)" '"instance"'
ok "and what the agent starts for them does not wait either" timeout 60 "$AX" --instance "$INST" run --detach -- true
ok "and at once ($SECONDS s)" test $SECONDS -le 10
ok "what waits is no more than that file" wait_for "[ \$(files) -le $((before + 2)) ]"
exec 9>&-
wait "$foreign" 2>/dev/null
ok "and that is closed when it can be" wait_for "[ \$(files) = $before ]"
[ -z "$fuse" ] || umount "$fuse"

# --- descriptors ---

limit() { prlimit --pid "$AGENT" --nofile="$1:"; } # the soft limit: not every root may raise the other again

# some for clients, and none of the 32 that they leave to the agent
limit $(($(files) + 32 + 20))
clients 0 idle 100
like "who finds no descriptor beside the agent's is told so" "$(cat "$SAID")" "refused: .*no descriptors left"
clients_end
ok "and comes in when others are gone" wait_for "ax status"
# none at all
limit "$(files)"
clients 0 idle 100
like "who gets no descriptor is told so" "$(cat "$SAID")" "refused: .*no descriptors left"
before=$(cpu_ticks)
sleep 1
ok "and the agent sleeps" test $(($(cpu_ticks) - before)) -le 20
clients_end
limit 1024
ok "it goes on when there are some again" wait_for "ax status"

done_testing
