#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# `ax doctor IFACE`: what makes redirected packets vanish is found, with a command that repairs it.
. "$(dirname "$0")/lib.sh"
need ip ethtool jq

# from --- fromfar in src: where packets come from; to --- tofar in dst: where they go
ip netns add src
ip netns add dst
ip link add from type veth peer name fromfar netns src
ip link add to type veth peer name tofar netns dst
ip link set from up
ip link set to up
ip -n src link set fromfar up
ip -n dst link set tofar up

rules() {
	printf 'rules:\n  - {name: web, proto: tcp, dport: 80, action: redirect to%s}\n' "${1:-}" \
		>"$T/rules.yaml"
}
json() {
	ax doctor from --rules "$T/rules.yaml" -o json "$@"
}
# finding WHAT KEY: of the last one of that name in $found
finding() {
	jq -r --arg w "$1" --arg k "$2" '[.[] | select(.check == $w)][-1][$k]' <<<"$found"
}

# --- without rules ---
out=$(ax doctor from)
is "an interface without rules is no failure" $? 0
like "its driver is named" "$out" "driver +ok +driver veth has native XDP"
like "what could make packets vanish there is told" "$out" \
	"fix: ip netns exec src ethtool -K fromfar gro on"
like "a hint at the price of XDP on veth" "$out" "tso +note"
unlike "nothing is bad" "$out" BAD

# --- NAPI ---
rules ', checksum: recompute'
out=$(ax doctor from --rules "$T/rules.yaml")
is "a veth whose other end has no NAPI is bad" $? 1
like "the rule is named" "$out" "rule 'web' redirects to to, but tofar"
found=$(json)
is "it is bad in JSON too" "$(finding napi state)" bad
is "the fix is one command" "$(finding napi fix)" "ip netns exec dst ethtool -K tofar gro on"
is "a rule that recomputes checksums needs no more" "$(finding tx-checksum state)" null
ok "the command works" bash -c "$(finding napi fix)"
ok "then nothing is bad" ax doctor from --rules "$T/rules.yaml"
found=$(json)
is "and it is fine" "$(finding napi state)" ok

# --- checksums ---
rules
fails "unfinished checksums are bad" ax doctor from --rules "$T/rules.yaml"
found=$(json)
is "their fix is one command" "$(finding tx-checksum fix)" \
	"ip netns exec src ethtool -K fromfar tx off"
ok "which works" bash -c "$(finding tx-checksum fix)"
ok "nothing is bad then" ax doctor from --rules "$T/rules.yaml"

# --- --fix ---
ip netns exec src ethtool -K fromfar tx on >/dev/null
ip netns exec dst ethtool -K tofar gro off
fails "both are bad" ax doctor from --rules "$T/rules.yaml"
found=$(json --fix)
is "--fix ends well" $? 0
is "GRO was turned on" "$(finding napi state)" fixed
is "checksum offload was turned off" "$(finding tx-checksum state)" fixed
like "as ethtool sees it" "$(ip netns exec dst ethtool -k tofar)" \
	"generic-receive-offload: on"
like "both" "$(ip netns exec src ethtool -k fromfar)" "tx-checksumming: off"
ok "and it stays so" ax doctor from --rules "$T/rules.yaml"

# --- what --fix cannot repair ---
ip link set to mtu 1400
found=$(json --fix)
is "a smaller MTU stays bad" $? 1
is "with a command" "$(finding mtu fix)" "ip link set dev to mtu 1500"
bash -c "$(finding mtu fix)"
ip link set to down
found=$(json)
is "a target that is down is bad" "$(finding link state)" bad
ip link del to
found=$(json)
is "so is one that does not exist" "$(finding target state)" bad

# --- mistakes ---
out=$(ax doctor nowhere 2>&1)
is "no such interface" $? 125
like "says so" "$out" "there is no interface 'nowhere'"
out=$(ax doctor --fix 2>&1)
is "--fix without an interface is refused" $? 2
out=$(ax doctor from other 2>&1)
is "two interfaces are refused" $? 2
echo 'rules: [{action: redirect}]' >"$T/rules.yaml"
fails "a rule file with an error is refused" json
ok "the kernel's doctor is as before" ax doctor -o json

ip link del from
ip netns del src
ip netns del dst
done_testing
