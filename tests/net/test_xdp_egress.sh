#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Lists for what leaves an interface (`direction: egress`): by themselves and beside a list for what
# comes in, on a veth, a bridge and its ports, VLANs and the devices of private apps; by command and
# by config; what others have there stays.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip tc jq curl clang bpftool "$PYTHON"
build foreign_tc.bpf.o foreign_tc.bpf.c clang -O2 -g -target bpf \
	-idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$SRC/foreign_tc.bpf.c" -o %o

peer_host
known_neighbours
sysctl -qw net.ipv6.conf.xc0.disable_ipv6=0
mkdir "$T/www"
head -c 3000000 /dev/zero >"$T/www/large"
echo hello >"$T/www/index.html"
bg "$T/http" "$PYTHON" -m http.server -d "$T/www" --bind :: 8080
for at in "198.51.100.2 7000" "2001:db8:2::2 7000" "198.51.100.2 9001" "2001:db8:2::2 9001" "198.51.100.2 9999"; do
	# shellcheck disable=SC2086
	bg "$T/echo" nsenter -t "$PEER_PID" -n "$PYTHON" "$SRC/packets.py" serve $at
done
wait_for 'ss -Hltn "sport = :8080" | grep -q .'
wait_for '[ "$(peer ss -Hlun | wc -l)" = 5 ]'

asks() { # ADDRESS PORT: the answer, of a datagram that leaves
	timeout 2 "$PYTHON" "$SRC/packets.py" ask "$1" "$2" word 2>&1 | grep -o word | head -n 1
}
out() { # RULE [packets|bytes|...]: what the list for what leaves counted
	count "$1" "${2:-packets}" xc0:egress
}

cat >"$T/out.yaml" <<'END'
direction: egress
sets:
  closed: {ports: [9001]}
rules:
  - {name: closed, proto: udp, dport: "@closed", action: drop}
  - {name: web, proto: tcp, sport: 8080, action: pass}
END
cat >"$T/in.yaml" <<'END'
rules:
  - {name: knock, proto: udp, dport: 7777, action: drop}
  - {name: web, proto: tcp, dport: 8080, action: pass}
END

# --- one list, and both ---

is "it is reached" "$(asks 198.51.100.2 9001) $(asks 2001:db8:2::2 9001)" "word word"
like "a list for what leaves" "$(xdp load xc0 --rules "$T/out.yaml" 2>&1)" \
	'^xc0:egress: 2 rules, default pass, generation 1 \(egress\)$'
is "a rule drops what leaves" "$(asks 198.51.100.2 9001) $(asks 2001:db8:2::2 9001)" " "
is "and counts it" "$(out closed)" 2
is "others pass" "$(asks 198.51.100.2 7000) $(asks 2001:db8:2::2 7000)" "word word"
like "there is no list for what comes in" "$(xdp rule list xc0 2>&1)" "no rules of ax are loaded on xc0 "
ok "one for what comes in" xdp load xc0 --rules "$T/in.yaml"
is "both are there" "$(xdp status xc0 -o json | jq -c '[.[] | [.interface, .direction, .loaded, .rules]]')" \
	'[["xc0","ingress",true,2],["xc0","egress",true,2]]'
like "as text, too" "$(xdp status)" '^xc0: 2 rules.*xc0:egress: 2 rules.*where packets leave'
is "both judge" "$(asks 198.51.100.2 9001) $(asks 198.51.100.2 7000)" " word"
peer "$PYTHON" "$SRC/packets.py" udp 198.51.100.1 7777 3
wait_for '[ "$(count knock)" = 3 ]'
is "each counts its own" "$(count knock) $(out closed)" "3 3"

# a large answer leaves in pieces, which are counted as they leave
is "a large answer" "$(peer curl -gsS -m 20 http://198.51.100.1:8080/large | wc -c)" 3000000
bytes=$(out web bytes) packets=$(out web)
ok "is counted with its headers" test "$bytes" -gt 3100000 -a "$bytes" -lt 3400000
ok "and as segments ($packets)" test "$packets" -gt 2000

