#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# ax policy test: what a config's rules say, found out without an agent; and an agent says the same,
# also of rules that were added to it.
. "$(dirname "$0")/lib.sh"

cat >"$T/ax.yaml" <<-EOC
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	  host_access: false
	apps:
	  web: {command: sleep 1000, net: host, labels: "tier=front,zone=default"}
	  db: {command: sleep 1000, ip: 10.77.3.3}
	  away: {command: sleep 1000, labels: zone=away}
	  # not started
	  idle: {ip: 10.77.3.4, labels: tier=guest}
	  named: {command: sleep 1000, egress: ["*.good.test:443"]}
	services:
	  shop: {ports: ["80:7000"], backends: [web, db]}
	policy:
	  rules:
	    - audit: {from: db, to: web, port: 1-99, name: trial}
	    - deny: {from: web, to: db, port: 5432, name: no-direct}
	    - allow: {from: 192.0.2.0/24, to: shop}
	    - deny: {from: db, to: 198.51.100.0/24, protocol: udp}
	    - allow: {from: idle, to: {zone: away}}
	    - deny: {from: web, to: evil.test, name: no-evil}
EOC
cat >"$T/good.yaml" <<-EOC
	config: ax.yaml
	tests:
	  - {from: web, to: db:5432, expect: deny, rule: 2}
	  - {from: web, to: db:5432, expect: deny, rule: no-direct}
	  - {from: web, to: "db:5432/udp", expect: deny}
	  - {from: web, to: db:5433, expect: allow, rule: none}
	  - {from: db, to: web:80, expect: audit, rule: trial}
	  - {from: db, to: web:80, expect: allow}
	  - {from: away, to: web:80, expect: deny, rule: none}
	  - {from: idle, to: away:80, expect: allow, rule: 5}
	  - {from: away, to: shop:80, expect: deny}
	  - {from: web, to: shop:80, expect: allow}
	  - {from: web, to: shop:81, expect: deny}
	  - {from: 192.0.2.7, to: shop:80, expect: allow, rule: 3}
	  - {from: 192.0.2.7, to: 10.77.3.3:7000, expect: allow, rule: 3}
	  - {from: 203.0.113.7, to: db:7000, expect: deny, rule: none}
	  - {from: web, to: "203.0.113.7:80", expect: allow}
	  - {from: db, to: "203.0.113.7:80", expect: deny}
	  - {from: db, to: "198.51.100.7:80/udp", expect: deny, rule: 4}
	  - {from: tier=guest, to: away:80, expect: deny}
	  - {from: {app: idle, labels: zone=other}, to: away, port: 80, expect: deny}
	  - {from: {app: new, labels: zone=away}, to: {app: away}, port: 80, protocol: udp, expect: allow}
	  - {from: named, to: www.good.test:443, expect: allow}
	  - {from: named, to: www.good.test:80, expect: deny}
	  - {from: named, to: good.test:443, expect: deny}
	  - {from: web, to: evil.test:443, expect: deny, rule: no-evil}
	  - {from: web, to: www.good.test:443, expect: allow, rule: none}
	  - {from: db, to: "www.good.test:443/udp", expect: deny, rule: none}
EOC
sed -i 's/, to: away, port: 80, expect: deny}/, to: away:80, expect: allow, rule: 5}/' "$T/good.yaml"
is "all hold" "$("$AX" policy test "$T/good.yaml")" "26 expectations hold"
ok "a file of its own for the config" "$AX" policy test "$T/good.yaml" --config "$T/ax.yaml"

# failing WHAT EXPECTATION REGEX
failing() {
	local out status
	printf 'config: ax.yaml\ntests:\n  - %s\n' "$2" >"$T/bad.yaml"
	out=$("$AX" policy test "$T/bad.yaml" 2>&1)
	status=$?
	like "$1" "$status $out" "^1 $T/bad\.yaml:3:.*$3"
}
failing "another verdict" '{from: web, to: db:5432, expect: allow}' \
	'web -> db port 5432/tcp: expected allow, found deny by rule 2 \(no-direct\): deny web -> db port 5432'
