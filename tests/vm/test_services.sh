# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.1
# Services on this kernel beyond what test_dataplane.sh has: health, draining, exposed ports that count, waiting for apps
# that share a name, Maglev by names, and lists of where apps may go outside.
. "${0%/*}/lib.sh"

cat >/tmp/ax.yaml <<'EOF'
agent:
  pool: {ipv4: 10.77.0.0/16, ipv6: "fd77::/64"}
services:
  checked: {ip: 10.77.200.1, ports: ["80:7000"], backends: [one, two],
    check: {type: tcp, every: 2s, timeout: 2s, fall: 1, rise: 1}}
  least: {ip: 10.77.200.2, ports: ["80:7000"], backends: [one, two], strategy: least-connections, expose: ["8080:80"]}
  named: {ip: 10.77.200.3, ports: ["80:7000"], backends: [one, two], strategy: maglev, hash: app}
EOF
ax doctor -o wide >/tmp/doctor 2>&1
ax agent --config /tmp/ax.yaml >/tmp/agent.log 2>&1 </dev/null &
agent=$!
tap "the agent starts" eventually 60 ax status

# run_app NAME OPTIONS -- COMMAND...: in the background, $pid
run_app()
{
	local name=$1

	shift
	ax run --name "$name" "$@" >"/tmp/out.$name" 2>&1 </dev/null &
	pid=$!
}
serve()
{
	run_app "$1" --net "$2" -- peer serve 0.0.0.0 7000 "$1"
	eventually 20 grep -q '^listening' "/tmp/out.$1"
}
serve one private
one=$pid
serve two private
two=$pid

# who answers SERVICE'S ADDRESS, of four
answers()
{
	for _ in 1 2 3 4; do
		peer get "$1" 80 2>&1 | cut -d ' ' -f 1
	done | sort -u | xargs
}

# --- exposed ports count ---

peer chat 127.0.0.1 8080 300 100 >/tmp/out.busy 2>&1 </dev/null &
busy=$!
tap "a client of an exposed port" eventually 20 grep -q ' 0100007F:1F90 01 ' /proc/net/tcp
usleep 500000 # it stands as soon as its own end knows; who counts it may still have to see its last packet
like "all others get who has none (by chance, they do so once in 8)" '^(one|two)$' answers 10.77.200.2
kill $busy

# --- draining, and health ---

tap "one drains" ax service drain checked one
like "and gets nothing" '^two$' answers 10.77.200.1
like "which is shown" "one .*draining" ax get services -o wide checked
tap "and no more" ax service drain checked one --undo
kill $one
wait $one
run_app one --net private -- sleep 1000
is_down()
{
	ax get services -o json checked | grep -q '"state": "down"'
}
tap "one does not listen any more: it is down" eventually 20 is_down
like "and gets nothing" '^two$' answers 10.77.200.1
kill $pid
wait $pid
serve one private
one=$pid

# --- Maglev by names ---

by_name()
{
	for name in a b; do
		for mode in private host; do
			ax run --name "$name" --net "$mode" -- peer get 10.77.200.3 80 2>&1 | cut -d ' ' -f 1 | sed "s/^/$name /"
		done
	done | sort -u | wc -l
}
like "the apps of a name have one backend, in both modes" '^2$' by_name

kill $one $two
wait $one $two

# --- waiting for one of several that share a name ---

for mode in private host; do
	needs hold_syn
	run_app pair --net $mode --ip 10.77.1.1 -- sleep 1000
	first=$pid
	eventually 20 ax get apps pair
	run_app pair --net $mode -- sh -c 'while [ ! -e /tmp/go ]; do usleep 50000; done; exec peer serve 0.0.0.0 7000 second'
	second=$pid
	eventually 20 sh -c '[ $(ax get apps pair -o name | wc -l) = 2 ]'
	rm -f /tmp/go
	waiters=
	for waiter in wait1 wait2 wait3; do
		run_app $waiter --net $mode --wait 60s -- peer get 10.77.1.1 7000
		waiters="$waiters $pid"
		eventually 20 ax get apps $waiter
	done
	touch /tmp/go
	# shellcheck disable=SC2086 # numbers
	wait $waiters
	got()
	{
		cat /tmp/out.wait1 /tmp/out.wait2 /tmp/out.wait3 | cut -d ' ' -f 1 | sort | uniq -c | xargs
	}
	like "$mode: all who wait get who listens" '^3 second$' got
	kill $first $second
	wait $first $second
	rm -f /tmp/go
done

# --- where apps may go ---

ip addr add 198.51.100.1/24 dev lo
peer serve 198.51.100.1 80 outside >/tmp/out.outside 2>&1 </dev/null &
outside=$!
eventually 10 grep -q '^listening' /tmp/out.outside
for mode in private host; do
	like "$mode: what the list has" '^outside ' ax run --net $mode --egress=198.51.100.1:80 -- peer get 198.51.100.1 80
	like "$mode: what it has not, at once" '^connect: (EACCES|EHOSTUNREACH)' ax run --net $mode --egress=198.51.100.2:80 -- \
		peer get 198.51.100.1 80
done
kill $outside $agent
wait $outside $agent
ip addr del 198.51.100.1/24 dev lo
ax agent --flush >/dev/null 2>&1
done_testing
