#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# As many different labels as there may be: one more is refused, also where a config brings it, and
# everybody keeps the labels that they have.
. "$(dirname "$0")/lib.sh"
need jq

# config ZONE: of apps that say nothing; one is started, the other one is to come
config() {
	default_config
	cat <<-EOC
		policy: {labels: {zone: $1}}
		apps:
		  waits: {ip: 10.77.1.1}
		  runs: {ip: 10.77.1.2, command: sleep 1000}
	EOC
}
config here >"$T/here.yaml"
config there >"$T/there.yaml"
default_config >"$T/none.yaml"
agent_start "$T/here.yaml"
launched runs
run_app --name full --labels "$(seq -s , -f 'l%.0f=' 255)" -- sleep 1000
full=$APP
launched full

# may FROM TO: whether the one may come to the other, as the programs decide it
may() { ax policy explain "$1" "$2:80" -o json | jq .allowed; }
labels() { ax get apps "$1" -o json | jq -r '.[0].labels'; }
no_room="there are 256 different labels already, and no room for"

like "an app with one more is refused" "$(in_app --labels more= -- true 2>&1)" "$no_room 'more='"
ok "one with labels that others have is not" in_app --labels l1=,zone=here -- true
is "those of the config are of one zone" "$(may waits runs) $(may runs waits)" "true true"
out=$(ax config apply "$T/there.yaml" 2>&1)
is "a config with one more cannot be done as a whole" "$?" 1
like "which it says" "$out" "not all of it could be done: $no_room 'zone=there'"
is "the app that runs keeps its labels" "$(labels runs)" "zone=here"
is "so does the one that is to come" "$(may waits runs) $(may runs waits)" "true true"
is "and nobody has got others" "$(may full waits) $(may waits full)" "false false"
like "and tries again when it is asked again" "$(ax config apply "$T/there.yaml" 2>&1)" "not all of it could be done: $no_room"
ok "the former config holds again" ax config apply "$T/here.yaml"
is "with all that was" "$(may waits runs) $(may runs waits)" "true true"

# what the app had is free when it ends
stop_app "$full"
ok "then there is room" ax config apply "$T/there.yaml"
is "for the one that is to come; who runs keeps what it has" \
	"$(labels runs) $(may waits runs) $(may runs waits)" "zone=here false false"
ok "the config's go" ax config apply "$T/none.yaml"
done_testing
