#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# ax service: services that are added, changed and removed while the agent runs.
. "$(dirname "$0")/lib.sh"
build_c tcp

file=$T/conf.yaml
cat >"$file" <<-EOF
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	services:
	  filed: {ip: 10.77.9.1, ports: ["80:7000"], backends: [one]}
EOF
agent_start "$file"
for mode in private host; do
	for i in 1 2; do
		serve 7000 --net $mode --name "${mode:0:1}$i" --labels "zone=default,tier=$mode,no=$i" -- \
			"$BIN/tcp" listen 6 :: 7000 "${mode:0:1}$i"
	done
done

# who ADDR [MODE]: the server that an app gets
who() {
	local family=4
	[[ $1 != *:* ]] || family=6
	ax run --net "${2:-private}" -- "$BIN/tcp" connect $family "$1" 80 2>&1 | grep -oE "[ph][12] you=|error.*" |
		sed 's/ you=//'
}

ok "a service is added" ax service add shop --ip 10.77.8.1,fd77::8:1 --port 80:7000 --backend p1
for mode in private host; do
	is "$mode: it is reached" "$(who 10.77.8.1 $mode)" p1
	is "$mode: by IPv6" "$(who fd77::8:1 $mode)" p1
done
is "by a program outside" "$("$BIN/tcp" connect 4 10.77.8.1 80 | grep -o 'p1 you')" "p1 you"
is "and by its name" "$(ax get names -o json | jq -r '.[] | select(.name == "shop") | .ip4')" 10.77.8.1
like "it is listed" "$(ax service ls -o wide)" "shop .*added .*p1"
ok "it is changed" ax service set shop --backend h2,weight=3 --strategy maglev --wait 5s
is "and has other backends" "$(who 10.77.8.1)" h2
is "and what was not named stays" "$(ax get services -o json | jq -c '.[] | select(.name == "shop") |
	[.ip4, .strategy, .wait_ms, .backends[0].weight, .ports[0].target]')" '["10.77.8.1","maglev",5000,3,7000]'
ok "backends by labels" ax service set shop --backend labels:tier=private,no=2,weight=2
is "are found" "$(who 10.77.8.1)" p2
ok "a check that fails" ax service set shop --check "exec false" --check-every 100ms --check-fall 1
# shellcheck disable=SC2016 # the condition's shell
ok "leaves none of them" wait_for 'ax get services -o json | jq -e ".[] | select(.name == \"shop\").backends | all(.state == \"down\")"'
ok "a check is taken away" ax service set shop --check none
unlike "and nobody is down" "$(ax service ls shop)" down
is "and reached again" "$(who 10.77.8.1)" p2
ok "a second one, with an address of the pool" ax service add other -p 80:7000 -b address:10.77.8.99:7000 -b h1

# --- exposed ports: a machine next door, which knows nothing of ax ---

unshare -n sleep 1000 &
next=$!
BACKGROUND+=("$next")
wait_for "[ \"\$(readlink /proc/$next/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
veth_or_skip n0 type veth peer name eth0 netns "$next"
ip addr add 198.51.100.1/24 dev n0
ip link set n0 up
nsenter -t "$next" -n sh -c "ip addr add 198.51.100.2/24 dev eth0; ip link set eth0 up"
wait_for 'ip link show n0 | grep -q LOWER_UP'
from_next() { # PORT: the server that answers there
	timeout 20 nsenter -t "$next" -n "$BIN/tcp" connect 4 198.51.100.1 "$1" 2>&1 |
		sed -nE 's/.*([ph][12]) you=.*(198[.]51[.]100[.]2).*/\1 \2/p; s/.*(ECONN.*)/\1/p'
}
ok "a service with exposed ports" ax service add open -p 80:7000 -b h1 --expose 8080:80
is "is reached from outside" "$(from_next 8080)" "h1 198.51.100.2"
ok "they are changed" ax service set open --expose 8081:80 --expose 198.51.100.1:8082:80 -b p1
is "the new ones are reached" "$(from_next 8081) $(from_next 8082)" "p1 198.51.100.2 p1 198.51.100.2"
is "the old one is not" "$(from_next 8080)" ECONNREFUSED
is "they are listed" "$(ax get services -o json | jq -c '.[] | select(.name == "open") | .expose')" \
	'["8081:80/tcp","198.51.100.1:8082:80/tcp"]'
like "a port that another one exposes is refused" \
	"$(ax service add other2 -b h1 -p 80:7000 --expose 8081:80 2>&1)" "8081"
like "and a port that is none" "$(ax service add other2 -b h1 -p 80:7000 --expose 8083 2>&1)" "expose.*8083"
ok "who is removed has none" ax service del open
is "its ports are closed" "$(from_next 8081)" ECONNREFUSED

# --- what is refused says why, and changes nothing ---

refused() { # WHAT PATTERN COMMAND...
	local what=$1 pattern=$2
	shift 2
	like "$what" "$(ax "$@" 2>&1 && echo "done")" "$pattern"
}
before=$(ax get services -o json | jq -cS .)
refused "a name that is there" "there is a service shop: 'ax service set'" service add shop -b p1
refused "a name that the config declares" "config declares the service filed: change .*conf.yaml|config declares the service filed: change .*yaml" \
	service add filed -b p1
