#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Interfaces that others have programs on, that vanish, are renamed or have odd names; loads that
# are killed; several instances; and what is left after an unload: nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq bpftool clang "$PYTHON"

build foreign.bpf.o foreign.bpf.c clang -O2 -g -target bpf \
	-idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$SRC/foreign.bpf.c" -o %o
peer_host
known_neighbours
ASIDE=$(random_name)
INSTANCES+=("$ASIDE")
aside() {
	ax_in "$ASIDE" xdp "$@"
}

cat >"$T/rules.yaml" <<'EOF'
rules:
  - {name: ping, icmp: echo-request, action: drop}
EOF
pings() {
	peer "$PYTHON" "$SRC/packets.py" ping 198.51.100.1 "${1:-1}"
}
# program IFACE: the one on it
program() {
	ip -d -j link show "$1" | jq -r '.[0].xdp.prog.name // "none"'
}
pins() {
	find /sys/fs/bpf -mindepth 1 ! -name '*.debug' ! -path /sys/fs/bpf/xdp
}
# BPF programs and maps that are pinned by nobody and attached to nothing go a moment later
gone() { # ID...: of programs
	local id
	for id; do
		bpftool prog show id "$id" >/dev/null 2>&1 && return 1
	done
	return 0
}
# programs of this instance: those that share the pinned counters
ours() { # IFACE [INSTANCE]
	local map
	map=$(bpftool map show pinned "/sys/fs/bpf/${2:-$INST}-xdp/$1/rule_counts" -j | jq .id)
	bpftool prog show -j | jq --argjson m "$map" '.[] | select(.map_ids // [] | index($m)).id'
	bpftool prog show pinned "/sys/fs/bpf/${2:-$INST}-xdp/$1/root" -j | jq .id
}

# --- another's program ---

bpftool prog load "$BIN/foreign.bpf.o" "/sys/fs/bpf/foreign" type xdp
bpftool net attach xdpdrv pinned /sys/fs/bpf/foreign dev xc0
is "another's program is there" "$(program xc0)" foreign_filter
out=$(xdp load xc0 --rules "$T/rules.yaml" 2>&1)
is "a load is refused" $? 1
like "the other one is named, and what can be done" "$out" "'foreign_filter' \(id [0-9]+\).*--replace"
is "it is still there" "$(program xc0)" foreign_filter
is "nothing of ours is" "$(pins | grep -v foreign | grep -c xc0)" 0
like "status shows it" "$(xdp status xc0)" "foreign_filter"
is "in JSON as another's" "$(xdp status xc0 -o json | jq -c '.[0] | [.loaded, .programs[0].name, .programs[0].ours]')" \
	'[false,"foreign_filter",false]'
like "unload does not touch it" "$(xdp unload xc0 2>&1)" "no rules of ax are loaded on xc0"
is "really" "$(program xc0)" foreign_filter
ok "--replace" xdp load xc0 --rules "$T/rules.yaml" --replace
is "takes its place" "$(program xc0)" ax_root
is "the rules judge" "$(pings)" 0
out=$(aside load xc0 2>&1)
is "another instance is refused in the same way" $? 1
like "with ax's name" "$out" "'ax_root' \(id [0-9]+\)"
is "the first one's rules judge on" "$(pings)" 0
ok "unload" xdp unload xc0
is "no program is left" "$(program xc0)" none
is "and traffic" "$(pings)" 1
rm /sys/fs/bpf/foreign

bpftool prog load "$BIN/foreign.bpf.o" /sys/fs/bpf/foreign type xdp
bpftool net attach xdpgeneric pinned /sys/fs/bpf/foreign dev xc0
out=$(xdp load xc0 2>&1)
is "one in generic mode is in the way, too" $? 1
like "by name" "$out" "foreign_filter"
ok "and can be replaced" xdp load xc0 --replace
is "it is" "$(program xc0)" ax_root
ok "unload" xdp unload xc0
rm /sys/fs/bpf/foreign

# --- the foreign program comes later ---

ok "load" xdp load xc0 --rules "$T/rules.yaml"
ids=$(ours xc0)
bpftool prog load "$BIN/foreign.bpf.o" /sys/fs/bpf/foreign type xdp
bpftool net attach xdpdrv pinned /sys/fs/bpf/foreign dev xc0 overwrite
is "somebody overwrites ours" "$(program xc0)" foreign_filter
like "status tells whose is there" "$(xdp status xc0)" "foreign_filter"
like "commands tell that ours is not" "$(xdp stats xc0 2>&1)" "no rules of ax are loaded on xc0"
xdp unload xc0 >/dev/null 2>&1
is "the other one stays" "$(program xc0)" foreign_filter
# shellcheck disable=SC2086
ok "what was left of ours is gone" wait_for "gone ${ids//$'\n'/ }"
bpftool net detach xdpdrv dev xc0
rm /sys/fs/bpf/foreign

# --- interfaces come and go ---

