# SPDX-License-Identifier: GPL-2.0-or-later
# ax on this kernel: what a user does with it, with small static programs. A test that needs a hook
# that this kernel lacks is skipped; which are off says `ax doctor`, which is tested first.
. "${0%/*}/lib.sh"

cat >/tmp/ax.yaml <<'EOF'
agent:
  pool: {ipv4: 10.77.0.0/16, ipv6: "fd77::/64"}
services:
  svc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["8080:80"]
    strategy: round-robin
    backends: [web, other]
  least:
    ip: 10.77.200.4
    ports: ["8080:80"]
    strategy: least-connections
    backends: [web, other]
  usvc:
    ip: 10.77.200.2
    ports: ["9000:7000/udp"]
    backends: [echo]
  waits-private:
    ip: 10.77.200.5,fd77::200:5
    ports: ["8080:80"]
    backends: [quiet-private, soon-private, mute-private]
    wait: 30s
  waits-host:
    ip: 10.77.200.6,fd77::200:6
    ports: ["8080:80"]
    backends: [quiet-host, soon-host, mute-host]
    wait: 30s
  nobody:
    ip: 10.77.200.3
    ports: [80]
    backends: [absent]
apps:
  late:
    ip: 10.77.1.9
EOF

# set by name: pid_NAME by serve, and the clients that outlive an agent
pid_web='' pid_other='' pid_third='' pid_pair='' pid_echo='' orphan_private='' orphan_host=''

# serve NAME OPTIONS -- COMMAND...: an app that says 'listening' when it is ready.
serve()
{
	local name=$1 pid

	shift
	ax run --name "$name" "$@" >"/tmp/out.$name" 2>&1 </dev/null &
	pid=$!
	if ! eventually 15 grep -q '^listening' "/tmp/out.$name"; then
		echo "$name does not come up:"
		cat "/tmp/out.$name"
	fi
	eval "pid_$name=$pid"
}

up_or_dead()
{
	ax status || ! kill -0 "$agent"
}

start_agent()
{
	ax agent --config /tmp/ax.yaml >>/tmp/agent.log 2>&1 </dev/null &
	agent=$!
	eventually 60 up_or_dead
	ax status
}

# in_app MODE COMMAND...: as a client with an address that the servers can tell.
in_app()
{
	local mode=$1

	shift
	timeout 30 ax run --net "$mode" --ip 10.77.1.5,fd77::1:5 --name client -- "$@"
}

# Both of two words appear when the command is run up to 20 times.
both()
{
	local a=$1 b=$2 i=0 seen_a="" seen_b="" out

	shift 2
	while [ "$i" -lt 20 ] && { [ -z "$seen_a" ] || [ -z "$seen_b" ]; }; do
		out=$("$@" 2>&1)
		echo "$out"
		case $out in
		"$a "*) seen_a=1 ;;
		"$b "*) seen_b=1 ;;
		esac
		i=$((i + 1))
	done
	[ -n "$seen_a" ] && [ -n "$seen_b" ]
}

# One of two servers has a connection, so the other gets all that come one by one. (Of chance this
# is once in 128.)
the_other_one()
{
	local i=0 mode=$1 busy

	ax run --net "$mode" --name busy -- peer chat 10.77.200.4 8080 200 100 >/tmp/out.busy 2>&1 </dev/null &
	busy=$!
	eventually 10 sh -c 'ax get conns | grep -q busy'
	: >/tmp/others
	while [ "$i" -lt 8 ]; do
		in_app "$mode" peer get 10.77.200.4 8080 | tee -a /tmp/others
		usleep 200000
		i=$((i + 1))
	done
	kill "$busy"
	wait "$busy"
	[ "$(cut -d ' ' -f 1 </tmp/others | sort | uniq -c | wc -l)" = 1 ] &&
		[ "$(grep -cE '^(web|other) ' /tmp/others)" = 8 ]
}

