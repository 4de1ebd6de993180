#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# ax xdp: each command, what it prints, what it changes, and what it says when it cannot.
. "$(dirname "$0")/lib.sh"
need jq python3 ip unshare nsenter

# A peer with a veth pair to this host.
unshare -n sleep 1000 &
PEER_PID=$!
BACKGROUND+=("$PEER_PID")
wait_for "[ \"\$(readlink /proc/$PEER_PID/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
veth_or_skip xc0 type veth peer name eth0 netns "$PEER_PID"
ip link set xc0 address 02:00:00:00:00:01
ip addr add 198.51.100.1/24 dev xc0
ip -6 addr add 2001:db8:2::1/64 dev xc0 nodad
ip link set xc0 up
peer() {
	nsenter -t "$PEER_PID" -n "$@"
}
peer ip link set lo up
peer ip link set eth0 up
peer ip addr add 198.51.100.2/24 dev eth0
peer ip -6 addr add 2001:db8:2::2/64 dev eth0 nodad
wait_for 'ip -o link show xc0 | grep -q "state UP"'

# send TEXT PORT: the peer sends a datagram; TEXT is Python's, so that it can be any bytes
send() {
	peer "$PYTHON" -c "import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'$1', ('198.51.100.1', $2))"
}
xdp() {
	ax xdp "$@"
}
# A reader of captures is there when it has its ring.
reader() {
	local out=$1
	shift
	bg "$out" "$AX" --instance "$INST" xdp capture xc0 "$@"
	wait_for "ls -l /proc/$BG/fd | grep -q bpf-map" || diag "no reader"
	sleep 0.3
}

# --- words ---

like "a word that is nearly right" "$(xdp laod 2>&1)" "did you mean 'load'"
xdp laod 2>/dev/null
is "ends with 2" $? 2
like "no word" "$(xdp 2>&1)" "say what to do"
like "the overview has the commands" "$(xdp --help)" "rollback .*explain "
for words in load apply confirm rollback unload status stats capture explain "rule add" "rule del" \
	"rule move" "rule list" "set add" "set del" "set replace" "set list" sign; do
	# shellcheck disable=SC2086
	like "ax xdp $words --help" "$(xdp $words --help)" "Usage: ax xdp $words"
done
like "the overview of rule" "$(xdp rule --help)" "move .*move a rule"
like "a word of rule" "$(xdp rule mvoe 2>&1)" "did you mean 'move'"
like "an interface is asked for" "$(xdp load 2>&1)" "say which interface"
like "one is enough" "$(xdp load a b 2>&1)" "'b' is one too many"
like "a mode is one of four" "$(xdp load xc0 --mode fast 2>&1)" "auto, native, generic or offload"

# --- nothing is loaded ---

is "status without anything" "$(xdp status)" "no interface has an XDP program"
is "status of an interface without anything" "$(xdp status xc0)" "xc0: nothing is loaded"
is "the same as JSON" "$(xdp status xc0 -o json | jq -c '.[0] | [.interface, .loaded]')" '["xc0",false]'
like "status of no interface" "$(xdp status nosuch0 2>&1)" "no interface 'nosuch0'"
for words in "stats xc0" "capture xc0" "rule list xc0" "unload xc0" "confirm xc0" "rollback xc0" \
	"rule add xc0 action drop" "rule del xc0 1" "set list xc0" "explain xc0 --hex 00"; do
	# shellcheck disable=SC2086
	xdp $words >"$T/out" 2>&1
	is "ax xdp $words where nothing is" "$? $(grep -c 'xc0' "$T/out")" "1 1"
done
fails "apply wants rules" xdp apply xc0
is "no sets" "$(xdp set list | wc -l)" 1

# --- rule files ---

cat >"$T/bad.yaml" <<'EOF'
default: dorp
rules:
  - {dport: 70000, action: drop}
  - {acton: drop}
  - {src: "@nosuch", action: pass}
EOF
out=$(xdp load xc0 --rules "$T/bad.yaml" 2>&1)
is "a bad file ends with 1" $? 1
for want in "bad.yaml:1:10:.*dorp" "bad.yaml:3:13:.*70000" "bad.yaml:4:6:.*acton.*action" "has [0-9]* errors"; do
	like "it says: $want" "$out" "$want"
done
like "a file that is not there" "$(xdp load xc0 --rules "$T/nosuch" 2>&1)" "nosuch cannot be read"
is "nothing was loaded" "$(xdp status xc0)" "xc0: nothing is loaded"
echo "203.0.113.0/24 # a comment" >"$T/bad.txt"
cat >"$T/rules.yaml" <<'EOF'
default: pass
sets:
  bad: {file: bad.txt}
  web: {ports: [80, 443, 8000-8099]}
