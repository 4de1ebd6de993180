#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax xdp explain where somebody else's program judges: that program is asked, in native and generic mode. And
# ax xdp dump there, on kernels that let nobody watch it (tests/vm/test_xdp_foreign.sh: on others).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq bpftool clang "$PYTHON"

build foreign_judge.bpf.o foreign_judge.bpf.c clang -O2 -g -target bpf \
	-idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$SRC/foreign_judge.bpf.c" -o %o
peer_host
known_neighbours
explain() { # PORT OPTIONS...
	xdp explain xc0 --packet "udp 198.51.100.2:1000 > 198.51.100.1:$1" "${@:2}" 2>&1
}
verdict() {
	explain "$1" | sed -n 's/^verdict *//p'
}

out=$(explain 1)
is "where there is no program at all" $? 1
like "none is asked" "$out" "no rules of ax are loaded on xc0"

bpftool prog load "$BIN/foreign_judge.bpf.o" /sys/fs/bpf/judge type xdp pinmaps /sys/fs/bpf/judged
judge_id=$(bpftool prog show pinned /sys/fs/bpf/judge -j | jq .id)
seen() { # 0: how many packets; 1: by which interface the last one came
	bpftool map lookup pinned /sys/fs/bpf/judged/seen key "$1" 0 0 0 -j | jq -r .formatted.value
}
for mode in xdpdrv xdpgeneric; do
	bpftool net attach "$mode" pinned /sys/fs/bpf/judge dev xc0
	is "$mode: a packet passes" "$(verdict 9)" pass
	is "$mode: another is dropped" "$(verdict 1)" drop
	is "$mode: or sent back" "$(verdict 2)" tx
	is "$mode: or redirected" "$(verdict 3)" redirect
	is "$mode: or the program gives up" "$(verdict 4)" aborted
	is "$mode: or says what no action is" "$(verdict 5)" "no action of XDP"
	out=$(explain 1)
	like "$mode: who says so is named" "$out" \
		"by +foreign_judge \(id $judge_id\), another's program: no list of this instance"
	unlike "$mode: no rule is" "$out" $'\nrule'
	unlike "$mode: a packet that stays as it was becomes nothing" "$out" $'\nbecomes'
	like "$mode: what one becomes is told" "$(explain 2)" $'\n'"becomes +udp .* mac $PEER_MAC > $HERE_MAC"
	bpftool net detach "$mode" dev xc0
done

bpftool net attach xdpdrv pinned /sys/fs/bpf/judge dev xc0
before=$(seen 0)
out=$(explain 2 -o json)
is "json: the verdict" "$(jq -r .verdict <<<"$out")" tx
is "json: the program" "$(jq -c .programs <<<"$out")" "[{\"name\":\"foreign_judge\",\"id\":$judge_id}]"
is "json: which is alone" "$(jq .dispatcher <<<"$out")" false
is "json: no rule of ax decided" "$(jq -r .decided,.rule <<<"$out" | xargs)" "another null"
is "json: the frame as it was, and as it is sent back" \
	"$(jq -r '.bytes[12:24] + .bytes[:12] + .bytes[24:] == .becomes_bytes' <<<"$out")" true
out=$(explain 6 -o json)
is "json: a longer frame" "$(jq '(.becomes_bytes | length) - (.bytes | length)' <<<"$out")" 8
like "what the program keeps it keeps of these packets, too" "$(($(seen 0) - before))" "^([2-9]|[1-9][0-9])$"
explain 1 >/dev/null
is "they came in by the interface" "$(seen 1)" "$(ip -j link show xc0 | jq '.[0].ifindex')"

"$PYTHON" - "$T/three.pcap" <<'P'
import struct, sys
def frame(port):
    udp = struct.pack("!HHHH", 1000, port, 8, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0, bytes([198, 51, 100, 2]), bytes([198, 51, 100, 1]))
    return bytes(6) + bytes(6) + b"\x08\x00" + ip + udp + bytes(18)
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
    for port in (1, 2, 9):
        f.write(struct.pack("<IIII", 0, 0, len(frame(port)), len(frame(port))) + frame(port))
P
out=$(xdp explain xc0 --pcap "$T/three.pcap")
is "a file's packets, a line each" "$(awk '{ print $1, $2, $3 }' <<<"$out" | xargs)" \
	"1 drop foreign_judge 2 tx foreign_judge 3 pass foreign_judge"
is "or an object" "$(xdp explain xc0 --pcap "$T/three.pcap" -o json | jq -r '"\(.number) \(.verdict)"' | xargs)" \
	"1 drop 2 tx 3 pass"

out=$(explain 1 --state new)
is "a state is not taken for it" $? 1
like "which is said" "$out" "--state and --at are for lists of ax: xc0 has the program 'foreign_judge'"
out=$(xdp explain xc0 --hex 0102 2>&1)
is "nor a frame that is none" $? 1
like "with its length" "$out" "the kernel does not run foreign_judge on a packet of 2 bytes"
if [ "$(ax doctor -o json | jq '.[] | select(.name == "fexit") | .on')" != true ]; then
	out=$(xdp dump xc0 -w "$T/none" 2>&1)
	is "a kernel that lets nobody watch it: no dump" $? 1
	is "which is said in a sentence" "$out" "ax xdp dump: the kernel does not let anybody see what foreign_judge on \
xc0, which is not of this instance, makes of packets (the line fexit of ax doctor says whether it can): Operation not permitted"
	ok "and leaves no file" test ! -e "$T/none"
fi
is "the program is still there" "$(ip -d -j link show xc0 | jq -r '.[0].xdp.prog.name')" foreign_judge
bpftool net detach xdpdrv dev xc0

cat >"$T/rules.yaml" <<'EOF'
rules:
  - {name: one, proto: udp, dport: 1, action: drop}
EOF
xdp load xc0 --rules "$T/rules.yaml" --force 2>/dev/null
like "a list of ax is asked as before" "$(explain 1)" $'\nrule +name one'
xdp unload xc0
rm -r /sys/fs/bpf/judge /sys/fs/bpf/judged
done_testing
