#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# How the outside reaches apps: the config's balancers of services whose backends are apps of this
# machine, private and in host mode, whatever comes in and leaves by whichever interface.
. "$(dirname "$0")/lib.sh"
need ip jq "$PYTHON"

# a client behind eth0 of its own; this machine forwards nothing
unshare -n sleep 1000 &
CLIENT=$!
BACKGROUND+=("$CLIENT")
wait_for "[ \"\$(readlink /proc/$CLIENT/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
client() {
	nsenter -t "$CLIENT" -n "$@"
}
RP_FILTER=$(sysctl -n net.ipv4.conf.all.rp_filter)
sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv4.conf.all.rp_filter=1 \
	net.ipv4.conf.default.rp_filter=1
client sysctl -qw net.ipv6.conf.default.accept_dad=0
veth_or_skip xc0 type veth peer name eth0 netns "$CLIENT"
ip addr add 198.51.100.1/24 dev xc0
ip addr add 2001:db8:2::1/64 dev xc0 nodad
ip link set xc0 up
client ip addr add 198.51.100.2/24 dev eth0
client ip addr add 2001:db8:2::2/64 dev eth0 nodad
client ip link set eth0 up
client ip route add default via 198.51.100.1
client ip -6 route add default via 2001:db8:2::1
wait_for 'ip link show xc0 | grep -q LOWER_UP'

# config MODE [HOST_ACCESS]: the balanced addresses are nobody's
config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: ${2:-true}
		services:
		  private: {ports: ["80:7000", "80:7000/udp"], backends: [{app: p1}, {app: p2}]}
		  host: {ports: ["80:7000", "80:7000/udp"], backends: [{app: h1}, {app: h2}]}
		xdp:
		  balancers:
		    private: {service: private}
		    host: {service: host}
		  interfaces:
		    xc0:
		      mode: $1
		      rules:
		        - {name: private, dst: "192.0.2.1,2001:db8:9::1", proto: "tcp,udp", dport: 80, action: balance private}
		        - {name: host, dst: "192.0.2.2,2001:db8:9::2", proto: "tcp,udp", dport: 80, action: balance host}
	EOF
}
agent_start - < <(config native)
for app in p1 p2; do
	serve 7000 --name $app --ip 10.77.1.${app#p},fd77::1:${app#p} -- "$PYTHON" "$SRC/balance.py" serve $app 7000
done
for app in h1 h2; do
	serve 7000 --net host --name $app --ip 10.77.2.${app#h},fd77::2:${app#h} -- \
		"$PYTHON" "$SRC/balance.py" serve $app 7000
done

# PROTO HOST BYTES: what 24 questions were answered, each kind of line once, and how many they are
answers() {
	client "$PYTHON" "$SRC/balance.py" query "$1" "$2" 80 "$3" 24 | cut -d ' ' -f 1,3- | sort | uniq -c |
		awk '{ n += $1; $1 = ""; print } END { print n + 0 }' | xargs
}
# WHAT [short]: everything is answered, by both backends; fragments, which have no ports, by one
check() {
	local to name
	for to in "192.0.2.1 p" "2001:db8:9::1 p" "192.0.2.2 h" "2001:db8:9::2 h"; do
		name=${to#* } to=${to% *}
		is "$1: ${name}1 and ${name}2 answer TCP to $to" "$(answers tcp "$to" 200000)" \
			"${name}1 whole ${name}2 whole 24"
		is "$1: and UDP" "$(answers udp "$to" 100)" "${name}1 whole ${name}2 whole 24"
		[ $# -gt 1 ] || like "$1: and fragments" "$(answers udp "$to" 4000)" "^${name}[12] whole 24$"
	done
}
# lists follow their services with some delay
backends_known() {
	[ "$(answers tcp 192.0.2.1 1) $(answers tcp 192.0.2.2 1)" = "p1 whole p2 whole 24 h1 whole h2 whole 24" ]
}
wait_for backends_known
check "native mode"
is "the machine forwards nothing for it" \
	"$(sysctl -n net.ipv4.ip_forward net.ipv6.conf.all.forwarding | xargs)" "0 0"
is "no packet failed" "$(ax xdp stats xc0 -o json | jq -c '.reasons | del(."later-fragment", ."no-backend")')" "{}"
ok "ax doctor finds nothing" ax doctor xc0
like "apps do not connect to where balancers come from" \
	"$(in_app --net host -- "$PYTHON" "$SRC/balance.py" query tcp 10.77.255.255 80 1 1)" "refused"

# the way is there when nothing else may reach apps, outlives the agent, and ends with the config
agent_stop
config native false >"$T/$INST.yaml"
agent_again
check "no host access, another agent" short
ax xdp unload xc0 >/dev/null
config generic >"$T/$INST.yaml"
kill -HUP "$AGENT"
wait_for 'ax xdp status xc0 -o json | grep -q generic'
wait_for backends_known
check "generic mode" short

# a list of the command line's own
sed -i '/^xdp:/,$d' "$T/$INST.yaml"
ok "the config without balancers" ax config apply "$T/$INST.yaml"
is "the way is gone with them" "$(ip route show 10.77.255.255)" ""
cat >"$T/list.yaml" <<EOF
balancers: {own: {backends: ["10.77.1.1:7000"]}}
rules: [{dst: 192.0.2.1, action: balance own}]
EOF
fails "such a list is not loaded unasked" ax xdp load xc0 --rules "$T/list.yaml"
ok "but with --force" ax xdp load xc0 --rules "$T/list.yaml" --force
like "ax doctor names the balancer whose backends cannot answer" "$(ax doctor xc0 | tr -s '\n ' ' ')" \
	"balancer 'own': its backend 10.77.1.1 is an app of this machine, which cannot answer"
ok "unload" ax xdp unload xc0
stop_apps
sysctl -qw net.ipv4.conf.all.rp_filter="$RP_FILTER"
end "$CLIENT"
done_testing