rules:
  - {name: command, proto: udp, dport: 9000, action: pass, capture: "16,ring,slot=command"}
  - {name: no, proto: udp, dport: 9001, action: drop, log: yes}
  - {name: all, proto: udp, dport: 9002, action: drop, capture: "2000,frame"}
  - {src: "@bad", action: drop}
  - {name: web, proto: tcp, dport: "@web", action: pass}
EOF

# --- load ---

out=$(xdp load xc0 --rules "$T/rules.yaml" 2>"$T/err")
is "load" "$? $out" "0 xc0: 5 rules, default pass, generation 1 (native)"
is "it says nothing else" "$(cat "$T/err")" ""
like "load once" "$(xdp load xc0 2>&1)" "ax xdp apply xc0"
like "status" "$(xdp status)" "xc0: 5 rules, default pass.*generation 1.*native.*ours.*bad: 1 prefix"
is "status as JSON" "$(xdp status -o json | jq -c '.[0] | [.rules, .default, .mode, .sets[0].name, .sets[1].kind]')" \
	'[5,"pass","native","bad","ports"]'
is "the list's YAML is the list" "$(xdp rule list xc0 -o yaml >"$T/again.yaml"
	xdp apply xc0 --rules "$T/again.yaml"
	xdp rule list xc0 -o yaml | diff - "$T/again.yaml")" \
	"xc0: 5 rules, default pass, generation 2 (native)"
is "from standard input" "$(xdp apply xc0 --rules - <"$T/again.yaml")" \
	"xc0: 5 rules, default pass, generation 3 (native)"
like "errors there are stdin's" "$(echo 'rules: x' | xdp apply xc0 --rules - 2>&1)" "stdin:1:8:"

# --- rules one by one ---

ok "add" xdp rule add xc0 name ssh src 10.0.0.0/8 proto tcp dport 22 action pass
ok "add before another one" xdp rule add xc0 --before web name first action drop proto sctp
ok "add at a number" xdp rule add xc0 --at 1 proto tcp dport 7 action redirect lo --force
names() {
	xdp rule list xc0 -o json | jq -r '[.rules[] | .name // .action] | join(" ")'
}
is "they are where they were put" "$(names)" "redirect lo command no all drop first web ssh"
ok "move by name" xdp rule move xc0 ssh --after command --force
is "it is there" "$(names)" "redirect lo command ssh no all drop first web"
ok "move to a number" xdp rule move xc0 command --at 3 --force
is "it is there, too" "$(names)" "redirect lo ssh command no all drop first web"
ok "move before" xdp rule move xc0 1 --before web --force
is "as well" "$(names)" "ssh command no all drop first redirect lo web"
ok "del by name and by number" xdp rule del xc0 first 7
is "both are gone" "$(names)" "ssh command no all drop web"
like "del of one that is not there" "$(xdp rule del xc0 web comand 2>&1)" "comand.*command"
is "removes none" "$(names)" "ssh command no all drop web"
like "a key that is nearly right" "$(xdp rule add xc0 dprot 22 action drop 2>&1)" "dport"
like "no action" "$(xdp rule add xc0 proto tcp 2>&1)" "action"
like "two places" "$(xdp rule add xc0 --at 1 --after 2 action drop 2>&1)" "one of --at, --before and --after"
like "a place beyond the end" "$(xdp rule add xc0 --at 9 action drop 2>&1)" "1 to 7"
like "the table" "$(xdp rule list xc0)" "# +NAME +RULE.*1 +ssh +src 10.0.0.0/8 proto tcp dport 22 action pass"

# --- sets ---

is "the sets" "$(xdp set list -o json | jq -c '[.[] | [.interface, .name, .elements]]')" \
	'[["xc0","bad",1],["xc0","web",3]]'
is "add to a set" "$(xdp set add bad 192.0.2.1 2001:db8::/32)" "xc0: set bad has 3 prefixes"
is "its elements" "$(xdp set list xc0 bad | sort | tr '\n' ' ')" "192.0.2.1/32 2001:db8::/32 203.0.113.0/24 "
is "del from it" "$(xdp set del bad 192.0.2.1 192.0.2.9)" \
	"xc0: set bad has 2 prefixes (1 of those to remove was not there)"
