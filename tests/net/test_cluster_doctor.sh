#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# `ax doctor --cluster`: whatever is wrong on the ways to etcd and to the other nodes is found, and nothing else.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
. "$(dirname "$0")/certificates.sh"
need setpriv

# a group ax of this mount namespace's own, before the agents look for it
{ sed '/^ax:/d' /etc/group; echo "ax:x:64999:"; } >"$T/group"
mount --bind "$T/group" /etc/group

cd "$T" || exit 1
authority ours 3650
certificate server ours /CN=server "IP:$LAN.1" 20200101000000Z 20991231000000Z
certificate elsewhere ours /CN=server IP:192.0.2.7
certificate client ours /O=nodes DNS:n1 20200101000000Z 20991231000000Z
certificate soon ours /O=nodes DNS:n1
certificate old ours /O=nodes DNS:n1 20200101000000Z 20200201000000Z
ETCD_URL=https://$LAN.1:2379
ETCD_CURL=(--cacert ours.pem --cert client.pem --key client.key)
ETCD_WITH=(--client-cert-auth --trusted-ca-file ours.pem --cert-file server.pem --key-file server.key)
cp client.pem n1.pem
cp client.key n1.key
lan_make
lan_etcd_start
node_make n1 11
node_make n2 12
CLUSTER=$'  routes: direct\n'"  ca: $T/ours.pem"$'\n'"  cert: $T/n1.pem"$'\n'"  key: $T/n1.key"
node_start n1
CLUSTER=${CLUSTER//n1/client} node_start n2
ok "each node has a way to the other one" wait_for -t 30 '[ "$(node_routes n1)" = 1 ] && [ "$(node_routes n2)" = 1 ]'
B2=$(node_state n2 '.blocks[0]')

# doctor [AX...]: n1's, into $FOUND; $RC
doctor() {
	on n1
	FOUND=$("${@:-$AX}" --instance "$INST" doctor --cluster -o json 2>"$T/doctor.err")
	RC=$?
	FOUND=${FOUND:-[]}
	[ ! -s "$T/doctor.err" ] || diag "$(cat "$T/doctor.err")"
}
# found NODE CHECK...: "ok", "note SENTENCE" or "bad SENTENCE" of each finding, in a line
found() {
	jq -r --arg n "$1" '.[] | select(.node == $n and (.check | IN($ARGS.positional[]))) |
		if .state == "ok" then "ok" else "\(.state) \(.why)" end' --args "${@:2}" <<<"$FOUND" | tr '\n' ' '
}

# --- all is well ---------------------------------------------------------------------------------------

doctor
is "nothing is wrong where nothing is" "$RC $(jq -c '[.[] | select(.state != "ok")]' <<<"$FOUND")" "0 []"
is "all is looked at on the way to etcd" "$(jq -r '[.[] | select(.node == "n1").check] | join(" ")' <<<"$FOUND")" \
	"etcd lease ca certificate key member clock"
is "and on that to another node" "$(jq -r '[.[] | select(.node == "n2").check] | join(" ")' <<<"$FOUND")" \
	"lease address rp-filter mtu routes clock"
like "as text, too" "$(ax doctor --cluster | tr '\n' '|')" \
	"^n1, this node\|etcd +ok .*\|\|n2, $LAN\.12\|lease +ok .*\|\|Nothing is in the way between this node and 1 other\.\|$"

# one who may ask the agent, and nothing else
cp "$REAL_AX" "$T/ax" # where every user gets at it
doctor nsenter --net=/run/netns/n1 setpriv --reuid 64998 --regid 64999 --clear-groups "$T/ax"
is "without root nodes are asked by TCP" "$RC $(found n2 address) $(found n2 mtu)" \
	"0 ok  note how large packets may be on the way is not known: finding out needs root "
like "and what may not be read is said" "$(found n1 key member)" "^note .* by you: run it with sudo note etcd cannot be asked by you"

# --- ways ------------------------------------------------------------------------------------------------

# n2's answers come by another interface; packets of more than 1400 bytes vanish, and its block is led elsewhere
ip link add o1 netns n1 type veth peer name o2 netns n2
for i in 1 2; do
	ip -n n$i addr add 10.98.0.$i/24 dev o$i
	ip -n n$i link set o$i up
done
ip -n n2 neigh replace 10.98.0.1 lladdr "$(ip -n n1 -j link show o1 | jq -r '.[0].address')" dev o2 # (rp_filter drops ARP, too)
in_ns n1 sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.o1.rp_filter=0
ip -n n2 route add "$LAN.11/32" via 10.98.0.1
ip link set vn2 mtu 1400
ip -n n1 rule add to "$B2" lookup 99
ip -n n1 route add unreachable default table 99
doctor
is "what is wrong is an exit status" "$RC" 1
like "packets that come by another interface, and are not believed" "$(found n2 rp-filter)" \
	"^bad packets from $LAN\.12 come by o1, and the way there is by eth0: those of its apps are not believed"
like "a block that other rules route elsewhere" "$(found n2 routes)" \
	"^bad its block $B2 is routed elsewhere \((No route to host|Network is unreachable)\), in spite of ax's route"
is "a smaller MTU on the way" "$(found n2 mtu)" \
	"bad packets of 1400 bytes get there, those of 1500, eth0's MTU, vanish: connections stand still as soon as they have much to send "
is "and how it is put right" "$(jq -r '.[] | select(.check == "mtu").fix' <<<"$FOUND")" "ip link set dev eth0 mtu 1400"
ip link set vn2 mtu 1500
ip -n n1 rule del to "$B2" lookup 99

# --- certificates ----------------------------------------------------------------------------------------------

cp soon.pem n1.pem
chmod 644 n1.key
doctor
like "a certificate that ends soon, and is not the key's" "$(found n1 certificate key)" \
	"^note .*/n1.pem holds until 20.* UTC: replace it soon bad .* \(mode 0644\).* bad the key in .* is not that of the certificate "
cp old.pem n1.pem
cp old.key n1.key
chmod 600 n1.key
doctor
like "one that has ended" "$(found n1 certificate key member)" "^bad .* ended at 2020-02-01 00:00 UTC: etcd is not reached by it ok bad $ETCD_URL: "
cp client.pem n1.pem
cp client.key n1.key

# --- nodes ------------------------------------------------------------------------------------------------

# n3 has an address that nobody answers at, n4 one without a way to it
record() { lan_etcd put '{key: ($k | @base64), value: ($v | @base64)}' --arg k "/ax/east/$1" --arg v "$2" >/dev/null; }
ID=0123456789abcdef0123456789abcdef
record nodes/n3 "{\"v\":1,\"name\":\"n3\",\"id\":\"$ID\",\"since\":1,\"version\":\"1\",\"address\":\"$LAN.77\",\"clock\":-90}"
record nodes/n4 "{\"v\":1,\"name\":\"n4\",\"id\":\"$ID\",\"since\":1,\"version\":\"1\",\"address\":\"192.0.2.4\",\"clock\":3}"
record blocks/10.80.254.0-24 "{\"v\":1,\"prefix\":\"10.80.254.0/24\",\"node\":\"n4\",\"id\":\"$ID\"}"
ok "there are two more nodes" wait_for -t 30 '[ "$(node_state n1 .ways.failed[0].node)" = n4 ] && [ "$(node_state n1 .nodes)" = 4 ]'
lan_etcd deleterange '{key: ("/ax/east/nodes/n4" | @base64)}' >/dev/null
ok "the lease of one has ended" wait_for -t 30 'ax_in "${NODE_INST[n1]}" get nodes n4 -o json | jq -e ".[0].state == \"away\""'
in_ns n1 sysctl -qw net.ipv4.conf.all.rp_filter=1
doctor
like "a node that does not answer" "$(found n3 address)" "^bad $LAN\.77 does not answer: (No route to host|Connection timed out) $"
like "one without a way" "$(found n4 address)" "^bad there is no way to 192\.0\.2\.4: "
like "and the block that is not reached" "$(found n4 routes)" "^bad there is no way to its block 10\.80\.254\.0/24: "
like "a lease that has ended" "$(found n4 lease)" "^bad its lease has ended"
is "a clock" "$(found n3 clock)$(found n4 clock)" \
	"bad its clock is 90 s ahead of this node's: keep both by NTP note its clock is 3 s behind this node's: keep both by NTP "
like "packets that rp_filter drops" "$(found n2 rp-filter)" "^bad this machine dropped [1-9][0-9]* packets meanwhile that came by another interface"
ip -n n1 link del o1

# --- etcd is another host ---------------------------------------------------------------------------------

end "$ETCD"
ETCD_WITH=(--client-cert-auth --trusted-ca-file ours.pem --cert-file elsewhere.pem --key-file elsewhere.key)
ETCD_CURL+=(-k)
lan_etcd_start
ok "the agent does not believe another host's certificate" wait_for -t 60 'node_state n1 .why | grep -q certificate'
doctor
like "nor does doctor, which says so" "$(found n1 etcd lease member)" \
	"^bad the agent is not in the cluster \(partitioned\): .* bad this node is not registered.* bad $ETCD_URL: .*(does not match|no alternative certificate)"

nodes_flush n1 n2
on n1
agent_start
is "a node in no cluster has none to look at" "$(ax doctor --cluster 2>&1)" \
	"ax doctor: this node is in no cluster: see CLUSTER in ax.yaml(5)"
agent_stop
ax agent --flush
nodes_end n1 n2
done_testing