ok "load" xdp load xc0 --rules "$T/rules.yaml"
ids=$(ours xc0)
ip link del xc0
is "an interface is deleted: status knows what it left" "$(xdp status -o json)" \
	"$(jq . <<<'[{"interface": "xc0", "loaded": false, "elsewhere": true, "programs": []}]')"
like "its commands say so" "$(xdp stats xc0 2>&1)" "no interface 'xc0'"
veth
known_neighbours
is "another one of that name has no rules" "$(xdp status xc0)" "xc0: nothing is loaded"
is "and traffic" "$(pings)" 1
ok "load there" xdp load xc0 --rules "$T/rules.yaml"
is "its rules judge" "$(pings)" 0
is "its counters begin anew" "$(count ping)" 1
# shellcheck disable=SC2086
ok "nothing of the former one is left" wait_for "gone ${ids//$'\n'/ }"

ip link set xc0 down
ip link set xc0 name xc1
ip link set xc1 up
is "an interface is renamed: its rules judge on" "$(pings)" 0
is "they are found by the new name" "$(xdp status xc1 -o json | jq -c '.[0] | [.loaded, .rules]')" '[true,1]'
is "with their counters" "$(count ping packets xc1)" 2
ok "and can be changed" xdp rule add xc1 --at 1 name pass icmp echo-request action pass
is "which takes effect" "$(pings)" 1
is "the old name has nothing" "$(pins | grep -c '/xc0/')" 0
ok "unload by the new name" xdp unload xc1
is "nothing is there" "$(program xc1)" none
ip link set xc1 down
ip link set xc1 name xc0
ip link set xc0 up

# --- renamed, and another one has the name now ---

ip link add one type veth peer name one-peer
ip link add two type veth peer name two-peer
ok "two interfaces" xdp load one --rules "$T/rules.yaml"
ok "with a list each" xdp load two
ip link set one name tmp
ip link set two name one
ip link set tmp name two
is "they swap names: both are known" \
	"$(xdp status -o json | jq -c '[.[] | [.interface, .rules]] | sort')" '[["one",0],["two",1]]'
ok "one is changed" xdp rule add one name new action pass
is "it alone" "$(xdp rule list one -o json | jq -c '[.rules[].name]') $(
	xdp rule list two -o json | jq -c '[.rules[].name]')" '["new"] ["ping"]'
ok "the other one is unloaded" xdp unload two
is "it alone, too" "$(program one) $(program two)" "ax_root none"
ip link set one name three
ip link set two name one
ok "a load under the old name of a renamed one" xdp load one
is "leaves that alone" "$(xdp rule list three -o json | jq -c '[.rules[].name]')" '["new"]'
for name in one three; do
	ok "unload $name" xdp unload $name
done
ip link del one
ip link del three

# --- an interface of the same name in another network namespace ---

ip link add eth0 type veth peer name eth0-peer
elsewhere() {
	peer "$AX" --instance "$INST" xdp "$@"
}
ok "the peer loads a list on its eth0" elsewhere load eth0 --rules "$T/rules.yaml"
like "the one here has none" "$(xdp stats eth0 2>&1)" "no rules of ax are loaded on eth0"
like "nor does unload touch that" "$(xdp unload eth0 2>&1)" "no rules of ax are loaded on eth0"
out=$(xdp load eth0 2>&1)
is "a load here is refused" $? 1
like "with a sentence" "$out" "another network namespace.*--instance.*--replace"
is "the peer has its list" "$(elsewhere rule list eth0 -o json | jq -c '[.rules[].name]')" '["ping"]'
like "status says where a list of that name is" "$(xdp status)" "eth0: not an interface of this network namespace"
is "to programs, too" "$(xdp status -o json | jq -c '[.[] | select(.elsewhere).interface]')" '["eth0"]'
is "there it is one like others" "$(elsewhere status -o json | jq -c '[.[] | [.interface, .loaded, .elsewhere]]')" \
	'[["eth0",true,null]]'
ok "another instance can" aside load eth0
ok "unload that" aside unload eth0
ok "the peer unloads its own" elsewhere unload eth0
ok "then there is room" xdp load eth0
ok "unload" xdp unload eth0
ip link del eth0

# --- an interface whose network namespace is gone ---

new_netns
GONE_PID=$BG
ip link add gone0 type veth peer name gone1
ip link set gone1 netns "$GONE_PID"
ok "load in a namespace" nsenter -t "$GONE_PID" -n "$AX" --instance "$INST" xdp load gone1 --rules "$T/rules.yaml"
end "$GONE_PID"
ok "which goes" wait_for '! ip link show gone0 2>/dev/null'
like "status tells what it left, and how to end it" "$(xdp status)" \
	"gone1: not an interface .* or gone; where it is gone: ax xdp unload gone1"
is "which it does" "$(xdp unload gone1 2>&1)" "gone1: unloaded"
is "then it is gone" "$(xdp status -o json | jq -c '[.[] | select(.elsewhere).interface]')" '[]'

# --- a load that is refused leaves nothing ---