refused "del of one that the config declares" "config declares the service filed: change .*yaml" service del filed
refused "set of one that the config declares" "config declares the service filed: change .*yaml" \
	service set filed --strategy maglev
refused "an app's name" "an app is" service add p1 -b p2
refused "del of one that is not there" "no service nobody was added" service del nobody
refused "an address that is taken" "cannot have the address 10.77.9.1: filed has it" \
	service add third --ip 10.77.9.1 -p 80 -b p1
refused "another's address, by set" "cannot have the address 10.77.9.1: filed has it" \
	service set shop --ip 10.77.9.1
refused "a port that is none" 'ports\[0\]: found "80:x", expected a port' service add third -p 80:x -b p1
refused "a weight that is none" 'weight: found "0", expected a whole number' service add third -b p1,weight=0
refused "a duration that is none" 'wait: found "soon"' service add third --wait soon
refused "a strategy that is none" "strategy" service add third --strategy best
refused "a hash of another strategy" "found hash: app .*expected strategy: maglev, or hash: src" \
	service add third -b p1 --strategy random --hash app
refused "nothing to change" "say what to change" service set shop
fails "who is not root" setpriv --reuid 65534 --regid 65534 --clear-groups "$AX" --instance "$INST" service del shop
is "nothing of that has changed anything" "$(ax get services -o json | jq -cS .)" "$before"
is "and shop is still reached" "$(who 10.77.8.1)" p2

# --- a config that does not know them, and the next agent ---

sed -i 's/\[one\]/[p1, p2]/' "$file"
ok "a config is applied" ax config apply "$file"
is "and leaves what was added alone" "$(who 10.77.8.1)" p2
before=$(ax get services -o json | jq -cS 'map(del(.id)) | sort_by(.name)')
agent_kill9
is "without an agent shop is there" "$("$BIN/tcp" connect 4 10.77.8.1 80 | grep -o 'p2 you')" "p2 you"
agent_again
is "the next agent has the same services" "$(ax get services -o json | jq -cS 'map(del(.id)) | sort_by(.name)')" "$before"
is "shop is reached" "$(who fd77::8:1)" p2
ok "and may be changed" ax service set shop --backend h1
is "at once" "$(who 10.77.8.1 host)" h1

# kill -9 in the middle of many changes: each service is there whole, or not at all
for round in 1 2 3; do
	(for i in {1..200}; do
		"$AX" --instance "$INST" service add "m$round-$i" --ip "10.77.1$round.$i" -p 80:7000 -b p1 >/dev/null 2>&1 || break
	done) &
	adding=$!
	wait_for "[ \$(ax get services -o name | grep -c ^m$round-) -ge 3 ]"
	agent_kill9
	wait $adding
	agent_again
	n=$(ax get services -o name | grep -c "^m$round-")
	ok "killed while services are added: $n are there" [ "$n" -ge 3 ]
	is "the last one is whole" "$(who "10.77.1$round.$n")" p1
	# shellcheck disable=SC2046
	ok "and all can be removed" ax service del $(ax get services -o name | grep "^m$round-")
done

# --- what was said is taken away again ---

ok "one with all of it" ax service add emptied --ip 10.77.9.9 -p 80:7000 -b p1,zone=b --expose 9099:80
like "its backend's zone is shown" "$(ax get services emptied)" "p1 10[^ ]* in b"
is "its port is there" "$(who 10.77.9.9)" p1
emptied() {
	ax get services -o json emptied | jq -c ".[0].$1"
}
like "and its exposed one" "$(emptied expose)" 9099
is "by an interface that there is not, which is said" "$(ax service set emptied --expose nosuch0:9099:80 2>&1)" \
	"ax service set: nosuch0:9099:80/tcp is exposed once there is such an interface: now there is none"
ok "nothing exposed" ax service set emptied --expose none
is "nor is it" "$(emptied expose | sed 's/\[\]/null/')" null
like "and nobody listens there" "$(curl -sS -m 5 http://127.0.0.1:9099/ 2>&1)" "Failed to connect|refused"
ok "all ports" ax service set emptied --port none
is "all are" "$(emptied ports | sed 's/\[\]/null/')" null
ok "no backends" ax service set emptied --backend none
is "there are none" "$(emptied backends | sed 's/\[\]/null/')" null
like "which is shown" "$(ax get services emptied)" " none *$"
ok "del of it" ax service del emptied

# --- a config that declares the same name ---

cat >>"$file" <<-EOF
	  shop: {ip: 10.77.8.1, ports: ["80:7000"], backends: [p1]}
EOF
like "the diff says it" "$(ax config apply "$file" --dry-run)" "~ service shop: was added by 'ax service', and is the config's"
is "and a dry run does nothing" "$(who 10.77.8.1)" h1
ok "the config takes it over" ax config apply "$file"
is "with its backends" "$(who 10.77.8.1)" p1
refused "then it is the config's" "config declares the service shop" service del shop
agent_kill9
agent_again
is "the next agent knows" "$(ax get services -o json | jq -r '.[] | select(.name == "shop") | .added')" null
sed -i '/^  shop:/d' "$file"
ok "a config without it" ax config apply "$file"
is "removes it" "$(ax get services -o name | sort | xargs)" "filed other"
ok "del" ax service del other
is "leaves the config's" "$(ax get services -o name | xargs)" "filed"
ok "and no record" [ ! -e "/run/ax/$INST/services.json" ]
done_testing
