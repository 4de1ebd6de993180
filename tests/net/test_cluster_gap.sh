#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 240
# beside others
# What ended while a node could not be told: it is gone as soon as all has been read anew, if it is certain that
# it has ended; also if etcd has lost the news of it. An etcd that has been emptied takes nobody's backends away.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need python3
build_c tcp

# others NODE: apps of other nodes as it knows them
others() {
	ax_in "${NODE_INST[$1]}" get apps -A -o json |
		jq -r --arg n "$1" '.[] | select(.node != $n) | "\(.node) \(.name)"' | sort | tr '\n' ' '
}
# lease_ask PATH NODE: something is asked of etcd for a node's lease
lease_ask() {
	curl -sS --max-time 20 -d "{\"ID\": \"$((16#$2))\"}" "$ETCD_URL/v3/$1"
}
# keys: how many there are of apps
keys() {
	lan_etcd range '{key: ("/ax/east/apps/" | @base64), range_end: ("/ax/east/apps0" | @base64), keys_only: true}' |
		jq -r '.kvs[]?.key | @base64d' | sort | tr '\n' ' '
}
# with_key NODE ID: whether etcd has the app
with_key() {
	[[ " $(keys)" == *" /ax/east/apps/$1/$2 "* ]]
}
id_of() {
	ax_in "${NODE_INST[$1]}" get apps -o json "$2" | jq -r '.[0].id'
}
# reads NODE: how many times it has read all there is
reads() {
	node_state "$1" .reads
}

CLUSTER=$'  routes: direct\n  dead-after: 1s'
bg "$T/lossy" "$PYTHON" "$SRC/lossy.py" 2479 $LAN.1 2379 "$T/losing"
LOSSY=$BG
lan_make
lan_etcd_start
for i in 1 2 3; do
	node_make n$i 1$i
done
ETCD_URL=http://$LAN.1:2479 node_start n1
node_start n2
node_start n3
ok "n1 has ways to the others" wait_for -t 30 '[ "$(node_state n1 .ways.routes)" = 2 ]'
on n2
serve 7000 --name stays -- "$BIN/tcp" listen 4 0.0.0.0 7000 stays
serve 7001 --name ends -- "$BIN/tcp" listen 4 0.0.0.0 7001 ends
ENDS=$APP ENDS_ID=$(id_of n2 ends)
on n3
serve 7000 --name lost -- "$BIN/tcp" listen 4 0.0.0.0 7000 lost
LOST_ID=$(id_of n3 lost)
ok "their apps are known" wait_for -t 30 '[ "$(others n1)" = "n2 ends n2 stays n3 lost " ]'

on n1
run_app --name from -- sleep 1000
ok "and n2 knows the one of n1" wait_for -t 30 "node_knows n2 from"

# --- cut off, while the news are compacted ------------------------------------------------------------------

LEASE=$(node_state n1 .lease) READS=$(reads n1)
bg "$T/alive" bash -c 'while :; do curl -s --max-time 5 -d "{\"ID\": \"$1\"}" "$2/v3/lease/keepalive"; sleep 1; done' - \
	"$((16#$LEASE))" "$ETCD_URL" # (as if it were cut off for less than the lease)
ALIVE=$BG
ip link set vn1 down
ok "a node is cut off" wait_for -t 60 '[ "$(node_state n1)" = partitioned ]'
on n2
stop_app "$ENDS"
on n3
GONE=$(node_state n3 .lease)
agent_kill9
NODE_AGENT[n3]=
lease_ask lease/revoke "$GONE" >"$T/revoked"
ok "an app ends meanwhile, and a node with its lease" wait_for -t 30 "! with_key n2 $ENDS_ID && ! with_key n3 $LOST_ID"
lan_etcd put '{key: ("/elsewhere" | @base64), value: ("1" | @base64)}' >"$T/put"
lan_etcd compaction '{revision: $r}' --arg r "$(jq -r .header.revision "$T/put")" >"$T/compacted"
sleep 1 # (dead-after)
is "n1 was told of neither" "$(others n1)" "n2 ends n2 stays n3 lost "
ip link set vn1 up
ok "etcd cannot tell it what happened: all is read anew" wait_for -t 60 "[ \"\$(reads n1)\" -gt $READS ]"
is "then both are gone, and nothing else" "$(others n1)" "n2 stays "
end "$ALIVE"
is "it was one lease all the time" "$(node_state n1 .lease)" "$LEASE"
like "the app that is left is reached" "$(at n1 "$BIN/tcp" connect 4 "$(node_addr n2 stays)" 7000)" " stays "
node_again n3
ok "the node that was gone comes back with its app" wait_for -t 60 '[ "$(others n1)" = "n2 stays n3 lost " ]'

# --- etcd loses the news of an end ---------------------------------------------------------------------------

on n2
serve 7002 --name unheard -- "$BIN/tcp" listen 4 0.0.0.0 7002 unheard
UNHEARD=$APP UNHEARD_ID=$(id_of n2 unheard)
ok "another app comes" wait_for -t 30 '[ "$(others n1)" = "n2 stays n2 unheard n3 lost " ]'
touch "$T/losing"
stop_app "$UNHEARD"
ok "its end is lost on the way" wait_for -t 30 "grep -q lost '$T/lossy' && ! with_key n2 $UNHEARD_ID"
is "so it is known all the same" "$(others n1)" "n2 stays n2 unheard n3 lost "
READS=$(reads n1)
lease_ask lease/revoke "$(node_state n1 .lease)" >"$T/revoked"
ok "who has lost its lease looks through all there is" wait_for -t 60 "[ \"\$(reads n1)\" -gt $READS ]"
is "and so finds out" "$(others n1)" "n2 stays n3 lost "
rm "$T/losing"
ok "its own key is there again" wait_for -t 30 '[ "$(node_state n1)" = connected ]'

# --- etcd is emptied -----------------------------------------------------------------------------------------

# While n2 cannot write, its app is nowhere in etcd.
on n2
kill -STOP "$AGENT"
end "$ETCD"
rm -rf "$T/etcd"
READS=$(reads n1)
lan_etcd_start
ok "an etcd that is empty is read" wait_for -t 60 "[ \"\$(reads n1)\" -gt $READS ]"
ok "n1 has written itself anew" wait_for -t 60 '[ "$(node_state n1)" = connected ]'
is "it has nothing of n2's" "$(keys | grep -c /n2/)" 0
like "n1 goes on with what it knew" "$(others n1)" "n2 stays "
like "and reaches it" "$(on n1; timeout 20 "$AX" --instance "$INST" exec from -- "$BIN/tcp" connect 4 "$(ax_in "${NODE_INST[n1]}" get apps -A -o json | jq -r '.[] | select(.name == "stays").ip4')" 7000)" " stays "
kill -CONT "${NODE_AGENT[n2]}"
ok "until n2 writes it again" wait_for -t 60 'keys | grep -q /n2/ && [ "$(others n1)" = "n2 stays n3 lost " ]'

stop_apps
nodes_flush n1 n2 n3
end "$LOSSY"
nodes_end n1 n2 n3
done_testing