echo 'rules: [{proto: udp, action: redirect nowhere0}]' >"$T/nowhere.yaml"
like "a load is refused" "$(aside load xc0 --rules "$T/nowhere.yaml" 2>&1)" "nowhere0, which does not exist"
ok "and leaves no directory" test ! -e "/sys/fs/bpf/$ASIDE-xdp"

# --- in a mount namespace without a bpf filesystem, as 'ip netns exec' makes it ---

ip netns add named
ip link add vn0 type veth peer name vn1 netns named
ip -n named link set vn1 up
in_named() {
	ip netns exec named "$AX" --instance "$INST" xdp "$@"
}
ok "load by ip netns exec" in_named load vn1 --rules "$T/rules.yaml"
is "the list is there when the command has ended" \
	"$(in_named rule list vn1 -o json | jq -c '[.rules[].name]')" '["ping"]'
ok "it can be changed" in_named rule add vn1 name two action pass
is "the same from outside" "$(nsenter --net=/run/netns/named "$AX" --instance "$INST" \
	xdp rule list vn1 -o json | jq -c '[.rules[].name]')" '["ping","two"]'
ok "unload" in_named unload vn1
ip link del vn0
ip netns del named

# --- names that look like others' ---

for name in nat eth1 eth1-new nat-new; do
	ip link add $name type veth peer name p-$name
	ok "load on $name" xdp load $name --rules "$T/rules.yaml"
done
ok "load on eth1 again" xdp unload eth1
ok "which needs a place for it" xdp load eth1
is "all are there" "$(xdp status -o json | jq -c '[.[] | select(.loaded).interface] | sort')" \
	'["eth1","eth1-new","nat","nat-new"]'
for name in nat eth1 eth1-new nat-new; do
	ok "unload $name" xdp unload $name
	ip link del $name
done

# --- odd names ---

ip link add eth0.100 type veth peer name a-b.c_d
ip link set eth0.100 up
ip link set a-b.c_d up
for name in eth0.100 a-b.c_d; do
	ok "load on $name" xdp load "$name" --rules "$T/rules.yaml"
	like "status of it" "$(xdp status)" "$name: 1 rule"
	ok "a change" xdp rule add "$name" name two action pass
	is "its counters" "$(xdp stats "$name" -o json | jq -c '[.interface, .rules[].rule]')" \
		"[\"$name\",\"ping\",\"two\",\"default\"]"
	ok "unload" xdp unload "$name"
done

# --- two instances, two interfaces ---

ok "one instance here" xdp load xc0 --rules "$T/rules.yaml"
ok "another one there" aside load eth0.100 --rules "$T/rules.yaml"
is "each has its own" "$(xdp status -o json | jq -c '[.[] | select(.loaded).interface]') $(
	aside status -o json | jq -c '[.[] | select(.loaded).interface]')" '["xc0"] ["eth0.100"]'
like "and no say over the other's" "$(xdp unload eth0.100 2>&1)" "no rules of ax are loaded on eth0.100"
ok "one goes" aside unload eth0.100
is "the other stays" "$(pings)" 0

# --- unload leaves nothing ---

ids=$(ours xc0)
ok "there are programs" test "$(wc -w <<<"$ids")" -ge 2
ok "unload" xdp unload xc0
# shellcheck disable=SC2086
ok "they are gone" wait_for "gone ${ids//$'\n'/ }"
is "so are all pins" "$(pins)" ""
is "no lock is held" "$(timeout 5 "$AX" --instance "$INST" xdp status)" "no interface has an XDP program"

# --- killed at any time ---

cat >"$T/other.yaml" <<'EOF'
rules:
  - {name: ping, icmp: echo-request, action: pass}
EOF
# What was killed has left the interface with all of a list, or without one.
sane() {
	case $(program xc0) in
	none | ax_root) ;;
	*) return 1 ;;
	esac
	pings >"$T/pings" && [ -s "$T/pings" ]
}
insane=''
for i in $(seq 24); do
	case $((i % 3)) in
	0) words="unload xc0" ;;
	1) words="apply xc0 --rules $T/rules.yaml" ;;
	2) words="apply xc0 --rules $T/other.yaml" ;;
	esac
	# shellcheck disable=SC2086
	"$AX" --instance "$INST" xdp $words >/dev/null 2>"$T/err" &
	pid=$!
	sleep "0.$(printf %03d $((RANDOM % 130)))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	sane || insane+="$i: $(program xc0) "
done
is "after 24 kills at random times the interface works" "$insane" ""
ok "a list can be applied" xdp apply xc0 --rules "$T/rules.yaml"
is "which judges" "$(pings)" 0
is "alone" "$(xdp status xc0 -o json | jq -c '[.[0].programs[] | .name]')" '["ax_root"]'
ids=$(ours xc0)
ok "and be unloaded" xdp unload xc0
is "nothing is on the interface" "$(program xc0)" none
is "no pin is left" "$(pins)" ""
# shellcheck disable=SC2086
ok "nor a program" wait_for "gone ${ids//$'\n'/ }"

ip link del eth0.100
xdp_done