refused()
{
	local out

	out=$("$@" 2>&1) && return 1
	echo "$out"
	echo "$out" | grep -qE '^(connect|sendto|receive): (ECONNREFUSED|EHOSTUNREACH)$'
}

refused_none()
{
	! awk '($2 == "off" || $2 == "MISSING") && $3 != "probes" && $1 != "splice_join" && $1 != "splice_sizes" && $1 != "splice-auto"' /tmp/doctor | grep .
}

# Linux 6.5 and later
since_6_5()
{
	[ "$(printf '6.5\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.5 ]
}

joins_where_it_can()
{
	if since_6_5; then
		grep '^splice_join  *on' /tmp/doctor
	else
		grep '^splice_join  *off .*before Linux 6.5' /tmp/doctor
	fi
}

# The agent tries the kernel when it starts; none of these kernels' members are as TCP.
judged()
{
	ax doctor -o wide >/tmp/judged
	cat /tmp/judged
	if since_6_5; then
		grep -q '^splice-auto  *off .*behaviours differ' /tmp/judged &&
			grep -q 'recv and a signal with SA_RESTART' /tmp/judged
	else
		grep -q '^splice-auto  *off .*before Linux 6.5' /tmp/judged
	fi
}

# --- what this kernel can do ---

tap "ax doctor finds everything that ax cannot do without" ax doctor -o wide
cp /tmp/tap.out /tmp/doctor
cat /tmp/doctor
# from 6.1 on every kernel has all of it but some ways to attach probes: what is off here was refused,
# and the tests below that need it would be skipped
tap "and all that it could do without" refused_none
tap "connections join splicing where the kernel can do that" joins_where_it_can
tap "and kprobes, which Debian's kernels have" grep -q '^kprobe  *on' /tmp/doctor
tap "the agent starts" start_agent || {
	cat /tmp/agent.log
	done_testing
}
! since_6_5 || eventually 200 test -e /run/ax/ax/splice-gate
tap "which finds that splicing would show, where it can splice" judged

# --- servers and clients, private and in the host's namespace ---

serve web --ip 10.77.1.1,fd77::1:1 -- peer serve :: 80 web
serve other --net host --ip 10.77.1.2,fd77::1:2 -- peer serve :: 80 other
serve third --net host --ip 10.77.1.3 -- peer serve 0.0.0.0 80 third

# shellcheck disable=SC2086 # $server: words
for mode in private host; do
	for server in "web 10.77.1.1 fd77::1:1 private" "other 10.77.1.2 fd77::1:2 host"; do
		set -- $server
		w="$mode client, $4 server"
		like "$w: by address, each sees the other's" \
			"^$1 peer=10.77.1.5 local=$2 asked=$2$" in_app $mode peer get "$2" 80
		like "$w: over IPv6" \
			"^$1 peer=fd77::1:5 local=$3 asked=$3$" in_app $mode peer get "$3" 80
		like "$w: by name" "^$1 peer=(10.77.1.5|fd77::1:5) " in_app $mode peer get "$1" 80
		like "$w: by full name" "^$1 peer=(10.77.1.5|fd77::1:5) " \
			in_app $mode peer get "$1.ax.internal" 80
	done
	like "$mode client: a second host-mode server on the same port" \
		"^third peer=10.77.1.5 local=10.77.1.3 " in_app $mode peer get third 80
	tap "$mode client: a service with two backends reaches both" \
		both web other in_app $mode peer get 10.77.200.1 8080
	tap "$mode client: the backend with the fewest connections" the_other_one $mode
	needs getpeername4
	like "$mode client: getpeername() is the service's address" " asked=10.77.200.1$" \
		in_app $mode peer get 10.77.200.1 8080
	needs getpeername6
	like "$mode client: the service over IPv6" " peer=fd77::1:5 .* asked=fd77::200:1$" \
		in_app $mode peer get fd77::200:1 8080
	tap "$mode client: the service by name" in_app $mode peer get svc 8080
	tap "$mode client: a port where nobody listens is refused" \
		refused in_app $mode peer get 10.77.1.1 81
	tap "$mode client: a service without backends is refused" \
		refused in_app $mode peer get nobody 80
	like "$mode client: an unknown name does not resolve" "^resolve: " \
		in_app $mode peer get unknown.ax.internal 80
	tap "$mode client: without a label in common it is refused" \
		refused ax run --net $mode --labels zone=elsewhere -- peer get 10.77.1.1 80
	tap "$mode client: nor does a service let it in" \
		refused ax run --net $mode --labels zone=elsewhere -- peer get 10.77.200.1 8080
done
needs bind4
like "an app cannot bind another one's address" "^bind: EADDRNOTAVAIL$" \
	ax run --net host --ip 10.77.1.6 -- peer serve 10.77.1.2 81 thief
like "a program outside ax reaches a private app" "^web peer=.* asked=10.77.1.1$" \
	peer get 10.77.1.1 80
like "a program outside ax reaches a host-mode app" "^other peer=.* asked=10.77.1.2$" \
	peer get 10.77.1.2 80
like "ax ends with the command's exit status" "^7$" \
	sh -c 'ax run -- sh -c "exit 7"; echo $?'

# --- busybox's own programs ---

mkdir -p /tmp/www
echo "served by httpd" >/tmp/www/index.html
ax run --name files --ip 10.77.1.4 -- httpd -f -p 80 -h /tmp/www >/tmp/out.files 2>&1 </dev/null &
pid_files=$!
eventually 10 wget -q -O /dev/null http://10.77.1.4/
for mode in private host; do
	like "$mode client: wget from httpd" "served by httpd" \
		in_app $mode wget -q -O - http://10.77.1.4/
	like "$mode client: nc to httpd, by name" "served by httpd" \
		in_app $mode sh -c 'printf "GET / HTTP/1.0\r\n\r\n" | nc -w 5 files.ax.internal 80'
done
like "private client: nslookup" "10\.77\.1\.1" in_app private nslookup web.ax.internal

# --- two apps of one name ---

serve pair --ip 10.77.1.20 -- peer serve 0.0.0.0 80 one
first=$pid_pair
serve pair -- peer serve 0.0.0.0 80 two
tap "two apps of one name form a service" both one two in_app private peer get pair 80
kill "$first" "$pid_pair"
wait "$first" "$pid_pair"

# --- UDP ---

for mode in private host; do
	serve echo --net $mode --ip 10.77.1.7,fd77::1:7 -- peer udp-serve :: 7000 echo
	for client in private host; do
		w="UDP, $client client, $mode server"
		needs sendmsg4 recvmsg4
		like "$w: sendto()" "^echo hello peer=10.77.1.5 from=10.77.1.7$" \
			in_app $client peer udp 10.77.1.7 7000 hello
		needs sendmsg6 recvmsg6
		like "$w: sendto() over IPv6" "^echo hello peer=fd77::1:5 from=fd77::1:7$" \
			in_app $client peer udp fd77::1:7 7000 hello
		needs sendmsg4 recvmsg4
		like "$w: the service, sendto()" "^echo hello peer=10.77.1.5 from=10.77.200.2$" \
			in_app $client peer udp 10.77.200.2 9000 hello
		needs getpeername4 recvmsg4
		like "$w: the service, connected" "^echo hello peer=10.77.1.5 asked=10.77.200.2$" \
			in_app $client peer udp-connected usvc 9000 hello
	done
	kill "$pid_echo"
	wait "$pid_echo"
done

# --- programs outside ax, whose backend is removed ---

# one that is connected to a service, 10.77.200.9, until it is told otherwise
stays()
{
	peer chat 10.77.200.9 8080 600 100 >/tmp/out.stays 2>&1 </dev/null &
	stays=$!
	eventually 10 grep -q ' 09C84D0A:1F90 01 ' /proc/net/tcp
}

was_reset()
{
	eventually 15 test -s /tmp/out.stays # it prints at its end
	cat /tmp/out.stays
	kill "$stays" 2>/dev/null
	wait "$stays"
	grep -q ^read: /tmp/out.stays
}

needs to_service accepted
tap "a service that ends TCP" ax service add lost --ip 10.77.200.9 -p 8080:80 -b web --on-remove destroy
tap "a program outside ax is connected to its private backend" stays
ax service set lost --backend other
tap "which is removed: it is told so" was_reset
tap "one is connected to its host-mode backend" stays
ax service drain lost other --deadline 200ms
tap "the deadline of which comes: it is told so" was_reset
tap "the service goes" ax service del lost

# --- a server that starts after its client ---

late_server()
{
	sleep 2
	serve late -- peer serve 0.0.0.0 80 late
}
late_server &
late=$!
needs hold_syn
like "connect() waits for a server that has not started" "^late peer=.* local=10.77.1.9 " \
	ax run --wait 10s -- peer get 10.77.1.9 80
wait $late

# Of a service that has nobody yet, and then of several of whom none listens, it gets the first.
soon_server()
{
	sleep 2
	ax run --name "soon-$1" --net "$1" -- peer serve :: 80 soon >"/tmp/out.soon" 2>&1 </dev/null &
}

# silent_apps MODE: backends that listen nowhere
silent_apps()
{
	local name

	for name in quiet-$1 mute-$1; do
		ax run --name "$name" --net "$1" -- sleep 1000 >"/tmp/out.$name" 2>&1 </dev/null &
		eventually 15 ax get apps "$name"
	done
}

none_is_left()
{
	! ax get apps "quiet-$1" && ! ax get apps "soon-$1" && ! ax get apps "mute-$1"
}

# waits_for_service CLIENT SERVER WHO ADDRESS...
waits_for_service()
{
	local client=$1 server=$2 who=$3 soon to name

	shift 3
	soon_server "$server" &
	soon=$!
	for to in "$@"; do
		needs hold_syn
		like "$client client, $server servers: connect() to $to waits for the first of $who" \
			"^soon peer=" timeout 60 ax run --net "$client" -- peer get "$to" 8080
	done
	wait $soon
	for name in quiet soon mute; do
		ax stop "$name-$server" >/dev/null 2>&1
	done
	eventually 15 none_is_left "$server"
}

for server in private host; do
	last=5
	[ $server = private ] || last=6
	for client in private host; do
		waits_for_service $client $server "none" 10.77.200.$last fd77::200:$last
		silent_apps $server
		waits_for_service $client $server "three" 10.77.200.$last fd77::200:$last
	done
done

# --- what can be seen ---

lives_of_connections()
{
	eventually 5 sh -c 'grep -q connect /tmp/events && grep -q close /tmp/events' && return
	cat /tmp/events /tmp/events.err
	return 1
}

ax run --name talker -- peer chat 10.77.200.1 8080 100 100 >/tmp/out.talker 2>&1 </dev/null &
talker=$!
eventually 5 ax get apps talker
ax events -f >/tmp/events 2>/tmp/events.err </dev/null &
events=$!
usleep 300000
in_app private peer get web 80 >/dev/null 2>&1
like "ax get apps" "^web .*10\.77\.1\.1" ax get apps
like "ax get services" "^svc .*10\.77\.200\.1" ax get services
like "ax get servers" "web" ax get servers
like "ax get names" "^(svc|svc\.ax\.internal) " ax get names
needs conns
like "ax get conns shows an open connection with the name of its app" "talker" ax get conns
tap "ax get apps -o json" sh -c 'ax get apps -o json | grep -q "\"ip4\": *\"10.77.1.1\""'
like "ax status" "10\.77\." ax status
tap "ax events shows a connection's life" \
	lives_of_connections
kill $events
wait $events

# --- the agent is killed ---

# Apps that wait for the agent's death, and then connect.
for mode in private host; do
	ax run --name orphan-$mode --net $mode -- sh -c '
		echo started
		until [ -e /tmp/dead ]; do usleep 100000; done
		peer get 10.77.1.1 80; peer get 10.77.1.2 80; peer get 10.77.200.1 8080
		echo done' >/tmp/out.orphan-$mode 2>&1 </dev/null &
	eval "orphan_$mode=$!"
done
eventually 10 grep -q started /tmp/out.orphan-private
eventually 10 grep -q started /tmp/out.orphan-host
kill -9 "$agent"
wait "$agent"
touch /tmp/dead
for mode in private host; do
	eventually 10 grep -q '^done$' /tmp/out.orphan-$mode
	like "without an agent: a $mode client reaches a private server" "^web peer=.*asked=10.77.1.1$" \
		cat /tmp/out.orphan-$mode
	like "without an agent: a $mode client reaches a host-mode server" \
		"^other peer=.*asked=10.77.1.2$" cat /tmp/out.orphan-$mode
	needs getpeername4
	like "without an agent: a $mode client reaches a service" "asked=10.77.200.1$" \
		cat /tmp/out.orphan-$mode
done
wait "$orphan_private" "$orphan_host"

tap "an agent takes over what is there" start_agent
like "the new agent knows the apps" "^web .*10\.77\.1\.1" ax get apps
like "the new agent has undone the apps that ended meanwhile" '^0$' \
	sh -c 'ax get apps -o name | grep -c orphan'
like "a client of the new agent reaches an old server" "^web peer=10.77.1.5 " \
	in_app private peer get web 80
wait $talker
like "a connection outlives its agent" "^100 echoes$" cat /tmp/out.talker

# --- to the outside ---

# Another namespace plays the world outside: 192.0.2.1, which knows no way to virtual addresses.
unshare -n sh -c 'ip link set lo up; echo >/tmp/outside; exec sleep 300' &
outside=$!
eventually 5 test -e /tmp/outside
# busybox's ip takes no name for the other end
ip link add outside0 type veth
peer=$(cd /sys/class/net && echo veth*)
ip link set "$peer" netns $outside
ip addr add 192.0.2.2/24 dev outside0
ip link set outside0 up
nsenter -t $outside -n ip addr add 192.0.2.1/24 dev "$peer"
nsenter -t $outside -n ip link set "$peer" up
nsenter -t $outside -n peer serve 192.0.2.1 80 world >/tmp/out.world 2>&1 &
world=$!
eventually 5 grep -q listening /tmp/out.world
like "with egress, a private app reaches the outside" "^world peer=192.0.2.2 " \
	ax run --egress -- peer get 192.0.2.1 80
like "without egress it does not" "^connect: (EACCES|EHOSTUNREACH|ENETUNREACH|ECONNREFUSED)$" \
	ax run -- peer get 192.0.2.1 80
kill $world $outside
wait $world $outside
ip link del outside0 2>/dev/null

# --- the end ---

tap "ax stop ends an app" ax stop web
wait "$pid_web"
like "what was stopped is not listed" '^0$' sh -c 'ax get apps -o name | grep -c "^web$"'
like "what was stopped is refused" "^connect: (ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)$" \
	in_app private peer get 10.77.1.1 80
kill "$agent"
wait "$agent"
tap "apps go on when the agent ends by SIGTERM" kill -0 "$pid_other"
tap "ax agent --flush" ax agent --flush
wait "$pid_other" "$pid_third" $pid_files
nothing_left()
{
	{
		find /sys/fs/cgroup/ax /sys/fs/bpf/ax /run/ax/ax/control.sock 2>/dev/null
		ip link | grep ' ax-'
		ip route show table all | grep -e 10.77 -e fd77
		ip -6 route show table all | grep fd77
		pidof peer ax httpd
	} >/tmp/left
	cat /tmp/left
	[ ! -s /tmp/left ]
}
tap "after that nothing is left" nothing_left
tail -n 40 /tmp/agent.log
done_testing
