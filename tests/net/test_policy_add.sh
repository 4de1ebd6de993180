#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Rules that 'ax policy' adds among those of the config: one that denies holds at every moment while
# it moves and while others come and go, it is explained and counted, and neither a config that is
# applied nor another agent moves or forgets it.
. "$(dirname "$0")/lib.sh"
need jq
build_c knock

# config RULES...: each a line of policy.rules
config() {
	cat <<-EOC
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
		  shop: {ip: 10.77.200.9, ports: [7000], backends: [{address: 192.0.2.1}]}
		policy:
		  rules:
		$(printf '    - %s\n' "$@")
	EOC
}
# (a name that a rule has, and what the other one says, are what others stand before)
NAMED='log: {name: watch, to: {role: nobody}}'
PLAIN='allow: {from: {zone: z}, to: {zone: z}}'
config "$NAMED" "$PLAIN" >"$T/a.yaml"
config 'log: {to: {role: auditor}}' "$NAMED" 'log: {from: {role: auditor}}' "$PLAIN" >"$T/b.yaml"
agent_start "$T/a.yaml"

# listed FILTER: what 'ax policy ls' says, as JSON
listed() { ax policy ls -o json | jq -rc "$1"; }
order() { listed '[.[] | "\(.rule // .name):\(.origin)"] | join(" ")'; }
# fails WHAT WORDS -- COMMAND...: it says these words, and nothing is changed
fails() {
	local what=$1 words=$2 before out
	before=$(order)
	shift 3
	out=$("$@" 2>&1) && not_ok "$what: it is refused" "$out"
	like "$what: it is told why" "$out" "$words"
	is "$what: nothing is changed" "$(order)" "$before"
}

serve 7000 --ip 10.77.200.1 --name vault --labels zone=z,role=vault -- "$BIN/knock" server 4 0.0.0.0 7000
serve 7000 --ip 10.77.200.2 --name safe --net host --labels zone=z,role=vault -- \
	"$BIN/knock" server 4 0.0.0.0 7000

# --- where they stand ---

ok "a rule is added" ax policy add no-guests deny --from role=guest --to role=vault --port 7000 --protocol tcp --before 2
is "the config's keep their numbers" "$(order)" "1:config no-guests:added 2:config"
like "its words are the config's" "$(listed '.[1].text')" '^role=guest -> role=vault port 7000 tcp$'
ok "one comes behind all" ax policy add later audit --to shop
ok "one before all" ax policy add early log --from 198.51.100.0/24 --first
ok "one after another" ax policy add next log --from 203.0.113.0/24 --to vault --port 80 --port 90-99 --after early
is "each is where it was put" "$(order)" \
	"early:added next:added 1:config no-guests:added 2:config later:added"
like "the table says where each comes from" "$(ax policy ls)" 'no-guests +added +deny'
ok "what is said of ports is taken away, and of who is asked" ax policy set next --no-port --no-to
is "and all else stays" "$(listed '.[1].text')" '203.0.113.0/24 -> any app'
fails "what is said and taken away at once" '--port and --no-port' -- ax policy set next --port 80 --no-port
fails "an empty word takes nothing away" '--port needs a value' -- ax policy set next --port ''
fails "a name twice" "'ax policy set' changes it" -- ax policy add early deny
fails "a name of the config's" 'the config has the rule watch' -- ax policy add watch deny
fails "a number for a name" 'has a name, not a number' -- ax policy add 7 deny
fails "before a rule that is not there" 'no rule nobody' -- ax policy add x deny --before nobody
fails "before a number that is not there" "has no rule '3'" -- ax policy set later --before 3
fails "before itself" 'itself' -- ax policy set later --before later
fails "what is no port" '^[^.]*ports' -- ax policy add x deny --port nil
fails "what others stand by" 'next stands before or after early' -- ax policy del early
fails "two, one of which is not there" 'no rule gone was added' -- ax policy del later gone
fails "one of the config's" 'the config has the rule watch' -- ax policy del watch
ok "two are removed at once" ax policy del early next
ok "and another" ax policy del later
is "the others stay" "$(order)" "1:config no-guests:added 2:config"

# --- it holds while it and others move ---

declare -A out
clients=()
# client MODE ROLE ADDR
client() {
	run_app --net "$1" --name "$1-$2" --labels "zone=z,role=$2" -- "$BIN/knock" client 4 "$3" 7000
	out[$1-$2]=$OUT
	clients+=("$APP")
	wait_for "grep -q ready $OUT" || not_ok "the client knocks" "$(cat "$OUT")"
}
client private guest 10.77.200.1
client host guest 10.77.200.2
client private other 10.77.200.1

failed=
for to in --first '--before 2' '--after watch' '--before watch'; do
	# shellcheck disable=SC2086 # two words
	ax policy set no-guests $to || failed+=" $to"
	ax policy add wide allow --from role=auditor --last || failed+=" add"
	ax policy set no-guests deny --from role=guest --from role=thief || failed+=" set"
	ax policy del wide || failed+=" del"
	ax config apply "$T/b.yaml" >/dev/null || failed+=" b"
	ax config apply "$T/a.yaml" >/dev/null || failed+=" a"
