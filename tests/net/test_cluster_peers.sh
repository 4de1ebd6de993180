#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 600
# beside others
# Two clusters, each with an etcd of its own, see of each other what either exports: by names, as backends
# when none of the own is left, as far as rules let them; and what one of them claims beyond its pool is not
# believed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need dig
build_c tcp

EAST_ETCD=$ETCD_URL WEST_ETCD=http://$LAN.1:3379

# west's etcd: as east's, at other ports
west_etcd_start() {
	bg "$T/etcd-west.log" etcd --name w --data-dir "$T/etcd-west" --listen-client-urls "$WEST_ETCD" \
		--advertise-client-urls "$WEST_ETCD" --listen-peer-urls http://127.0.0.1:3380 \
		--initial-advertise-peer-urls http://127.0.0.1:3380 --initial-cluster w=http://127.0.0.1:3380
	WEST=$BG
	wait_for -t 60 'curl -sf "$WEST_ETCD/health" | grep -q true' || echo "Bail out! etcd does not start"
}

# in_cluster NAME POOL ETCD PEER PEERS-POOL PEERS-ETCD NODE [LINE...]: starts the node
in_cluster() {
	on "$7"
	agent_start - <<-EOF
		cluster:
		  name: $1
		  etcd: ["$3"]
		  pool: $2
		  node: {name: ${8:-$7}, address: ${NODE_ADDR[$7]}}
		  routes: ${ROUTES:-direct}
		  peers: [{name: $4, etcd: ["$6"], pool: $5}]
		${9:-}
		${MORE:-}
	EOF
	NODE_AGENT[$7]=$AGENT
}
east() { in_cluster east 10.80.0.0/16 "$EAST_ETCD" west 10.90.0.0/16 "$WEST_ETCD" "$@"; }
west() { in_cluster west 10.90.0.0/16 "$WEST_ETCD" east 10.80.0.0/16 "$EAST_ETCD" "$@"; }
peer() { node_state "$1" ".peers[0]$2"; }
# west_put KEY VALUE: below /ax/west/, as somebody who has that etcd may
west_put() {
	ETCD_URL=$WEST_ETCD lan_etcd put '{key: ("/ax/west/" + $k | @base64), value: ($v | @base64)}' --arg k "$1" --arg v "$2" >/dev/null
}

lan_make
lan_etcd_start
west_etcd_start
node_make e1 11
node_make e2 12
node_make w1 13
# rules OWN PEER: apps of the own cluster, by its name, and those of the other may talk
rules() {
	echo "policy: {rules: [{allow: {from: cluster=$2, to: cluster=$1}}, {allow: {from: cluster=$1, to: cluster=$2}}]}"
}
MORE=$(rules east west) east e1
MORE=$(rules east west) east e2
# a node of the other cluster may be called as one of this
MORE=$(rules west east) west w1 e1 '  export: [web, twice]'

for n in e1 e2; do
	ok "$n reads the peer" wait_for -t 60 "[ \"\$(peer $n .state)\" = connected ]"
	ok "and has a way to its node, and one to its own" \
		wait_for -t 60 "[ \"\$(peer $n .ways.routes)\" = 1 ] && [ \"\$(node_state $n .ways.routes)\" = 1 ]"