failing "another rule" '{from: web, to: db:5432, expect: deny, rule: 1}' 'expected deny by rule 1, found deny by rule 2'
failing "labels" '{from: away, to: web:80, expect: allow}' 'found deny by no label in common'
failing "no rule on trial" '{from: web, to: away:80, expect: audit}' 'found deny'
failing "a name that it does not have" '{from: nobody, to: web:80, expect: allow}' 'no app nobody'
failing "neither is an app's" '{from: 192.0.2.1, to: "192.0.2.2:80", expect: allow}' 'neither end'
failing "a name outside asks nobody" '{from: www.good.test, to: web:80, expect: allow}' 'the name of an app'
failing "a port is missing" '{from: web, to: db, expect: allow}' 'NAME:PORT'
failing "a key is missing" '{from: web, to: db:80}' 'from, to and expect in each'
failing "a word that is not one" '{from: web, to: db:80, expect: maybe}' 'allow, deny or audit'
failing "its name" '{name: front door, from: web, to: db:5432, expect: allow}' 'front door: web'
like "and how many" "$("$AX" policy test "$T/bad.yaml")" "1 of 1 expectations failed"

printf 'tests: [{from: web, to: db:80, expect: allow}]\n' >"$T/none.yaml"
like "no config" "$("$AX" policy test "$T/none.yaml" 2>&1)" "give --config FILE"
ok "that is given then" "$AX" policy test "$T/none.yaml" --config "$T/ax.yaml"
cat >"$T/inside.yaml" <<-'EOC'
	config: |
	  apps:
	    web: {command: x}
	    db: {command: x}
	tests:
	  - {from: web, to: db:80, expect: allow}
EOC
ok "a config in the file itself" "$AX" policy test "$T/inside.yaml"
sed -i 's/db: {command: x}/db: {commande: x}/' "$T/inside.yaml"
like "whose errors have their line there" "$("$AX" policy test "$T/inside.yaml" 2>&1)" "^$T/inside\.yaml:4:.*commande"
is "no file" "$("$AX" policy test "$T/nothing.yaml" >/dev/null 2>&1; echo $?)" 125

# an agent says the same
agent_start "$T/ax.yaml"
launched web db away named
while read -r from to verdict; do
	explained=allow
	ax policy explain "$from" "$to" >"$T/explained" 2>&1 || explained=deny
	[ "$verdict" = deny ] || verdict=allow
	is "the agent: $from to $to" "$explained" "$verdict"
done < <(sed -n 's/^  - {from: \([a-z0-9.]*\), to: "*\([^",]*:[^",]*\)"*, expect: \([a-z]*\).*/\1 \2 \3/p' "$T/good.yaml")

# in force: what was added, too
is "what is in force is the same" "$(ax policy test "$T/good.yaml" --in-force)" "26 expectations hold"
cat >"$T/added.yaml" <<-EOC
	tests:
	  - {from: web, to: db:5433, expect: deny, rule: closed}
	  - {from: web, to: db:5432, expect: deny, rule: 2}
	  - {from: web, to: more:80, expect: deny, rule: closed}
	  - {from: away, to: late:80, expect: allow, rule: none}
	  - {from: role=new, to: away:80, expect: deny, rule: none}
EOC
ok "a rule is added" ax policy add closed deny --to db --port 5433 --first
ok "a service" ax service add more --port 80:5433 --backend db
run_app --name late --labels zone=away -- sleep 1000
wait_for "ax get apps late >/dev/null" || not_ok "an app that the config does not have runs"
is "they are judged by" "$(ax policy test "$T/added.yaml" --in-force)" "5 expectations hold"
ok "the config alone does not know them" [ "$("$AX" policy test "$T/good.yaml")" = "26 expectations hold" ]
sed -i 's/deny, rule: closed/allow/; s/rule: 2/rule: 3/' "$T/added.yaml"
out=$(ax policy test "$T/added.yaml" --in-force)
is "and one that does not hold is told" "$?" 1
like "with its line and the rule" "$out" "added.yaml:2: web -> db port 5433/tcp: expected allow, found deny by rule closed: deny"
like "those of the config keep their numbers" "$out" "added.yaml:3: .* expected deny by rule 3, found deny by rule 2 .no-direct"
like "and how many" "$out" "3 of 5 expectations failed"
like "a config is another question" "$(ax policy test "$T/good.yaml" --config "$T/ax.yaml" --in-force 2>&1)" 'give one of them'
stop_app "$APP"
ok "the service goes" ax service del more
ok "and the rule" ax policy del closed
default_config >"$T/none.yaml"
ok "they end" ax config apply "$T/none.yaml"
done_testing