is "replace by a file" "$(printf '198.18.0.0/15, 192.0.2.7 # seven\n' | xdp set replace bad --file -)" \
	"xc0: set bad has 2 prefixes"
like "an element that is none" "$(xdp set add bad 1.2.3 2>&1)" "1\\.2\\.3"
like "a set that is not there" "$(xdp set add bat 192.0.2.1 2>&1)" "no interface has a set 'bat'"
like "nor on that interface" "$(xdp set add bat 192.0.2.1 -i xc0 2>&1)" "did you mean 'bad'"
is "a new set" "$(xdp set add ports 1 5-9 -i xc0 --create ports)" "xc0: set ports has 2 elements"
like "of which kind it is stays" "$(xdp set add ports 1.2.3.4 -i xc0 --create prefixes 2>&1)" "one of ports"
ok "a rule with it" xdp rule add xc0 proto udp dport @ports action drop
like "a set that is used stays named" "$(xdp rule add xc0 proto udp dport @porst action drop 2>&1)" "ports"

# --- explain ---

explain() {
	xdp explain xc0 --packet "$@"
}
like "explain: a rule" "$(explain 'udp 198.51.100.2:5 > 198.51.100.1:9001')" \
	"verdict  drop.*rule     name no .*first rule that matches"
like "explain: the default" "$(explain 'udp 198.51.100.2:5 > 198.51.100.1:9999')" \
	"verdict  pass.*rule     default.*no rule matches"
like "explain: a set" "$(explain 'udp 192.0.2.7:5 > 198.51.100.1:9999')" "src @bad"
like "explain: a fragment has no ports" "$(explain 'udp 198.51.100.2 > 198.51.100.1 frag later')" \
	"verdict  pass.*later-fragment"
is "explain: bytes" "$(xdp explain xc0 --hex '020000000001 020000000002 0800 45000014' -o json |
	jq -c '[.verdict, .decided, .reason]')" '["drop","policy","runt"]'
like "explain: words that make no packet" "$(explain 'udp 1.2.3.4' 2>&1)" "a > between"
like "explain: one packet" "$(xdp explain xc0 2>&1)" "one of --packet, --hex and --pcap"
is "explain counts nothing" "$(xdp stats xc0 -o json | jq '[.rules[] | select(.rule == "no") | .packets] | add')" 0
ok "a rule that reflects, and what it needs" xdp rule add xc0 --fix --at 1 name echo proto udp dport 7 action reflect
like "explain: what a packet becomes" "$(explain 'udp 198.51.100.2:5 > 198.51.100.1:7')" \
	"verdict  reflect.*becomes  udp 198.51.100.1:7 > 198.51.100.2:5 mac 02:00:00:00:00:02 > 02:00:00:00:00:01"

# --- captures, stats ---

reader "$T/ascii" -n 3
reader_pid=$BG
like "one reader at a time" "$(xdp capture xc0 -d 100ms 2>&1)" "captur"
send 'hello\x00\x1b[31m\xff\xe2\x80\xae0123456789' 9000
send 'dropped' 9001
send 'a whole frame' 9002
ok "the reader ends after 3 records" wait_for "! alive $reader_pid"
out=$(cat "$T/ascii")
like "the payload is text, 16 bytes of it" "$out" \
	'pass command  udp 198.51.100.2:[0-9]+ > 198.51.100.1:9000  67 bytes: hello\\x00\\e\[31m\\xff\\u\{202e\}0'
like "logs are a line" "$out" "drop no  udp 198.51.100.2:[0-9]+ > 198.51.100.1:9001  49 bytes"
is "no control character reaches a terminal" "$(tr -cd '\000-\011\013-\037\177' <"$T/ascii" | wc -c)" 0
is "stats" "$(xdp stats xc0 -o json |
	jq -c '[.rules[] | select(.rule == "command" or .rule == "no" or .rule == "all") | [.rule, .packets, .bytes]]')" \
	'[["command",1,67],["no",1,49],["all",1,55]]'
like "stats as a table" "$(xdp stats xc0)" "no +1 +49 +0 +0"
like "stats -f" "$(timeout 1 "$AX" --instance "$INST" xdp stats xc0 -f -i 100ms | head -n 1)" "PACKETS/S"
like "the slot" "$(xdp capture xc0 --slots)" 'command: hello.* \(16 bytes, .*1 packets so far\)'
is "the slot as JSON" "$(xdp capture xc0 --slots -f json | jq -r .bytes)" 68656c6c6f001b5b33316dffe280ae30

