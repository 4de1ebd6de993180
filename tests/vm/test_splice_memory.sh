# SPDX-License-Identifier: GPL-2.0-or-later
# A spliced connection of an app whose memory is limited by the second version of control groups, where
# sockets count with all else (memory.max): near the limit nothing is handed to its sockets, TCP has all,
# and below it splicing goes on. Every byte is right meanwhile.
. "${0%/*}/lib.sh"
axm() # not for what is to be ended by its id: an instance of its own: whatever others left
{
	ax --instance mem "$@"
}

cat >/tmp/memory.yaml <<'YAML'
agent:
  pool: {ipv4: 10.99.0.0/16}
  splice: forced
YAML

count() # NAME: of the programs' counters
{
	axm status -o json | sed 's/[,{}]/\n/g' | sed -n "s/^ *\"splice_$1\": *\([0-9]*\).*/\1/p" | grep . || echo 0
}
grows() # NAME FROM
{
	[ "$(count "$1")" -gt "$2" ]
}
group() # FILE [VALUE]: of the server's control group
{
	local file

	file=$(echo /sys/fs/cgroup/mem/server-*)/memory.$1
	if [ $# -gt 1 ]; then echo "$2" >"$file"; else cat "$file"; fi
}
# The limit is so near that no message fits, for which 128 KiB are to be left besides it, and so far that
# TCP's do. Nothing moves meanwhile: the kernel ends somebody of a group whose limit comes to be below what it has
# by then.
tighten()
{
	local there

	there=$(echo /sys/fs/cgroup/mem/server-*)
	echo 1 >"$there/cgroup.freeze" && eventually 10 grep -q 'frozen 1' "$there/cgroup.events" && sleep 0.2
	group max $(($(group current) + 112 * 1024))
	echo 0 >"$there/cgroup.freeze"
}
# What the processors have set aside for a group counts as used until they give it back, so that there
# may be more room than there seemed to be: it is looked at anew.
near_limit_grows()
{
	tighten && grows "$@"
}
serves()
{
	ax --instance mem run --net host --ip 10.99.1.1 --name server --memory 64m -- ask serve 10.99.1.1 7000 \
		>/tmp/server 2>&1 </dev/null &
	eventually 60 grep -q ' 0101630A:1B58 00000000:0000 0A ' /proc/net/tcp # 10.99.1.1:7000 listens
}
asks()
{
	ax --instance mem run --net host -- ask ask 10.99.1.1 7000 >/tmp/client 2>&1 </dev/null &
	client=$!
}

ax --instance mem agent --config /tmp/memory.yaml >/tmp/agent.log 2>&1 </dev/null &
agent=$!
tap "the agent starts" eventually 60 axm status
axm doctor >/tmp/doctor 2>&1
for name in splice_join splice_conns; do
	grep -q "^$name  *on" /tmp/doctor || feature=$name
done
grep -qw memory /sys/fs/cgroup/cgroup.controllers || feature="controller memory"
if [ -n "$feature" ]; then
	tap "a connection of an app with a limit is spliced" true
	kill "$agent"
	done_testing
fi

tap "a server with a limit" serves
asks
tap "its connection is spliced" eventually 120 grows redirected 20
before=$(count memory)
tap "its control group is near its limit" tighten
tap "then messages go by TCP" eventually 60 near_limit_grows memory "$before"
before=$(count memory)
tap "and go on by TCP" eventually 60 near_limit_grows memory $((before + 20))
group max 67108864
before=$(count redirected)
tap "with more memory they are handed on again" eventually 60 grows redirected $((before + 20))
like "nobody was ended for want of memory" "^oom_kill 0" group events
kill -TERM "$client"
wait "$client"
like "every answer was right" "^good [1-9]" cat /tmp/client
axm stop server >/dev/null 2>&1
kill "$agent"
wait "$agent"
tap "nothing is left" axm agent --flush
[ "$failures" = 0 ] || { dmesg | tail -n 30 && tail -n 5 /tmp/client /tmp/server /tmp/agent.log; } | sed 's/^/# /'
done_testing
