#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Captured payloads: the command port of the README, the ring in every format, slots as other
# programs read them, slow readers, and bytes that would do something to a terminal.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq bpftool "$PYTHON"

peer_host
known_neighbours
send() { # PORT TEXT [N]: Python's text, so that it can be any bytes
	peer "$PYTHON" -c "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(${3:-1}):
    s.sendto(b'$2', ('198.51.100.1', $1))"
}
# capture OUT OPTIONS...: a reader in the background, its pid in $BG
capture() {
	local out=$1
	shift
	bg "$out" "$AX" --instance "$INST" xdp capture xc0 "$@"
	wait_for "ls -l /proc/$BG/fd | grep -q bpf-map" || diag "no reader: $(cat "$out")"
	sleep 0.2
}
reader_ends() {
	wait_for "! alive $BG" || diag "the reader goes on"
	end "$BG"
}

# --- the command port ---

ok "load" xdp load xc0
ok "port 9000 passes" xdp rule add xc0 --at 1 name command proto udp dport 9000 action pass \
	capture 16,ring,slot=cmd
ok "port 9001 is dropped" xdp rule add xc0 --at 2 name closed proto udp dport 9001 action drop log yes
bg "$T/server" "$PYTHON" -c "import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('198.51.100.1', int(sys.argv[1])))
while True:
    print(sys.argv[1], s.recv(2048), flush=True)" 9000
bg "$T/server" "$PYTHON" -c "import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('198.51.100.1', int(sys.argv[1])))
while True:
    print(sys.argv[1], s.recv(2048), flush=True)" 9001
wait_for 'ss -Hlun "sport = :9000" | grep -q . && ss -Hlun "sport = :9001" | grep -q .'

capture "$T/ascii" -n 2
send 9000 'lights on, and the rest is not captured\n'
send 9001 'lights off\n'
reader_ends
like "the payload, 16 bytes of it" "$(cat "$T/ascii")" \
	'pass command  udp 198.51.100.2:[0-9]+ > 198.51.100.1:9000  82 bytes: lights on, and t'
unlike "not more" "$(cat "$T/ascii")" "and th"
like "the log" "$(cat "$T/ascii")" 'drop closed  udp 198.51.100.2:[0-9]+ > 198.51.100.1:9001  53 bytes'
wait_for "grep -q rest $T/server"
is "the server on the open port has it all" "$(cat "$T/server")" \
	"9000 b'lights on, and the rest is not captured\\n'"

# --- the slot ---

slot=/sys/fs/bpf/$INST-xdp/xc0/slots
is "the slot, read under its lock by another program" \
	"$("$PYTHON" "$SRC/bpf_slot.py" "$slot" 0)" "16 1 $(printf 'lights on, and t' | od -An -tx1 | tr -d ' \n')"
bpftool map lookup pinned "$slot" key 0 0 0 0 -j >"$T/bpftool" 2>&1
is "and by bpftool" "$(jq -r '[.value[24:33][] | ltrimstr("0x")] | join("")' "$T/bpftool")" \
	"$(printf 'lights on' | od -An -tx1 | tr -d ' \n')"
send 9000 'off'
is "the next one takes its place, whole" "$("$PYTHON" "$SRC/bpf_slot.py" "$slot" 0)" "3 2 6f6666"
is "ax prints it" "$(xdp capture xc0 --slots -f json | jq -c '[.slot, .bytes, .packets // .count]')" \
	'["cmd","6f6666",2]'

# --- no reader: everything goes on ---

before=$(count command)
send 9000 'unread' 500
wait_for "[ \"\$(count command)\" = $((before + 500)) ]"
is "packets count without a reader" "$(count command)" $((before + 500))
capture "$T/late" -d 300ms
reader_ends
ok "what fits the ring is kept for the next reader" grep -q 'unread' "$T/late"

# --- one reader ---

capture "$T/first" -n 3
first=$BG
out=$(xdp capture xc0 -d 100ms 2>&1)
is "a second reader is refused" $? 1
like "with a sentence" "$out" "^ax xdp capture: another command reads the captures of xc0"
kill -KILL "$first"
wait "$first" 2>/dev/null
capture "$T/again" -n 1
send 9000 'after the kill'
reader_ends
like "a killed one makes room" "$(cat "$T/again")" "after the kill"

# --- bytes that do something to a terminal ---

cat >"$T/nasty.py" <<'EOF'
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for payload in (b"\x1b]0;title\x07\x1b[2J", b"\x9b31m\x00\x7f\r\n\b\b", "\u202e\u2066\u200b\ufeff".encode(),
                b"\xc2\x9b6n\xc3\x28\xed\xa0\x80", bytes(range(128, 144))):
    s.sendto(payload, ("198.51.100.1", 9000))
EOF
# raw FILE: bytes in it that are neither printable ASCII nor line ends
raw() {
	tr -d '\012\040-\176' <"$1" | wc -c
}
for format in ascii hex json; do
	capture "$T/nasty.$format" -n 5 -f $format
	peer "$PYTHON" "$T/nasty.py"
	reader_ends
	is "$format: all five are there" "$(grep -c '9000' "$T/nasty.$format")" 5
	is "$format: no byte comes out raw" "$(raw "$T/nasty.$format")" 0
