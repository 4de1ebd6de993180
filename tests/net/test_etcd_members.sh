#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# The agent's client of etcd, with three members: another is asked when the one that was dies, hangs, or has
# no leader; nothing is missed and no transaction is done twice; all may be gone, and come back.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/etcd.sh"
need jq nft

# The member whose turn it is, by the client's state.
connected() {
	is_in_state '.* connected ' && grep -oE '^state: [^ ]*238[1-3]' "$SAID" | tail -c 2
}
others() { echo "1 2 3" | tr -d "$1"; }

build_etcd_client
client -p 1000 -t 60000 http://127.0.0.1:238{1,2,3}
etcd_start 1 2 3
say watch k 1
hears "a watch is current" '^watch: current$'
say lease 20
hears "a lease is held" '^lease: held '

first=$(connected)
etcd_kill9 "$first"
hears "the watch on a member that is killed is broken" '^watch: broken: '
hears "and current on another" '^watch: current$' 2
say put k1 one
hears "who does what the first would have done" '^put k1 one: done$'
hears "and tells it" '^watch: put k1=one$'
second=$(connected)
etcd_member "$first"
etcd_ready "$first"

kill -STOP "${MEMBER[second]}"
hears "a member that hangs is left, too" '^watch: broken: ' 2
say put k2 two
hears "for one that answers" '^put k2 two: done$'
hears "and nothing is missed" '^watch: put k2=two$'
kill -CONT "${MEMBER[second]}"

# the leader
for n in 1 2 3; do
	etcd_ready "$n"
	etcd_ask "$n" maintenance/status '{}' | jq -e '.leader == .header.member_id' >/dev/null && leader=$n
done
etcd_kill9 "$leader"
say create k3 three
hears "a transaction is done when the leader is killed" '^create k3 three: (done|ETIMEDOUT: .*not known)'
say put k4 four
hears "and so are others" '^put k4 four: done$'
hears "and told" '^watch: put k4=four$'

# no majority: nobody is a leader
# shellcheck disable=SC2046 # two words
set -- $(others "$leader")
etcd_kill9 "$1"
say put k5 five
ok "a member that has no leader is not taken for one that is well" is_in_state '.* not-connected '
hears_not "nor does it say that it did what it cannot" '^put k5'
etcd_kill9 "$2"
for n in 1 2 3; do
	etcd_member "$n"
done
hears "all are back: what was asked is done" '^put k5 five: done$'
hears "and told" '^watch: put k5=five$'
hears_not "the lease has never been lost" '^lease: lost'

# compaction while the client is cut off
nft -f - <<-EOF
	table inet cut {
		chain out {
			type filter hook output priority 0
			meta skuid 65534 tcp dport 2381-2383 reject with tcp reset
		}
	}
EOF
ok "nobody can be reached" is_in_state '.* not-connected '
for n in 1 2 3; do
	etcd_ask 1 kv/put '{"key":"azY=","value":"Ng=="}' >/dev/null
done
revision=$(etcd_revision 1)
etcd_ask 1 kv/compaction "{\"revision\":\"$revision\"}" >/dev/null
nft delete table inet cut
hears "what was compacted meanwhile is a gap" "^watch: gap to $revision: .*compacted"
hears_not "whose keys were not told" '^watch: put k6'
say get k6
hears "and can be read" '^get: k6=6$'
client_end
is "the client ends well" $? 0
etcd_kill9 1 2 3
done_testing