# --- asking, changing ---

like "explain" "$(xdp explain xc0 --direction egress --packet 'udp 198.51.100.1:5 > 198.51.100.2:9001')" \
	'verdict +drop.*rule +name closed'
is "explaining counts nothing" "$(out closed)" 3
like "the other list says otherwise" "$(xdp explain xc0 --packet 'udp 198.51.100.1:5 > 198.51.100.2:9001')" \
	'verdict +pass'
ok "a set's element comes" xdp set add closed 7000
is "at once" "$(asks 198.51.100.2 7000)" ""
ok "and goes" xdp set del closed 7000 -i xc0 --direction egress
is "at once" "$(asks 198.51.100.2 7000)" word
ok "a rule comes" xdp rule add xc0 --direction egress --at 1 name first proto udp dport 7000 action drop
is "and judges" "$(asks 198.51.100.2 7000)" ""
ok "and goes" xdp rule del xc0 first --direction egress
is "what is printed can be loaded" \
	"$(xdp rule list xc0 --direction egress -o yaml | xdp apply xc0 --rules - 2>&1)" \
	"xc0:egress: 2 rules, default pass, generation 6 (egress)"
echo 'default: drop' >"$T/none.yaml"
ok "--confirm" xdp apply xc0 --direction egress --rules "$T/none.yaml" --confirm 2s
is "cuts off" "$(asks 198.51.100.2 7000)" ""
ok "and comes back by itself" wait_for -t 6 '[ "$(asks 198.51.100.2 7000)" = word ]'
like "confirm is too late" "$(xdp confirm xc0 --direction egress 2>&1)" "nothing waits for a confirmation"
ok "a list that captures" xdp rule add xc0 --direction egress --at 1 name seen proto udp dport 7000 \
	action pass capture 16,ring
(xdp capture xc0 --direction egress -n 1 -d 5s >"$T/captured" 2>&1) &
capture=$!
wait_for '[ "$(asks 198.51.100.2 7000)" = word ] && ! alive '$capture
like "is read" "$(cat "$T/captured")" 'pass seen  udp 198.51.100.1:[0-9]+ > 198.51.100.2:7000 .*: word'
like "dump is for what comes in" "$(xdp dump xc0 --direction egress -w /dev/null 2>&1)" "what leaves is not looked at so"

# --- what lists for what leaves do not have ---

refusal() { # WHAT REGEX RULES...
	printf '%s\n' "direction: egress" "${@:3}" >"$T/refused.yaml"
	like "$1 is refused" "$(xdp apply xc0 --rules "$T/refused.yaml" 2>&1)" "$2"
}
refusal redirect "where packets leave was decided before" "rules: [{name: r, action: redirect xc0}]"
refusal reflect "reflect sends back to the other" "rules: [{action: reflect}]"
refusal cpu "past the work that another CPU" "rules: [{action: cpu 0}]"
refusal balance "balancers take packets where they come in" \
	"balancers: {b: {backends: ['10.0.0.1:80']}}" "rules: [{proto: tcp, dport: 80, action: balance b}]"
refusal "a trigger" "what starts commands comes in" "rules: [{proto: udp, action: drop, trigger: yes}]"
refusal "a mode" "modes are XDP's" "mode: generic" "rules: []"
refusal "a priority" "behind all other programs" "priority: 5" "rules: []"
refusal "exposed" "to exposed ports packets come in" "classes: {exposed: pass}" "rules: []"

# --- no packet is lost or judged by none while lists change ---