done
is "all of it was done" "$failed" ""
hits=$(listed '.[] | select(.name == "no-guests").hits')
ok "and counted" [ "${hits:-0}" -gt 0 ]
like "it is explained" "$(ax policy explain private-guest vault:7000)" 'by rule no-guests: deny role=guest or role=thief'
ax config apply "$T/b.yaml" >/dev/null
is "a config has other rules: it is where it was" "$(order)" \
	"1:config no-guests:added 2:config 3:config 4:config"
ok "its count goes on" [ "$(listed '.[] | select(.name == "no-guests").hits')" -ge "$hits" ]
config "$PLAIN" >"$T/lost.yaml"
fails "a config without the rule that it stands before" 'no-guests stands before the rule .watch' -- \
	ax config apply "$T/lost.yaml"
ok "another stands beside it" ax policy add beside log --after no-guests
sed 's/^  rules:/  egress: [{name: no-guests, from: {a: b}, to: none}]\n&/' "$T/b.yaml" >"$T/list.yaml"
fails "a config with an egress list of the name of one that another stands by" 'beside stands after the rule .no-guests' -- \
	ax config apply "$T/list.yaml"
ok "which goes" ax policy del beside
mapfile -t many < <(yes 'log: {from: {role: nobody}}' | head -n 1023)
config "$NAMED" "$PLAIN" "${many[@]:1}" >"$T/full.yaml"
fails "a config with as many rules as there may be, beside an added one" 'no room' -- ax config apply "$T/full.yaml"

# --- the next agent ---

# refused_start WHAT WORDS: an agent does not start, and says why
refused_start() {
	like "$1" "$(timeout -k 1 30 "$AX" --instance "$INST" agent --config "$T/$INST.yaml" 2>&1)" "$2"
}
RECORD=/run/ax/$INST/policy.json
ok "another rule is added" ax policy add another log
agent_kill9
cp "$RECORD" "$T/record"
echo '[{' >"$RECORD"
refused_start "an agent that cannot read rules that may deny does not start" "added rules in $RECORD cannot be read"
cp "$T/record" "$RECORD"
config 'deny: {name: no-guests}' "${many[@]}" >"$T/$INST.yaml"
refused_start "nor one with more rules than there may be, of which the config takes over one" 'no room'
ok "and the record is as it was" cmp "$T/record" "$RECORD"
cp "$T/b.yaml" "$T/$INST.yaml"
agent_again
is "the next agent has it where it was" "$(order)" "1:config no-guests:added 2:config 3:config 4:config another:added"
ok "which goes" ax policy del another
ok "and what it counted" [ "$(listed '.[] | select(.name == "no-guests").hits')" -ge "$hits" ]
cp "$T/lost.yaml" "$T/$INST.yaml"
agent_stop
agent_again
is "one that starts with another config has it before all" "$(order)" "no-guests:added 1:config"
ok "and says so" grep -q "no-guests stood before the rule 'watch'" "$T/$INST.log"
ok "an app cannot read the record" [ "$(stat -c '%a %u' "/run/ax/$INST/policy.json")" = "600 0" ]

# --- what the config says of names, and as its own ---

ok "a rule names a service" ax policy add shop deny --from role=other --to shop --first
like "and so who serves it" "$(ax policy explain private-other 192.0.2.1:7000)" 'by rule shop: deny'
sed 's/192.0.2.1/192.0.2.2/' "$T/lost.yaml" >"$T/served.yaml"
ok "another one serves it" ax config apply "$T/served.yaml"
like "whom it knows" "$(ax policy explain private-other 192.0.2.2:7000)" 'by rule shop: deny'
unlike "and the other one no more" "$(ax policy explain private-other 192.0.2.1:7000)" 'rule shop'
config 'deny: {name: no-guests, from: {role: guest}, to: {role: vault}}' "$PLAIN" >"$T/own.yaml"
like "a config with a rule of its name" "$(ax config apply "$T/own.yaml")" \
	"no-guests: was added by 'ax policy', and is the config's"
is "has taken it over" "$(order)" "shop:added 1:config 2:config"
like "and it is explained as its own" "$(ax policy explain private-guest vault:7000)" 'by rule 1 .no-guests'
ok "the last one goes" ax policy del shop
ok "with the record" [ ! -e "/run/ax/$INST/policy.json" ]

for pid in "${clients[@]}"; do
	stop_app "$pid"
done
for who in private-guest host-guest; do
	like "no connection of a $who at any moment" "$(tail -n 1 "${out[$who]}")" "^EACCES=[0-9]{3,}$"
done
ax policy add left log
agent_stop
ok "a flush takes what was added along" ax agent --flush
ok "the record, too" [ ! -e "/run/ax/$INST/policy.json" ]
like "and all of another client" "$(tail -n 1 "${out[private-other]}")" "^connected=[0-9]{3,}$"
done_testing
