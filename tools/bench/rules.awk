# SPDX-License-Identifier: GPL-2.0-or-later
# Writes lists of `n` rules of a `kind`, for ax (as a rule file) or for nftables' netdev ingress of
# an interface (nft=INTERFACE).
#
#   ports  each drops one UDP port, from 10000 on
#   mixed  each drops a source prefix and a range of ports of a protocol. What is measured is UDP
#          from the last one's prefix to port 65001. It hits the last rule alone, though half of
#          the rules are of its protocol and a third of their ranges have its port.
#   payload  as mixed, but the last one asks for eight bytes of payload besides
#   overlap  the same, but ten rules have the same prefix: no field alone tells the rule
#   swap   as mixed; two more at the end for UDP ports 9 and 10, which change their names if other=1
#   set    one that drops what comes from the addresses in `file`, a set of the name `set`
BEGIN {
	payload = ", payload: at 8 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00"
	if (kind == "set") {
		printf "sets:\n  %s: {file: %s}\nrules:\n", set, file
		printf "  - {name: rule, src: \"@%s\", action: drop}\n", set
		exit
	}
	begin()
	prefixes = kind == "overlap" && n > 100 ? int(n / 10) : n
	for (i = 0; i < n; i++)
		kind == "ports" ? port(10000 + i) : mixed()
	if (kind == "swap") {
		one(other ? 10 : 9, "one")
		one(other ? 9 : 10, "two")
	}
	if (nft != "")
		print "\t}\n}"
}

function begin() {
	if (nft == "") {
		print "rules:"
		return
	}
	printf "table netdev %s {\n\tchain ingress {\n", nft
	printf "\t\ttype filter hook ingress device \"%s\" priority 0; policy accept;\n", nft
}

function port(p) {
	if (nft == "")
		printf "  - {name: port%d, proto: udp, dport: %d, action: drop}\n", p, p
	else
		printf "\t\tudp dport %d counter drop\n", p
}

function one(p, name) {
	printf "  - {name: %s, proto: udp, dport: %d, action: drop}\n", name, p
}

function mixed(    k, net, lo, hi, proto) {
	k = i % prefixes
	net = sprintf("10.%d.%d.0/24", int(k / 256), k % 256)
	proto = (n - 1 - i) % 2 ? "tcp" : "udp"
	lo = 1024 + i * 61 % 50000
	hi = lo + i * 7 % 1000
	if (i == n - 1) {
		lo = 65000
		hi = 65010
	} else if (i % 3 == 0 && k != (n - 1) % prefixes) {
		hi = 65535
	}
	if (nft == "")
		printf "  - {name: mixed%d, src: %s, proto: %s, dport: %d-%d%s, action: drop}\n", i,
			net, proto, lo, hi, kind == "payload" && i == n - 1 ? payload : ""
	else
		printf "\t\tip saddr %s %s dport %d-%d counter drop\n", net, proto, lo, hi
}
