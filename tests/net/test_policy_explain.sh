#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# ax policy explain: what it says is what happens, and it names the rule, the label and the place.
. "$(dirname "$0")/lib.sh"
build_c tcp udp

agent_start - <<-EOC
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	  host_access: false
	apps:
	  idle: {ip: 10.77.1.9, labels: tier=back}
	services:
	  shop: {ip: 10.77.200.1, ports: ["80:7000"], backends: [server, other]}
	  empty: {ip: 10.77.200.2, ports: ["80"], backends: [nobody]}
	policy:
	  rules:
	    - audit: {from: guest, to: server, name: trial}
	    - log: {to: server, port: 7000, name: seen}
	    - deny: {from: guest, to: server, port: 7001, name: no-guests}
	    - deny: {from: guest, to: 198.51.100.0/24}
	    - allow: {from: 192.0.2.0/24, to: server, port: 7000}
	    - deny: {from: shopper, to: server}
	    - deny: {from: guest, to: other, protocol: udp}
EOC
serve 7000 --net host --ip 10.77.1.1,fd77::1:1 --name server -- "$BIN/tcp" listen 6 :: 7000
serve 7000 --ip 10.77.1.2 --name other -- "$BIN/tcp" listen 4 0.0.0.0 7000
run_app --name guest -- sleep 1000
run_app --name shopper --net host -- sleep 1000
run_app --name stranger --labels zone=away -- sleep 1000
launched guest shopper stranger

# explained STATUS FROM TO: what is said, where the exit status is that
explained() {
	local out status
	out=$(ax policy explain "$2" "$3" 2>&1)
	status=$?
	[ "$status" -eq "$1" ] || out="exit status $status: $out"
	echo "$out"
}
# happens APP ADDRESS PORT: the errno that a connect gets, or "connected"
happens() {
	ax exec "$1" "$BIN/tcp" connect 4 "$2" "$3" 2>&1 |
		sed -n 's/^error [a-z]* //p; s/^peer=.* you=.*/connected/p'
}

like "a rule that denies" "$(explained 1 guest server:7001)" \
	'guest .* -> server 10\.77\.1\.1:7001/tcp: refused.*refused \(EACCES\) at connect by rule 3 \(no-guests\): deny guest -> server port 7001'
is "so it is" "$(happens guest 10.77.1.1 7001)" EACCES
like "no rule: labels" "$(explained 0 guest server:7000)" \
	'allowed at connect by no rule, and a label in common: zone=default and zone=default'
is "so it is" "$(happens guest 10.77.1.1 7000)" connected
like "a rule on trial" "$(explained 0 guest server:7000)" 'would be refused by rule 1 \(trial\)'
like "one that only tells" "$(explained 0 guest server:7000)" 'told of by rule 2 \(seen\)'
like "no label in common" "$(explained 1 stranger server:7000)" \
	'refused \(ECONNREFUSED\) at connect by no rule, and no label in common: zone=away and zone=default'
is "so it is" "$(happens stranger 10.77.1.1 7000)" ECONNREFUSED
like "by addresses" "$(explained 1 "$(ax get apps -o json guest | jq -r '.[0].ip4')" 10.77.1.1:7001)" 'rule 3'
like "by IPv6" "$(explained 1 guest '[fd77::1:1]:7001')" 'rule 3'
like "by ids" "$(explained 1 "$(ax get apps -o json guest | jq -r '.[0].id')" server:7001)" 'rule 3'
like "by the whole name" "$(explained 1 guest server.ax.internal:7001)" 'rule 3'
like "datagrams" "$(explained 1 guest other:7000/udp)" 'refused \(EACCES\) at sendmsg by rule 7'
like "where the receiving side asks: a private app" "$(explained 0 shopper other:7000)" 'asks again: fabric'
like "and one in host mode" "$(explained 1 shopper server:7000)" 'asks again: sk_lookup'

out=$(explained 0 shopper shop:80)
like "a service: one backend is refused" "$out" 'server 10\.77\.1\.1:7000: refused \(EACCES\) at connect by rule 6'
like "the other is not" "$out" 'other 10\.77\.1\.2:7000: allowed at connect by no rule, and a label'
is "so it is" "$(happens shopper 10.77.200.1 80)" connected
like "a port that it does not have" "$(explained 1 shopper shop:81)" 'does not have that port'
is "so it is" "$(happens shopper 10.77.200.1 81)" ECONNREFUSED
like "no backends" "$(explained 1 shopper empty:80)" 'EHOSTUNREACH.*no backends'
is "so it is" "$(happens shopper 10.77.200.2 80)" EHOSTUNREACH

like "outside, by a rule" "$(explained 1 guest 198.51.100.7:443)" 'EACCES.*rule 4: deny guest -> 198\.51\.100\.0/24'
like "outside, by nothing" "$(explained 1 guest 203.0.113.7:443)" 'ENETUNREACH.*may not leave ax \(egress\)'
is "so it is" "$(happens guest 203.0.113.7 443)" ENETUNREACH
like "outside, in host mode" "$(explained 0 shopper 203.0.113.7:443)" 'allowed at connect by no rule, and it may leave'
like "from outside, by a rule" "$(explained 0 192.0.2.9 server:7000)" 'allowed at sk_lookup by rule 5'
like "from outside, by nothing" "$(explained 1 192.0.2.9 other:7000)" 'refused .* at fabric by no rule, and programs outside may not come in'
like "from this machine" "$(explained 1 host other:7000)" 'refused .* at fabric'
like "an app that does not run: as server" "$(explained 1 guest idle:80)" 'no label in common: zone=default and tier=back'
like "and as client" "$(explained 1 idle other:80)" 'no label in common: tier=back and zone=default'
like "DNS" "$(explained 0 guest 8.8.8.8:53/udp)" 'the agent answers DNS'

like "a name that nobody has" "$(explained 125 guest nobody:80)" 'there is no app or service nobody'
like "neither is an app's" "$(explained 125 192.0.2.1 192.0.2.2:80)" 'neither end'
like "no port" "$(explained 2 guest server)" 'needs a port'
like "an address of IPv6 without brackets" "$(explained 2 guest fd77::1:1:80)" 'needs a port'
is "JSON" "$(ax policy explain -o json guest server:7001 | jq -c '[.allowed, .verdicts[0].errno, .verdicts[0].decides.rule]')" \
	'[false,"EACCES",3]'
hits=$(ax policy ls -o json | jq -c '[.[].hits]')
explained 1 guest server:7001 >/dev/null
is "nothing is counted" "$(ax get policy -o json | jq -c '[.[].hits]')" "$hits"
like "a word of others" "$(ax policy why 2>&1)" "ax policy explain FROM TO:PORT"
like "a word of others, of ax" "$(ax rules 2>&1)" "ax policy ls"

# other rules: what is said is what holds
sed -i 's/port: 7001, name: no-guests/port: 7002, name: no-guests/' "$T/$INST.yaml"
ok "other rules" ax config apply "$T/$INST.yaml"
like "are explained" "$(explained 0 guest server:7001)" 'a label in common'
agent_kill9
agent_again
like "and by the next agent" "$(explained 1 guest server:7002)" 'rule 3'
done_testing
