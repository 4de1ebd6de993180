#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# nginx, in private and host mode, by address, name and service; two of them on port 80 of one host.
. "$(dirname "$0")/lib.sh"
need nginx curl

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  websvc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["8080:80"]
    backends: [web]
EOF

# web_conf NAME: prints the path of a config that answers "NAME you=.. me=.."
web_conf() {
	mkdir -p "$T/nginx.$1/html"
	nginx_conf "$1" 2 "sendfile on;
		server {
			listen 80;
			listen [::]:80;
			location / { return 200 \"$1 you=\$remote_addr me=\$server_addr\\n\"; }
			location /file { root $T/nginx.$1/html; }
		}"
}

URLS=(http://10.77.1.1/ "http://[fd77::1:1]/" http://web/ http://web.ax.internal/
	http://10.77.200.1:8080/ "http://[fd77::200:1]:8080/" http://websvc:8080/)
conf=$(web_conf web)
head -c 8000000 /dev/urandom >"$T/nginx.web/html/file"
sum=$(md5sum <"$T/nginx.web/html/file")

for mode in private host; do
	serve 80 --net $mode --ip 10.77.1.1,fd77::1:1 --name web -- nginx -c "$conf"
	pid=$APP
	curl_matrix "nginx in $mode mode" "web you=" "${URLS[@]}"
	is "nginx in $mode mode sees its client's address and its own" \
		"$(in_app --ip 10.77.1.9 -- curl -s --max-time 20 http://10.77.1.1/)" \
		"web you=10.77.1.9 me=10.77.1.1"
	is "nginx in $mode mode by service sees the client's address and its own" \
		"$(in_app --ip 10.77.1.9,fd77::1:9 -- curl -gs --max-time 20 "http://[fd77::200:1]:8080/")" \
		"web you=fd77::1:9 me=fd77::1:1"
	for client in private host; do
		is "a file of 8 MB by sendfile, nginx in $mode, client in $client mode" \
			"$(in_app --net $client -- curl -s --max-time 20 http://websvc:8080/file | md5sum)" \
			"$sum"
	done
	is "a program outside ax reaches nginx in $mode mode" \
		"$(curl -s --max-time 20 -o /dev/null -w '%{http_code}' http://10.77.1.1/)" 200
	stop_app $pid
	leftovers "nginx in $mode mode leaves nothing"
done

serve 80 --net host --ip 10.77.1.1,fd77::1:1 --name web -- nginx -c "$conf"
serve 80 --net host --ip 10.77.1.2,fd77::1:2 --name web2 -- nginx -c "$(web_conf web2)"
out=$(in_app --net host -- sh -c "$CURL_ALL" sh http://web/ http://web2/ http://10.77.1.1/ \
	http://10.77.1.2/ "http://[fd77::1:1]/" "http://[fd77::1:2]/" 2>&1)
check_urls "two nginx on port 80 of one host:" "$out" " web you" http://web/ http://10.77.1.1/ \
	"http://[fd77::1:1]/"
check_urls "two nginx on port 80 of one host:" "$out" " web2 you" http://web2/ \
	http://10.77.1.2/ "http://[fd77::1:2]/"
is "each of them is a server in ax get servers" \
	"$(ax get servers -o json | jq -r '.[] | select(.port == 80 and .proto == "tcp") |
		.app + " " + .address' | sort | tr '\n' ',')" \
	"web 10.77.1.1,web fd77::1:1,web2 10.77.1.2,web2 fd77::1:2,"
done_testing