done
is "json has the bytes" "$(head -n 1 "$T/nasty.json" | jq -r .bytes)" 1b5d303b7469746c65071b5b324a
is "json lines are JSON" "$(jq -s length "$T/nasty.json")" 5
like "ascii says what they were" "$(sed -n 1p "$T/nasty.ascii")" '\\e\]0;title\\(a|x07)\\e\[2J'
xdp capture xc0 --slots >"$T/slots"
is "slots: nor there" "$(raw "$T/slots")" 0

# --- pcap ---

ok "a rule for whole frames" xdp rule add xc0 --at 1 name whole proto tcp dport 9002 action drop \
	capture 2000,frame
capture "$T/said" -n 3 -w "$T/out.pcap"
send 9000 'payload'
peer "$PYTHON" "$SRC/packets.py" send eth0 proto=tcp dport=9002 size=600
peer "$PYTHON" "$SRC/packets.py" send eth0 proto=udp src=2001:db8:2::2 dst=2001:db8:2::1 dport=9000 size=40
reader_ends
"$PYTHON" - "$T/out.pcap" >"$T/pcap" 2>&1 <<'EOF'
import struct, sys
f = open(sys.argv[1], "rb").read()
magic, major, minor, zone, sigfigs, snap, link = struct.unpack("=IHHiIII", f[:24])
print("%x %d.%d link %d" % (magic, major, minor, link))
at = 24
while at < len(f):
    sec, frac, n, orig = struct.unpack("=IIII", f[at:at + 16])
    frame = f[at + 16:at + 16 + n]
    assert len(frame) == n and n <= snap and frac < 10 ** 9
    kind = struct.unpack("!H", frame[12:14])[0]
    head = 34 if kind == 0x800 else 54
    print("%x %d of %d port %d %s" % (kind, n, orig, *struct.unpack("!H", frame[head + 2:head + 4]),
                                      frame[head + 8:head + 24].hex()))
    at += 16 + n
EOF
is "a pcap file of payloads and frames" "$(cut -c1-60 "$T/pcap")" "a1b23c4d 2.4 link 1
800 49 of 49 port 9000 7061796c6f6164
800 654 of 654 port 9002 0000000050020400$(sed -n 's/^800 654.*0000000050020400//p' "$T/pcap" | cut -c1-16)
86dd 78 of 102 port 9000 78787878787878787878787878787878"
capture /dev/null -n 2 -f pcap -w "$T/flagged.pcap"
send 9000 'one' 2
reader_ends
is "-n ends after so many" "$(stat -c %s "$T/flagged.pcap")" $((24 + 2 * (16 + 14 + 20 + 8 + 3)))
capture "$T/piped.pcap" -n 1 -f pcap
send 9000 'piped'
reader_ends
is "a pcap file on standard output" "$(head -c 4 "$T/piped.pcap" | od -An -tx4 | tr -d ' ')" a1b23c4d
fails "a place that cannot be written" xdp capture xc0 -n 1 -w /nonexistent/file

# --- sampling, and a ring that is too small ---

ok "a rule that captures one of 10" xdp rule add xc0 --at 1 name tenth proto udp dport 9003 \
	action drop capture 8 sample 10
capture "$T/tenth" -d 3s -f json
send 9003 'sampled' 1000
wait_for '[ "$(count tenth)" = 1000 ]'
reader_ends
n=$(grep -c tenth "$T/tenth")
ok "about one of ten is there ($n of 1000)" test "$n" -ge 40 -a "$n" -le 200
ok "frames that a ring cannot hold" xdp rule add xc0 --at 1 name big proto udp dport 9004 \
	action drop capture 1400
lost=$(reason capture-lost)
"$PYTHON" - >"$T/big.py" <<'EOF'
print("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)")
print("for i in range(6000): s.sendto(b'x' * 1400, ('198.51.100.1', 9004))")
EOF
peer "$PYTHON" "$T/big.py"
wait_for '[ "$(count big)" = 6000 ]'
is "all are counted" "$(count big)" 6000
lost=$(($(reason capture-lost) - lost))
ok "those that found no room are, too ($lost)" test $lost -gt 100
capture "$T/said" -f json -d 500ms -w "$T/held"
reader_ends
is "together they are all" $(($(grep -c '"big"' "$T/held") + lost)) 6000
capture "$T/said" -f json -w "$T/held"
kill -STOP "$BG"
lost=$(reason capture-lost)
peer "$PYTHON" "$T/big.py"
wait_for '[ "$(count big)" = 12000 ]'
kill -CONT "$BG"
wait_for "[ -s '$T/held' ]"
sleep 0.3
kill -INT "$BG"
reader_ends
like "a reader that was too slow says how many were lost" "$(cat "$T/said")" \
	"(^|[^0-9])$(($(reason capture-lost) - lost)) "

ok "unload" xdp unload xc0
xdp_done