echo 'rules: [{name: a, proto: udp, dport: 6000, action: drop}]' >"$T/a.yaml"
echo 'rules: [{name: a, proto: udp, dport: 6000, action: drop}, {name: b, proto: tcp, action: pass}]' >"$T/b.yaml"
ok "a list that drops" xdp apply xc0 --direction egress --rules "$T/a.yaml"
bg "$T/flood" "$PYTHON" "$SRC/packets.py" udp 198.51.100.2 6000 400000
flood=$BG swaps=0
while alive "$flood" && [ $swaps -lt 20 ]; do
	xdp apply xc0 --direction egress --rules "$T/$([ $((swaps % 2)) = 0 ] && echo b || echo a).yaml" >/dev/null
	swaps=$((swaps + 1))
done
wait "$flood"
diag "$swaps swaps"
is "each of 400,000 was judged, by one of them" "$(out a)" 400000

# --- others' programs stay, and come before ---

bpftool prog load "$BIN/foreign_tc.bpf.o" /sys/fs/bpf/foreign type classifier
tag_7007() {
	tc qdisc add dev xc0 clsact 2>/dev/null
	tc filter add dev xc0 egress prio 10 bpf da object-pinned /sys/fs/bpf/foreign
}
ok "somebody's filter" tag_7007
is "both judge" "$(asks 198.51.100.2 9999) $(asks 198.51.100.2 7000)" " word"
like "status has it, in front" "$(xdp status xc0)" 'foreign.* \(id [0-9]+, priority 10\).*ax_root_egress \(id [0-9]+, priority 65535, ours\)'
ok "unload" xdp unload xc0 --direction egress
is "what is somebody's stays" "$(asks 198.51.100.2 9999) $(tc filter show dev xc0 egress | grep -c foreign)" " 1"
is "and the list for what comes in" "$(xdp status xc0 -o json | jq -c '[.[].direction]')" '["ingress"]'
tc qdisc del dev xc0 clsact
ok "load" xdp load xc0 --rules "$T/out.yaml"
ok "unload" xdp unload xc0 --direction egress
is "nothing is left on the device" "$(tc qdisc show dev xc0 | grep -c clsact)" 0
is "nor pinned" "$(find /sys/fs/bpf -path "*$INST-xdp/*egress*" | wc -l)" 0
ok "unload what comes in" xdp unload xc0
is "nothing at all" "$(find /sys/fs/bpf -path "*$INST-xdp*" | wc -l)" 0

# --- VLANs: the tag stands beside the packet ---

cat >"$T/vlan.yaml" <<'END'
direction: egress
rules:
  - {name: seven, vlan: 7, proto: udp, dport: 7007, length: 50, action: drop}
  - {name: none, vlan: none, proto: udp, dport: 7000, action: pass}
END
ok "a list of tags" xdp load xc0 --rules "$T/vlan.yaml"
tag_7007
is "a tagged packet that leaves" "$(asks 198.51.100.2 7007)" "" # 14 + 4 + 20 + 8 + 4
is "is known, and as long as it leaves" "$(out seven) $(out seven bytes)" "1 50"
is "without a tag" "$(asks 198.51.100.2 7000) $(out none)" "word 1"
ok "unload" xdp unload xc0 --direction egress
tc qdisc del dev xc0 clsact

# --- names ---

ip link add xc0.egress type veth peer name xc1
ip link set xc0.egress up
ok "a device with a name like that of a list" xdp load xc0.egress --rules "$T/in.yaml"
ok "takes one" xdp load xc0.egress --rules "$T/out.yaml"
ok "and the other device, too" xdp load xc0 --rules "$T/vlan.yaml"
is "they are apart" "$(xdp status -o json | jq -c '[.[] | [.interface, .direction, .loaded]] | sort')" \
	'[["xc0","egress",true],["xc0.egress","egress",true],["xc0.egress","ingress",true]]'
ip link set xc0 down
ip link set xc0 name xcn
ip link set xcn up
like "a renamed device keeps its list" "$(xdp status)" 'xcn:egress: 2 rules'
ok "which is changed by its new name" xdp rule add xcn --direction egress action pass
ip link set xcn down
ip link set xcn name xc0
ip link set xc0 up
ok "and unloaded by its old one" xdp unload xc0 --direction egress
ip link del xc0.egress
ok "a device that is gone leaves pins, which unload removes" xdp unload xc0.egress --direction egress
ok "of both" xdp unload xc0.egress
is "nothing is pinned" "$(find /sys/fs/bpf -path "*$INST-xdp*" | wc -l)" 0
ip addr add 198.51.100.1/24 dev xc0 2>/dev/null
known_neighbours

# --- a bridge, and its ports ---

ip link add xb0 type bridge 2>/dev/null && {
	new_netns
	third=$BG
	ip link add xb1 type veth peer name eth0 netns "$third"
	ip link set xb1 master xb0 up
	ip addr flush dev xc0
	ip link set xc0 master xb0
	ip addr add 198.51.100.1/24 dev xb0
	ip link set xb0 up
	peer ip neigh flush dev eth0
	nsenter -t "$third" -n ip addr add 198.51.100.3/24 dev eth0
	nsenter -t "$third" -n ip link set eth0 up
	next_door() {
		timeout 2 nsenter -t "$third" -n "$PYTHON" "$SRC/packets.py" ask 198.51.100.2 "$1" word 2>&1 |
			grep -o word | head -n 1
	}
	ok "the bridge leads there" wait_for -t 10 '[ "$(next_door 7000)$(asks 198.51.100.2 7000)" = wordword ]'
	ok "a list of the bridge" xdp load xb0 --rules "$T/out.yaml"
	is "judges what this host sends" "$(asks 198.51.100.2 9001) $(asks 198.51.100.2 7000)" " word"
	is "and not what goes from port to port" "$(next_door 9001)" word
	ok "a list of the port" xdp load xc0 --rules "$T/out.yaml"
	is "judges that as well" "$(next_door 9001) $(next_door 7000) $(out closed)" " word 1"
	ok "unload" xdp unload xc0 --direction egress
	ok "unload the bridge's" xdp unload xb0 --direction egress
	ip link del xb1
	ip link set xc0 nomaster
	ip link del xb0
	end "$third"
}

# --- by config: both lists of an interface ---

agent_start - <<END
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
  host_access: true
xdp:
  balancers: {unused: {backends: ["192.0.2.1:80"]}}
  interfaces:
    xc0:
      - rules: [{name: in, proto: udp, dport: 7777, action: drop}]
      - direction: egress
        rules: [{name: out, proto: udp, dport: 9001, action: drop}]
END
is "both are there" "$(xdp status -o json | jq -c '[.[] | [.interface, .direction, .rules]]')" \
	'[["xc0","ingress",1],["xc0","egress",1]]'
is "the agent knows of both" "$(ax get interfaces -o json | jq -c '[.[] | [.name, .state]] | sort')" \
	'[["xc0","active"],["xc0:egress","active"]]'
known_neighbours
ip addr add 198.51.100.1/24 dev xc0 2>/dev/null
wait_for '[ "$(asks 198.51.100.2 7000)" = word ]'
is "they judge" "$(asks 198.51.100.2 9001) $(out out)" " 1"
agent_kill9
is "also without the agent" "$(asks 198.51.100.2 9001) $(asks 198.51.100.2 7000)" " word"
sed 's/dport: 9001/dport: 7000/' -i "$T/$INST.yaml"
agent_again
is "the next agent changes them" "$(asks 198.51.100.2 9001) $(asks 198.51.100.2 7000)" "word "

# what leaves is judged as it leaves: with the address and port that an app's exposed port has
serve 7000/udp --net host --name pub -p 7100:7000/udp -- "$PYTHON" "$SRC/packets.py" serve 0.0.0.0 7000
pub=$APP
peer_asks() {
	timeout 2 nsenter -t "$PEER_PID" -n "$PYTHON" "$SRC/packets.py" ask 198.51.100.1 7100 word 2>&1 |
		grep -o word | head -n 1
}
is "an exposed port answers" "$(peer_asks)" word
ok "a rule about its answers" xdp rule add xc0 --direction egress \
	name exposed src 198.51.100.1 proto udp sport 7100 action drop
is "sees them as they leave" "$(peer_asks) $(out exposed)" " 1"
stop_app "$pub"
echo 'direction: egress' >"$T/file.yaml"
like "a file for what leaves is no list for what comes in" \
	"$(sed "s/rules: .*7777.*/rules-file: file.yaml/" "$T/$INST.yaml" >"$T/other.yaml"
	ax config apply "$T/other.yaml" 2>&1)" "say direction: egress beside rules-file, too"
