# SPDX-License-Identifier: GPL-2.0-or-later
# usage: cluster_pair.sh 1|2
# Two machines, each with a kernel of its own, that are joined by a wire (tools/vm.sh --pair): the first one has etcd and
# the servers, the second one the clients, which reach them by all three ways and both families, one after the other,
# with their own addresses at both ends.
. "${0%/*}/lib.sh"
. "${0%/*}/nodes.sh"

me=n$1
# shellcheck disable=SC2034 # by name
pid_n1=1 pid_n2=1 agent_n1='' agent_n2='' # the machine is its node
etcd_url=http://10.99.0.1:2379

# put KEY: for the other machine; is_put KEY
base64_of()
{
	printf %s "$1" | base64 -w 0
}
put()
{
	wget -q -O /dev/null --post-data "{\"key\": \"$(base64_of "/pair/$1")\", \"value\": \"MQ==\"}" $etcd_url/v3/kv/put
}
is_put()
{
	wget -q -O - --post-data "{\"key\": \"$(base64_of "/pair/$1")\"}" "$etcd_url/v3/kv/range" | grep -q '"count"'
}

# way ROUTES: this machine's agent with that way, and the apps that it had
way()
{
	[ "$me" = n1 ] || within 300 is_put "begin-$1"
	cat >"/tmp/$me.yaml" <<-CONFIG
		agent: {host_access: false}
		cluster:
		  name: east
		  etcd: ["$etcd_url"]
		  pool: {ipv4: 10.80.0.0/16, ipv6: "fd61:80::/48"}
		  node: {name: $me, address: 10.99.0.${me#n}}
		  routes: $1
	CONFIG
	if eval "[ -n \"\$agent_$me\" ]"; then
		eval "kill \$agent_$me"
		eval "wait \$agent_$me"
	fi
	start "$me"
	[ "$me" = n2 ] || put "begin-$1"
	tap "$1: this machine has addresses" within 300 state "$me" '"blocks":\["10[^]]*fd61:80:'
	tap "$1: there is a way to the other machine" within 300 state "$me" "\"kind\":\"$1\",\"routes\":2"
}

servers()
{
	local mode

	mkdir -p /var/lib/nginx
	cat >/tmp/nginx.conf <<-'CONFIG'
		daemon off;
		user root root;
		worker_processes 1;
		pid /tmp/nginx.pid;
		error_log /tmp/nginx.log;
		events {}
		http { access_log off; server { listen 8080; listen [::]:8080; location / { return 200 "$remote_addr\n"; } } }
	CONFIG
	for mode in private host; do
		app n1 "tcp-$mode" --net $mode -- peer serve :: 7000 "tcp-$mode"
		app n1 "udp-$mode" --net $mode -- peer udp-serve 0.0.0.0 7001 "udp-$mode"
	done
	app n1 web --net host -- nginx -e /tmp/nginx.log -c /tmp/nginx.conf
	app n1 store --net host -- redis-server --bind 0.0.0.0 --port 6379 --protected-mode no --save "" --dir /tmp
}

clients()
{
	app n2 c-private --net private -- sleep 2000
	app n2 c-host --net host -- sleep 2000
}

# told TEXT COMMAND...: the client in host mode is told so
is_told()
{
	local text=$1

	shift
	[ "$(at n2 host "$@" 2>&1)" = "$text" ]
}
# web_sees_client: by whichever address
web_sees_client()
{
	local seen

	seen=$(at n2 host wget -q -O - http://web.ax.internal:8080/ 2>&1)
	[ "$seen" = "$(addr n2 c-host)" ] || [ "$seen" = "$(addr6 n2 c-host)" ]
}
# addr_of APP: of the other machine
addr_of()
{
	ax_at n2 get apps -A | grep -w "$1" | grep -o '10\.80\.[0-9.]*' | head -n 1
}

addr6_of()
{
	ax_at n2 get apps -A -o wide | grep -w "$1" | grep -o 'fd61:80:[0-9a-f:]*' | head -n 1
}
addr6()
{
	ax_at "$1" get apps -o json "$2" | sed -n 's/.*"ip6": *"\([0-9a-f:]*\)".*/\1/p' | head -n 1
}

# asked ROUTES MODE SERVER: by TCP, and (where the way has it) by UDP
asked()
{
	local from to

	from=$(addr6 n2 "c-$2")
	to=$(addr6_of "tcp-$3")
	like "$1: TCP by IPv6 from a $2 app to a $3 one: both see real addresses" \
		"^tcp-$3 peer=$from local=$to asked=$to$" at n2 "$2" peer get "$to" 7000

	from=$(addr n2 "c-$2")
	to=$(addr_of "tcp-$3")
	like "$1: TCP from a $2 app to a $3 one: both see real addresses" \
		"^tcp-$3 peer=$from local=$to asked=$to$" at n2 "$2" peer get "$to" 7000
	[ "$1" != translate ] || return 0
	to=$(addr_of "udp-$3")
	like "$1: and by UDP" "^udp-$3 hello peer=$from from=$to$" at n2 "$2" peer udp "$to" 7001 hello
}

ask_all()
{
	local mode to

	tap "$1: the other machine's apps are known" within 300 knows n2 tcp-private tcp-host udp-private udp-host web store
	# (by translation the nodes have to agree on a key as well)
	tap "$1: one of them is reached" within 300 at n2 host peer get "$(addr_of tcp-host)" 7000
	for mode in private host; do
		for to in private host; do
			asked "$1" $mode $to
		done
	done
	tap "$1: nginx answers by its name, and sees who asks" within 120 web_sees_client
	tap "$1: redis does" within 120 is_told OK redis-cli -h store.ax.internal set "key-$1" value
	tap "$1: and remembers it" is_told value redis-cli -h store.ax.internal get "key-$1"
	[ "$1" = translate ] || return 0
	for mode in private host; do
		like "translate: UDP of a $mode app is told that it needs another way" "Protocol not supported" \
			at n2 $mode peer udp "$(addr_of udp-host)" 7001 hello
	done
}

ip addr add "10.99.0.${me#n}/24" dev eth0
ip addr add "fd99::${me#n}/64" dev eth0
ip link set eth0 up
if [ "$me" = n1 ]; then
	etcd --data-dir /tmp/etcd --listen-client-urls $etcd_url --advertise-client-urls $etcd_url \
		--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
		--initial-cluster default=http://127.0.0.1:2380 --log-level error >/tmp/etcd.log 2>&1 </dev/null &
	etcd=$!
fi
has_etcd()
{
	wget -q -O - "$etcd_url/health" | grep -q true
}
tap "etcd is reached" within 120 has_etcd

for routes in direct wireguard translate; do
	way $routes
	if [ "$me" = n1 ]; then
		[ -n "$pids" ] || servers
		tap "$routes: the other machine has asked" within 600 is_put "asked-$routes"
	else
		[ -n "$pids" ] || clients
		ask_all $routes
		put "asked-$routes"
	fi
done

eval "kill \$agent_$me"
eval "wait \$agent_$me"
tap "ax agent --flush" ax_at "$me" agent --flush
put "end-$me"
# (etcd is the first one's)
[ "$me" = n2 ] || within 60 is_put end-n2
# shellcheck disable=SC2086 # a list
wait $pids
if [ "$me" = n1 ]; then
	kill "$etcd"
	wait "$etcd"
fi
[ "$failures" = 0 ] || tail -n 30 "/tmp/$me.log"
done_testing