reader "$T/json" -n 1 -f json
send 'more' 9000
wait_for "! alive $BG"
is "captures as JSON" "$(jq -c '[.kind, .rule, .proto, .dport, .bytes, .text]' "$T/json")" \
	'["data","command",17,9000,"6d6f7265","more"]'
reader "$T/hex" -n 1 -f hex
send 'more' 9000
wait_for "! alive $BG"
like "captures in hex" "$(cat "$T/hex")" "0000  6d 6f 72 65 .*more"

reader "$T/err" -n 2 -w "$T/out.pcap"
send 'only a log' 9001
send 'payload' 9000
send 'frame' 9002
wait_for "! alive $BG"
like "what a pcap file cannot hold is told" "$(cat "$T/err")" "1 of the records left out of the pcap file"
"$PYTHON" - "$T/out.pcap" >"$T/pcap" <<'EOF'
import struct, sys
f = open(sys.argv[1], "rb").read()
print(hex(struct.unpack("=I", f[:4])[0]), struct.unpack("=I", f[20:24])[0])
at = 24
while at < len(f):
    n, orig = struct.unpack("=II", f[at + 8:at + 16])
    frame = f[at + 16:at + 16 + n]
    print(n, orig, frame[36:38].hex(), frame[42:].decode())
    at += 16 + n
EOF
is "a pcap file of payloads and frames" "$(cat "$T/pcap")" "0xa1b23c4d 1
49 49 2328 payload
47 47 232a frame"
is "which explain reads again" "$(xdp explain xc0 --pcap "$T/out.pcap" | awk '{print $1, $2, $3}' | tr '\n' ' ')" \
	"1 pass command 2 drop all "
like "a file that is no pcap" "$(xdp explain xc0 --pcap "$T/rules.yaml" 2>&1)" "no pcap file"

# --- confirm ---

ok "apply with --confirm" xdp apply xc0 --rules "$T/again.yaml" --confirm 30s
like "status shows that" "$(xdp status xc0)" "comes back in [0-9]+s unless: ax xdp confirm xc0"
like "nothing else in between" "$(xdp rule add xc0 action drop 2>&1)" "confirm"
ok "confirm" xdp confirm xc0
unlike "now nothing is open" "$(xdp status xc0)" "comes back"
fails "confirm once" xdp confirm xc0
ok "another one" xdp rule add xc0 --confirm 30s name doomed action drop
ok "rollback" xdp rollback xc0
unlike "it is gone" "$(names)" doomed
ok "and one that nobody confirms" xdp rule add xc0 --confirm 300ms name doomed action drop
sleep 0.5
unlike "is gone by itself" "$(names)" doomed
fails "too late" xdp confirm xc0

# --- apply keeps counters, unload removes all ---

is "a rule's name keeps its count" "$(xdp apply xc0 --rules "$T/rules.yaml" >/dev/null
	xdp stats xc0 -o json | jq '.rules[] | select(.rule == "no") | .packets')" 2
ok "the file's default can be overridden" xdp apply xc0 --rules "$T/rules.yaml" --default drop
like "it is" "$(xdp rule list xc0)" "default +action drop"
ok "unload" xdp unload xc0
is "nothing is there" "$(xdp status)" "no interface has an XDP program"
ok "load in generic mode, without rules" xdp load xc0 --mode generic
like "it is generic" "$(xdp status xc0)" "0 rules, default pass.*generic"
ok "unload it" xdp unload xc0
like "load with --confirm" "$(xdp load xc0 --default drop --confirm 300ms)" "taken off again in 0.3s"
sleep 0.5
is "nobody confirmed" "$(xdp status -o json | jq -c '[.[] | select(.loaded)]')" '[]'
is "its program is taken off" "$(xdp unload xc0)" "xc0: unloaded"
fails "then there is nothing to unload" xdp unload xc0

# --- signatures, and who may ---

head -c 32 /dev/urandom >"$T/key"
chmod 600 "$T/key"
like "sign" "$(xdp sign deploy --key-file "$T/key")" "^deploy [0-9]+\\.[0-9a-f]+ [0-9a-f]{64}$"
like "sign with a key that is not there" "$(xdp sign deploy --key-file "$T/nosuch" 2>&1)" "nosuch"
like "sign wants a key" "$(xdp sign deploy 2>&1)" "key-file"
cp "$AX" "$T/ax"
chmod 755 "$T/ax"
like "others than root are told" "$(setpriv --reuid 65534 --clear-groups "$T/ax" xdp load xc0 2>&1)" "only root"

ip link del xc0
done_testing