sed '/direction: egress/,$d' "$T/$INST.yaml" >"$T/less.yaml"
ok "a config without it" ax config apply "$T/less.yaml"
is "takes it off" "$(xdp status -o json | jq -c '[.[] | [.interface, .direction]]')" '[["xc0","ingress"]]'
is "from the device" "$(tc filter show dev xc0 egress | wc -l)" 0

# --- the devices of private apps: what leaves by one goes to its app ---

serve 7000/udp --name web -p 7200:7000/udp -- "$PYTHON" "$SRC/packets.py" serve 0.0.0.0 7000
vip=$(ax get apps -o json | jq -r '.[] | select(.name == "web").ip4')
device=$(ip -o route get "$vip" | sed -n 's/.* dev \([^ ]*\) .*/\1/p')
from_app() {
	in_app --net "$1" -- timeout 2 "$PYTHON" "$SRC/packets.py" ask "$vip" 7000 word 2>&1 |
		grep -o word | head -n 1
}
from_outside() {
	timeout 2 nsenter -t "$PEER_PID" -n "$PYTHON" "$SRC/packets.py" ask 198.51.100.1 7200 word 2>&1 |
		grep -o word | head -n 1
}
is "and from outside, by its exposed port" "$(from_outside)" word
is "an app is reached by apps and by the host" "$(from_app private) $(from_app host) $(asks "$vip" 7000)" \
	"word word word"