done
ok "w1 has a way to both nodes of the other cluster" wait_for -t 60 '[ "$(peer w1 .ways.routes)" = 2 ]'
like "ax status says so" "$(ax_in "${NODE_INST[e1]}" status)" "peer west: connected to $WEST_ETCD; 1 nodes, 0 apps"
is "ax get nodes has those of the peer by the names that they have here" \
	"$(ax_in "${NODE_INST[e1]}" get nodes -o json | jq -r '.[] | "\(.name) \(.cluster // "own") \(.state)"' | tr '\n' ';')" \
	"e1 own up;e2 own up;e1.west west up;"

# --- names -------------------------------------------------------------------------------------------

on w1
serve 7000 --name web -- "$BIN/tcp" listen 4 0.0.0.0 7000 from-west
serve 7000 --name hidden -- "$BIN/tcp" listen 4 0.0.0.0 7000 hidden
W=$(node_addr w1 web)
ok "an app of the peer is found as NAME.CLUSTER" wait_for -t 30 '[ "$(ask e1 web.west.ax.internal)" = "$W" ]'
wait_for -t 30 '[ "$(ask e1 _7000._tcp.web.west.ax.internal SRV)" ]'
is "its ports by SRV" "$(ask e1 _7000._tcp.web.west.ax.internal SRV)" "0 0 7000 web.west.ax.internal."
is "its name by its address" "$(at e1 dig -x "$W" +short)" "web.west.ax.internal."
is "without the domain, too" "$(ask e1 web.west)" "$W"
is "it has no IPv6 address, and that is said" "$(at e1 dig web.west.ax.internal AAAA | grep -c 'status: NOERROR')" 1
is "the cluster's name alone is above it" "$(at e1 dig west.ax.internal | grep -c 'status: NOERROR')" 1
is "who has no such name has none" "$(at e1 dig nobody.west.ax.internal | grep -c NXDOMAIN)" 1
is "nor has this cluster's own" "$(at e1 dig web.ax.internal | grep -c NXDOMAIN)" 1
is "it answers" "$(answers e1 web.west 7000)" from-west
is "what is not exported has no name" "$(at e1 dig hidden.west.ax.internal | grep -c NXDOMAIN)" 1
is "and is in no list" "$(ax_in "${NODE_INST[e1]}" get apps -A -o json | jq -r '.[] | "\(.name) \(.node) \(.cluster)"')" "web.west e1.west west"
is "nothing of east is exported" "$(peer w1 .exported)" 0


# --- rules, and labels ----------------------------------------------------------------------------------

apply() { # NODE SED: its config, changed so
	on "$1"
	sed "$2" "$T/$INST.yaml" >"$T/changed.yaml"
	ax config apply "$T/changed.yaml"
}
# refused NODE NAME PORT
refused() { [[ "$(answers "$1" "$2" "$3")" == "error connect "* ]]; }

apply e2 '/^policy/d'
ok "without a rule nobody reaches the peer, whatever labels both have" wait_for 'refused e2 web.west 7000'
is "but who has its label" "$(on e2; in_app --labels cluster=west -- "$BIN/tcp" connect 4 "$W" 7000 2>&1 | grep -o from-west)" from-west
apply e2 's/^policy.*/policy: {rules: [{allow: {to: web.west}}]}/'
ok "a rule may name an app of the peer" wait_for '[ "$(answers e2 web.west 7000)" = from-west ]'
apply w1 's/^policy.*/policy: {rules: [{deny: {from: cluster=east, to: web}}]}/'
ok "the other cluster has the last word" wait_for 'refused e2 web.west 7000'
apply w1 's/x/x/'
apply e2 's/x/x/'
ok "and may change it" wait_for '[ "$(answers e2 web.west 7000)" = from-west ]'

# --- backends -------------------------------------------------------------------------------------------

on e1
{ cat "$T/$INST.yaml"; printf 'services:\n  shop: {ports: [7000], backends: [{app: web}, {app: web.west}]}\n'; } >"$T/shop.yaml"
ok "a service may have apps of a peer as backends" ax config apply "$T/shop.yaml"
ok "they get the connections while there are no others" wait_for '[ "$(answers e1 shop 7000 3)" = from-west ]'
like "the list says where they are" "$(ax_in "${NODE_INST[e1]}" get services)" "web.west $W on e1.west"
on e2
serve 7000 --name web -- "$BIN/tcp" listen 4 0.0.0.0 7000 from-e2
E2=$APP
ok "an app of another node of the own cluster comes first" wait_for '[ "$(answers e1 shop 7000 10)" = from-e2 ]'
like "the peer's is far then" "$(backends e1 shop)" "e1.west web.west $W far"
on e1
serve 7000 --name web -- "$BIN/tcp" listen 4 0.0.0.0 7000 from-e1
E1=$APP
ok "and so does one of this node; both are alike" wait_for '[ "$(answers e1 shop 7000 30)" = "from-e1 from-e2" ]'
end "$E1"
ok "when it ends the other one goes on" wait_for '[ "$(answers e1 shop 7000 10)" = from-e2 ]'
end "$E2"
ok "when none is left, the peer's takes over" wait_for '[ "$(answers e1 shop 7000 3)" = from-west ]'
on e1
serve 7000 --name web -- "$BIN/tcp" listen 4 0.0.0.0 7000 back
E1=$APP
ok "and gives back when one is there again" wait_for '[ "$(answers e1 shop 7000 10)" = back ]'
end "$E1"
ok "ax service add takes them, too" ax service add more --port 7000 --backend web.west
ok "and its connections get there" wait_for '[ "$(answers e1 more 7000)" = from-west ]'

# --- what the other cluster claims ------------------------------------------------------------------------

ID=$(printf '%032d' 7)
west_put nodes/evil "{\"v\":1,\"name\":\"evil\",\"id\":\"$ID\",\"since\":1,\"version\":\"1\",\"address\":\"$LAN.12\"}"
west_put blocks/10.80.77.0-24 "{\"v\":1,\"prefix\":\"10.80.77.0/24\",\"node\":\"evil\",\"id\":\"$ID\"}"
west_put blocks/10.90.77.0-24 "{\"v\":1,\"prefix\":\"10.90.77.0/24\",\"node\":\"evil\",\"id\":\"$ID\"}"
OWN=$(node_state e2 '.blocks[0]')
west_put apps/evil/1 "{\"v\":1,\"node\":\"evil\",\"name\":\"web\",\"id\":1,\"net\":\"private\",\"since\":1,\"labels\":\"zone=default\",\"exported\":true,\"ip4\":\"${OWN%.0/24}.9\",\"ports\":[{\"proto\":\"tcp\",\"port\":7000}]}"
ok "a block of the own pool is left out, and that is said" \
	wait_for '[[ "$(peer e1 .refused_why)" == *"10.80.77.0-24: it is no block of the pool"* ]]'
ok "a node that is at an own one's address has no way" \
	wait_for '[[ "$(peer e1 .ways)" == *"evil.west"*"says that it is at $LAN.12, where a node of this cluster is"* ]]'
is "nothing is routed for it" "$(ip -n e1 route show proto 97 | grep -c '\.77\.')" 0
is "the way to the own node is as it was" "$(ip -n e1 route show proto 97 "$OWN" | grep -c "via $LAN.12")" 1
is "its app with an address of the own pool is found by no name" "$(ask e1 web.west.ax.internal)" "$W"

# --- its etcd goes, and comes back ------------------------------------------------------------------------

end "$WEST"
ok "without its etcd the peer is known on" wait_for -t 60 '[ "$(peer e1 .state)" = unreachable ]'
is "its names" "$(ask e1 web.west.ax.internal)" "$W"
is "and ways" "$(answers e1 web.west 7000)" from-west
like "ax status says since when" "$(ax_in "${NODE_INST[e1]}" status)" "peer west: unreachable.* as they were [0-9]+s ago"
like "and so does the doctor" "$(ax_in "${NODE_INST[e1]}" doctor --cluster)" "the peer west is not read \(unreachable\)"
node_stop e1
node_again e1
ok "so does an agent that starts meanwhile" wait_for -t 60 '[ "$(ask e1 web.west.ax.internal)" = "$W" ] && [ "$(answers e1 web.west 7000)" = from-west ]'
node_stop w1
mv "$T/etcd-west" "$T/etcd-west.old"
west_etcd_start
ok "an etcd that is empty is none of the peer's" wait_for -t 60 '[ "$(peer e1 .state)" = refused ]'
is "and nothing is forgotten for it" "$(ask e1 web.west.ax.internal)" "$W"
node_again w1
ok "when the peer has written itself again, it is read" wait_for -t 90 '[ "$(peer e1 .state)" = connected ]'
is "and all is as before" "$(ask e1 web.west.ax.internal) $(answers e1 web.west 7000)" "$W from-west"
on e1
DOCTOR=$(ax doctor --cluster)
like "the doctor looks at the peer, too" "$DOCTOR" "the peer west is read, from $WEST_ETCD"
like "and at its nodes, and the ways there" "$DOCTOR" "e1.west, $LAN.13.*address +ok +$LAN.13 answers.*routes +ok"

# --- a peer less --------------------------------------------------------------------------------------------

apply e1 '/peers:/d'
ok "who is no peer any more has no names" wait_for '[ "$(at e1 dig web.west.ax.internal | grep -c NXDOMAIN)" = 1 ]'
ok "nor ways" wait_for '[ "$(ip -n e1 route show proto 97 | grep -c 10.90)" = 0 ]'
is "those of the own nodes stay" "$(node_state e1 .ways.routes)" 1
apply e1 's/x/x/'
ok "and comes back while the agent runs" wait_for -t 60 '[ "$(answers e1 web.west 7000)" = from-west ]'

stop_apps
nodes_flush e1 e2 w1
end "$WEST"
nodes_end e1 e2 w1
done_testing
