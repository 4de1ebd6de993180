#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What detached apps write: how much of it is kept, and how it is read.
. "$(dirname "$0")/lib.sh"
need jq script socat

agent_start
LOGS=/run/ax/$INST/log

# --- a bound ---

ok "an app that never stops to write starts" ax run -d --name flood -- sh -c 'yes 0123456789; :'
wait_for "[ -s $LOGS/flood.log.1 ]"
sleep 1
# (while it writes, the file that is looked at first may be the second one by then)
ax stop flood >/dev/null
size=$(du -cb "$LOGS"/flood.log* | awk 'END { print $1 }')
ok "its log has at most 16 MiB" test "$size" -le $((16 << 20))
ok "and is no stump" test "$size" -ge $((6 << 20))

# --- across the turn ---

{ default_config; echo "  logs: {size: 256K}"; } >"$T/small.yaml"
ok "the size can be another one" ax config apply "$T/small.yaml"
mkfifo "$T/go"
ok "an app that counts" ax run -d --name count -- sh -c "seq 1 20000; read x <$T/go; seq 20001 60000; sleep 1000"
wait_for "ax logs count | grep -qx 20000"
bg "$T/followed" "$AX" --instance "$INST" logs -f count
follower=$BG
wait_for "grep -qx 20000 $T/followed"
echo >"$T/go"
wait_for "ax logs count | grep -qx 60000"
ok "the log was turned over" test -s "$LOGS/count.log.1"
ok "it keeps to its size" test "$(du -cb "$LOGS"/count.log* | awk 'END { print $1 }')" -le $((256 << 10))
out=$(ax logs count)
first=${out%%$'\n'*}
is "both files are read, without a gap" "$(cksum <<<"$out")" "$(seq "$first" 60000 | cksum)"
before=$(($(wc -l <"$LOGS/count.log") + 10))
is "the tail reaches back into the first" "$(ax logs -n $before count | cksum)" \
	"$(seq $((60001 - before)) 60000 | cksum)"
is "a tail of the last" "$(ax logs -n 2 count)" $'59999\n60000'
ok "a follower goes across the turn" wait_for "grep -qx 60000 $T/followed"
is "and sees each line" "$(sort -n "$T/followed" | uniq -d | wc -l)" 0
end "$follower"
ax stop count >/dev/null

# --- what an app may do with its output ---

ok "an app of a user opens /dev/stdout" ax run -d --name opens --user 65534 -- sh -c 'echo good >/dev/stdout; sleep 1000'
ok "and its words arrive" wait_for "ax logs opens | grep -qx good"
ax stop opens >/dev/null
ok "a child that stays writes when its parent has ended" ax run -d --name parent -- \
	sh -c '(sleep 1; echo late; sleep 1000) & echo early'
wait_for "ax logs parent | grep -q late"
is "both are in the log" "$(ax logs parent)" $'early\nlate'
ax stop parent >/dev/null

# --- escapes ---

escapes='printf "\033[31mred\033]0;title\007 \303\244 \377\nnext\tcolumn\n"; sleep 1000'
ok "an app that sends escapes" ax run -d --name colour -- sh -c "$escapes"
wait_for "ax logs colour | grep -q next"
is "a pipe gets the bytes" "$(ax logs colour | cksum)" "$(sh -c "${escapes%;*}" | cksum)"
is "a terminal gets them as text" \
	"$(script -qec "$AX --instance $INST logs colour" /dev/null </dev/null | tr -d '\r')" \
	'\e[31mred\e]0;title\x07 ä \xff'$'\nnext\tcolumn'
is "so are they in the errors of ax run" \
	"$(ax run -- $'no\e[31mthing' 2>&1)" 'ax run: no\e[31mthing: No such file or directory'
is "and of ax run --detach" \
	"$(ax run -d -- $'no\e[31mthing' 2>&1)" 'ax run: no\e[31mthing: No such file or directory'

ax stop colour >/dev/null

# --- the journal ---

{ default_config; echo "  logs: {to: journal}"; } >"$T/journal.yaml"
ok "logs may go to the journal" ax config apply "$T/journal.yaml"
like "it is said when there is none" "$(ax run -d --name told -- echo hi 2>&1)" "journal.*agent.logs.to"
mkdir -p /run/systemd/journal
bg "$T/journal" socat -u UNIX-LISTEN:/run/systemd/journal/stdout,fork STDOUT
wait_for "[ -S /run/systemd/journal/stdout ]"
ok "an app that is logged there" ax run -d --name told -- sh -c 'echo hi; sleep 1000'
wait_for "grep -q hi $T/journal"
is "by its name" "$(head -n 1 "$T/journal")" told
like "ax logs says where to look" "$(ax logs told 2>&1)" "journalctl -t"
ax stop told >/dev/null

done_testing
