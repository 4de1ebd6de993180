# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced after lib.sh by tests of lists: what one of them makes of packets, on lo.

# Rules for 70 values in each of three fields, which match none of the packets: too many for a
# table of products, so the list is compiled to bit vectors.
fillers()
{
	awk 'BEGIN {
		for (i = 0; i < 70; i++)
			printf "- {src: 172.16.%d.1, action: drop}\n- {dst: 172.17.%d.1, action: drop}\n" \
			       "- {sport: %d, action: drop}\n", i, i, 60000 + 3 * i
	}'
}

# question HEX: the bytes of a DNS query for the name of these labels
question()
{
	printf 'hex:123401000001000000000000%s0000010001' "$1"
}

# verdict_on PLACE WORD PACKET
verdict_on()
{
	ax --instance l xdp explain "$1" --packet "$3" >/tmp/explained 2>&1
	cat /tmp/explained
	grep -qE "^verdict +$2\$" /tmp/explained
}

# verdict WORD PACKET
verdict()
{
	verdict_on lo "$@"
}

# taken HIT [MISS]: the list in /tmp/list.yaml is loaded, HIT passes and MISS is dropped.
taken()
{
	local status=0

	ax --instance l xdp load lo --mode generic --force --rules /tmp/list.yaml || return 1
	verdict pass "$1" || status=1
	[ -z "${2:-}" ] || verdict drop "$2" || status=1
	ax --instance l xdp unload lo || status=1
	return "$status"
}

# field CONDITION HIT MISS
field()
{
	local start="default: drop
rules:
- {$1, action: pass}"

	echo "$start" >/tmp/list.yaml
	tap "$1, alone" taken "$2" "$3"
	{
		echo "$start"
		echo "- {vlan: 1, proto: gre, action: pass}"
	} >/tmp/list.yaml
	tap "$1, with others" taken "$2" "$3"
	{
		echo "$start"
		fillers
	} >/tmp/list.yaml
	tap "$1, in bit vectors" taken "$2" "$3"
}
