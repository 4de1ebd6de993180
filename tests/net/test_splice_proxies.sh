#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Proxies between ends that are spliced: HAProxy, which takes splice(2) or could, and a static Go program,
# whose io.Copy does, are left to TCP; nginx, as a proxy of bytes and of requests, is spliced at
# both of its sides or at one of them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/splice.sh"
need jq bpftool haproxy nginx curl go
build_c talk
build_go relay

BYTES=50000000
[ -z "${AX_TEST_QUICK:-}" ] || BYTES=5000000
splice_agent </dev/null

serve 7000 --ip 10.77.1.1 --name talk -- "$BIN/talk" server 4 0.0.0.0 7000
TALK_OUT=$OUT
# an end that is not to be spliced whatever the agent says
off=()
[ "$SPLICE" = off ] || off=(--splice off)
serve 7000 --ip 10.77.1.2 "${off[@]}" --name plain -- "$BIN/talk" server 4 0.0.0.0 7000
PLAIN_OUT=$OUT

# through WHAT ADDRESS PORT MODE BYTES: five connections through a proxy
through() {
	talk "$1, client in $4 mode" --net "$4" -- 4 "$2" "$3" -n 5 -w $JOIN_MS -k 500 -s "$5" -p
}

# --- refused ---

# refused WHAT ADDRESS PORT: it is told why connections through it are not spliced
refused() {
	[ "$SPLICE" != off ] || return 0
	run_app -- "$BIN/talk" client 4 "$2" "$3" -w 2500 -k 20
	ok "$1: ax get conns says why its connections are not spliced" \
		wait_for "ax get conns -o wide | grep -i 'splice(2)'"
	wait_for "! alive $APP"
	stop_app "$APP"
}

for splice in 'option splice-auto' 'option splice-request' ''; do
	name=hap${splice##*-}
	cat >"$T/$name.cfg" <<-EOF
		global
			maxconn 100
		defaults
			mode tcp
			timeout connect 5s
			timeout client 60s
			timeout server 60s
			$splice
		listen relay
			bind 0.0.0.0:7001
			server one 10.77.1.1:7000
	EOF
	serve 7001 --ip 10.77.2.1 --name "$name" -- haproxy -db -q -f "$T/$name.cfg"
	pid=$APP
	splice_mark
	through "HAProxy with '$splice'" 10.77.2.1 7001 private $BYTES
	not_spliced "HAProxy with '$splice'"
	[ -n "$splice" ] || refused HAProxy 10.77.2.1 7001
	stop_app "$pid"
done

for mode in private host; do
	serve 7001 --net $mode --ip 10.77.2.2 --name relay -- "$BIN/relay" 0.0.0.0:7001 10.77.1.1:7000
	pid=$APP out=$OUT
	splice_mark
	through "a static Go proxy in $mode mode" 10.77.2.2 7001 $mode $BYTES
	not_spliced "a static Go proxy in $mode mode"
	[ $mode = host ] || refused "a static Go proxy" 10.77.2.2 7001
	is "the Go proxy in $mode mode met no error" "$(cat "$out")" ""
	stop_app "$pid"
done

# --- nginx ---

mkdir -m 777 "$T/nginx"
mkdir -m 755 "$T/nginx/html"
head -c 20000000 /dev/urandom >"$T/nginx/html/large"
head -c 3000 /dev/urandom >"$T/nginx/html/small"
module=$(find /usr/lib/nginx/modules -name ngx_stream_module.so)
# proxy_conf NAME BLOCKS: prints its path
proxy_conf() {
	cat >"$T/nginx/$1.conf" <<-EOF
		load_module $module;
		pid $T/nginx/$1.pid;
		error_log $T/nginx/$1.log;
		worker_processes 2;
		daemon off;
		events { worker_connections 256; }
		$2
	EOF
	echo "$T/nginx/$1.conf"
}
temporary="client_body_temp_path $T/nginx/body; proxy_temp_path $T/nginx/proxy; fastcgi_temp_path $T/nginx/fastcgi;
	uwsgi_temp_path $T/nginx/uwsgi; scgi_temp_path $T/nginx/scgi; access_log off; keepalive_requests 1000000;"
serve 80 --ip 10.77.1.3 --name web -- nginx -c "$(proxy_conf web "
	http { $temporary sendfile on; server { listen 80; root $T/nginx/html; } }")"

conf=$(proxy_conf relay "
	stream {
		server { listen 7001; proxy_pass 10.77.1.1:7000; }
		server { listen 7002; proxy_pass 10.77.1.2:7000; }
	}
	http {
		$temporary
		upstream web { server 10.77.1.3:80; keepalive 4; }
		server {
			listen 80;
			proxy_http_version 1.1;
			proxy_set_header Connection '';
			location / { proxy_pass http://web; }
			location /direct/ { proxy_pass http://web/; proxy_buffering off; }
		}
	}")
# What one keepalive connection gets: small ones, 500 a second, until it is spliced, then large ones.
SMALL=1000 LARGE=3
if fionread_is_right; then
	RELAYED=$BYTES
else
	RELAYED=0 LARGE=0
	skip "nginx as a proxy: more than a buffer full at once" "$NO_FIONREAD"
fi
urls() {
	for _ in $(seq 1 $SMALL); do
		echo "url=http://$1/$2small"
	done
	for _ in $(seq 1 $LARGE); do
		echo "url=http://$1/$2large"
	done
}
expected() {
	for _ in $(seq 1 $SMALL); do
		cat "$T/nginx/html/small"
	done
	for _ in $(seq 1 $LARGE); do
		cat "$T/nginx/html/large"
	done
}
SUM=$(expected | md5sum)
for mode in private host; do
	serve 7001 --net $mode --ip 10.77.2.3 --name nginx -- nginx -c "$conf"
	pid=$APP
	splice_mark
	JOINS=20 through "nginx in $mode mode as a proxy of bytes" 10.77.2.3 7001 $mode $RELAYED
	spliced "nginx in $mode mode as a proxy of bytes: both sides" 200 20
	splice_mark
	JOINS=10 through "nginx in $mode mode, its server off" 10.77.2.3 7002 $mode $RELAYED
	spliced "nginx in $mode mode, its server off: one side" 100 10
	[ "$SPLICE" = off ] || is "nginx in $mode mode, its server off: the other side is plain" \
		"$(($(joined) - MARK_JOINED))" 10
	for path in '' direct/; do
		urls 10.77.2.3 "$path" >"$T/urls"
		splice_mark
		is "nginx in $mode mode as a proxy of requests${path:+ without buffering}: all is right" \
			"$(TIME_LIMIT=60 in_app --net $mode -- curl -sS --rate 500/s --max-time 50 \
				-K "$T/urls" | md5sum)" "$SUM"
		spliced "nginx in $mode mode as a proxy of requests${path:+ without buffering}" 100 2
	done
	is "nginx in $mode mode met no error" "$(cat "$T/nginx/relay.log")" ""
	stop_app "$pid"
done

is "no server saw anything odd" "$(grep -hv '^ready' "$TALK_OUT" "$PLAIN_OUT")" ""
done_testing
