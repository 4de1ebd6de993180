#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# The agent's client of etcd, with one member: keys and pages, transactions, leases that are kept, end or are
# late, watches that go on after etcd was killed, and say it when what happened was compacted or
# another store is there; a disk that is full, answers that are too large.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/etcd.sh"
need jq

build_etcd_client
HERE=http://127.0.0.1:2381

client "$HERE" http://127.0.0.1:2382
say put early bird
etcd_start 1
hears "what was asked before etcd was there is done when it is" '^put early bird: done$'

hears "the owner is told that there is an endpoint" '^client: connected$'

say put a/1 x
hears "a key is put" '^put a/1 x: done$'
say create a/1 y
say create a/2 y
hears "a transaction whose compare does not hold does nothing" '^create a/1 y: done not$'
hears "and one whose compare holds does" '^create a/2 y: done$'
say get a/
hears "a prefix has its keys alone" '^get: end'
is "in their order" "$(grep -E '^get: a' "$SAID")" $'get: a/1=x\nget: a/2=y'

say fill many/ 10000
hears "10,000 keys are put" '^fill: done$'
say count many/ 0
hears "and read in pages of one revision" '^count: 10000 keys in 10 pages$'
say count many/ 10000
hears "or in one" '^count: 10000 keys in 1 pages$'

say watch w/ 1
hears "a watch is current" '^watch: current$'
say put w/1 one
hears "and told of what is put" '^watch: put w/1=one$'
say del w/1
hears "and deleted" '^watch: del w/1=$'

say lease 5
hears "a lease is held" '^lease: held [0-9]+$'
say under w/leased here
hears "a key stands under it" '^watch: put w/leased=here$'
lease=$(sed -n 's/^lease: held //p' "$SAID")
etcd_ask 1 lease/revoke "{\"ID\":\"$lease\"}" >/dev/null
hears "that it ended is noticed, and a new one is held" '^lease: held [0-9]+$' 2
hears "which is said" "^lease: lost $lease "
hears "its key is gone" '^watch: del w/leased='
say under w/leased again
hears "until it is put again" '^watch: put w/leased=again$'

kill -STOP "${MEMBER[1]}"
hears "a lease that cannot be kept for its whole time is late" '^lease: late'
kill -CONT "${MEMBER[1]}"
hears "and the same, or a new one, is held when etcd is back" '^lease: held [0-9]+$' 3

etcd_kill9 1
hears "that there is none" '^client: not connected$' 1
hears "a watch says that it is broken" '^watch: broken: '
say put w/2 two
etcd_member 1
hears "who was asked meanwhile answers when etcd is back" '^put w/2 two: done$'
hears "and a watch misses nothing" '^watch: put w/2=two$'
say put w/3 three
hears "and goes on" '^watch: put w/3=three$'
is "nothing is told twice" "$(grep -cE '^watch: put w/(1|2|3)=' "$SAID")" 3

etcd_kill9 1
etcd_member 1
etcd_ready 1
etcd_ask 1 kv/put '{"key":"dy80","value":"NA=="}' >/dev/null
hears "also of what others did before it was back" '^watch: put w/4=4$'
say revoke
hears "a lease is ended at once" '^revoke: done$'
hears "with its keys" '^watch: del w/leased=' 2

# a watch from before a compaction, and a range
revision=$(etcd_revision 1)
etcd_ask 1 kv/compaction "{\"revision\":\"$revision\"}" >/dev/null
say unwatch
say watch w/ 5
hears "a watch of what was compacted says from where there is something" "^watch: gap to $revision: .*compacted"
say get w/ 5
hears "and a range that it is" '^get: ESTALE: '
say watch w/ "$((revision + 1))"
hears "from there on it can be watched" '^watch: current$' 4

# another cluster at the same place
etcd_kill9 1
mv "$T/etcd.data.1" "$T/etcd.data.old"
etcd_member 1 --initial-cluster-token other
hears "another cluster is never taken for the one that was: a gap" '^watch: gap to 0: .*another cluster'
client_end
is "the client ends well" $? 0

# a disk that is full
etcd_kill9 1
rm -rf "$T/etcd.data.1"
etcd_member 1 --quota-backend-bytes 3000000
etcd_ready 1
client -t 30000 "$HERE"
for i in 1 2 3 4 5 6 7 8; do
	say big "big/$i" 900000 # one after the other, since etcd looks at what it has on its disk
	wait_for -t 60 "grep -q '^big big/$i ' '$SAID'"
done
hears "a disk quota that is exceeded is said" '^big big/[0-9] 900000: ENOSPC: .*space exceeded'
say put small x
hears "for small keys too" '^put small x: ENOSPC: '
say del big/1
hears "but keys can be deleted" '^del big/1: done$'
say get early
hears "and read" '^get: end'
client_end

# answers that are larger than what is accepted
client -m 1000000 "$HERE"
say get big/
hears "an answer that is too large is an error" '^get: EMSGSIZE: '
say get nothing
hears "which harms nobody else" '^get: end'
client_end
etcd_kill9 1
done_testing
