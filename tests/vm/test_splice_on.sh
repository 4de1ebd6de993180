# SPDX-License-Identifier: GPL-2.0-or-later
# splice: on as users say it, on a kernel that nothing is pretended of. Where FIONREAD is right for
# members, talk and nginx as a proxy of more than its buffers at once, which asks FIONREAD, are spliced,
# and every byte is right; elsewhere connections say why not.
. "${0%/*}/lib.sh"
axo() # not for what is to be ended by its id: an instance of its own: whatever others left
{
	ax --instance on "$@"
}

cat >/tmp/on.yaml <<'YAML'
agent:
  pool: {ipv4: 10.99.0.0/16}
  splice: on
YAML
cat >/tmp/nginx.conf <<'CONF'
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
user root root;
pid /tmp/nginx.pid;
error_log /tmp/nginx.log;
daemon off;
events { worker_connections 64; }
stream { server { listen 10.99.1.2:7001; proxy_pass 10.99.1.1:7000; } }
CONF

count() # NAME: of the programs' counters
{
	axo status -o json | sed 's/[,{}]/\n/g' | sed -n "s/^ *\"splice_$1\": *\([0-9]*\).*/\1/p" | grep . || echo 0
}
has() # NAME N
{
	[ "$(count "$1")" -ge "$2" ]
}
runs() # NAME IP PORT, in hexadecimal, COMMAND...: until it listens
{
	local name=$1 ip=$2 at=$3

	shift 3
	ax --instance on run --net host --ip "$ip" --name "$name" -- "$@" >"/tmp/$name" 2>&1 </dev/null &
	eventually 60 grep -q " $at 00000000:0000 0A " /proc/net/tcp
}
# Two connections to what listens there: they go on until /tmp/go is there.
talks() # IP PORT
{
	rm -f /tmp/go
	ax --instance on run --net host --name client -- talk client 4 "$1" "$2" -n 2 -k 50 -W /tmp/go \
		-s 3000000 -p -i 60000 >/tmp/client 2>&1 </dev/null &
	client=$!
}
ends()
{
	! kill -0 "$client" 2>/dev/null
}
not_spliced() # WHY
{
	axo get conns -o wide >/tmp/conns && cat /tmp/conns && grep -q "$1" /tmp/conns
}
gate_is_done()
{
	[ -s /run/ax/on/splice-gate ] || [ -n "$why" ]
}

ax --instance on agent --config /tmp/on.yaml >/tmp/agent.log 2>&1 </dev/null &
agent=$!
tap "the agent starts" eventually 60 axo status
tap "a server" runs server 10.99.1.1 0101630A:1B58 talk server 4 10.99.1.1 7000
why=
axo doctor | grep -q '^splice_join  *on' || why="kernel too old"
tap "the kernel is tried" eventually 120 gate_is_done
grep -qs '	FIONREAD	' /run/ax/on/splice-gate && why="FIONREAD is wrong here"
if [ -n "$why" ]; then
	talks 10.99.1.1 7000
	tap "on: a connection is not spliced: $why" eventually 60 not_spliced "$why"
	tap "none has joined" [ "$(count joined)" = 0 ]
else
	talks 10.99.1.1 7000
	tap "on: connections are spliced" eventually 60 has joined 4
	tap "messages are redirected" eventually 60 has redirected 20
fi
touch /tmp/go
tap "they end" eventually 120 ends
like "every byte is where it should be" "^good 2$" cat /tmp/client
tap "nginx as a proxy" runs proxy 10.99.1.2 0201630A:1B59 nginx -e /tmp/nginx.log -c /tmp/nginx.conf
before=$(count joined)
talks 10.99.1.2 7001
[ -n "$why" ] || tap "connections through nginx are spliced on both sides" eventually 60 has joined $((before + 8))
before=$(count redirected)
touch /tmp/go
tap "connections through nginx end" eventually 120 ends
like "every byte through nginx is where it should be" "^good 2$" cat /tmp/client
[ -n "$why" ] || tap "messages through nginx were redirected" has redirected $((before + 20))
like "the server saw nothing odd" "^0$" grep -vc ready /tmp/server
axo stop proxy server >/dev/null 2>&1
kill "$agent"
wait "$agent"
tap "nothing is left" axo agent --flush
done_testing