cat >"$T/app.yaml" <<'END'
direction: egress
rules:
  - {name: asked, proto: udp, dport: 7000, action: drop}
END
ok "a list for what goes to it" xdp load "$device" --rules "$T/app.yaml"
is "holds for its neighbours and for the host" \
	"$(from_app private) $(from_app host) $(asks "$vip" 7000)" "  "
is "and from outside" "$(from_outside)" ""
is "each was judged" "$(count asked packets "$device:egress")" 4
ok "a list that lets one in" xdp rule add "$device" --direction egress --at 1 \
	name bytes proto udp length 46 action pass
is "lets all in, and policies hold as they did" \
	"$(from_app private) $(from_app host) $(asks "$vip" 7000)" "word word word"
is "and from outside" "$(from_outside)" word
is "a stranger is no friend" "$(in_app --label zone=elsewhere -- timeout 2 "$PYTHON" \
	"$SRC/packets.py" ask "$vip" 7000 word 2>&1 | grep -c word)" 0
is "and is not even judged" "$(count bytes packets "$device:egress")" 4
ok "one for what comes from it" xdp load "$device"
ok "which drops its answers" xdp rule add "$device" name answer proto udp sport 7000 action drop
is "does" "$(from_app private) $(count answer packets "$device")" " 1"
ok "unload it" xdp unload "$device"
ok "unload the other" xdp unload "$device" --direction egress
is "it is as it was" "$(from_app private) $(from_app host) $(asks "$vip" 7000)" "word word word"
ok "a list once more" xdp load "$device" --rules "$T/app.yaml"
stop_app "$APP"
ok "goes with the app" wait_for "! ip link show $device"
ok "and its pins by unload" xdp unload "$device" --direction egress
rm -rf /sys/fs/bpf/foreign /sys/fs/bpf/ip /sys/fs/bpf/tc /sys/fs/bpf/xdp # the last of tc's own
ax config apply - >/dev/null <<END
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
END
xdp_done
