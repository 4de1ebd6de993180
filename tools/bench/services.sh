# SPDX-License-Identifier: GPL-2.0-or-later
# Services: what each strategy costs with one backend and with a thousand, a web server behind one, what
# many services, rules and lists of egress cost, and apps that the first connection starts. Sourced by
# run.sh.
#
# Backends are addresses of this machine, at all of which one program listens; all clients are apps in
# host mode. The agents with 1,000 rules and with 10,000 services have network namespaces of their own.

strategies=(random round-robin maglev least-connections)
service_cases=(svc.conn.direct)
for strategy in "${strategies[@]}"; do
	service_cases+=("svc.conn.$strategy.1" "svc.conn.$strategy.1000")
done
service_cases+=(svc.rules.none svc.rules.1000 svc.egress.all svc.egress.list svc.time.10 svc.time.10000 svc.change
	svc.web.direct svc.web.service svc.web.haproxy svc.web.nat svc.start.hand svc.start.connect)

svc_ax=("$ax" --instance "$service_agent")
svc_run=("${svc_ax[@]}" run --net host --name client --ip 10.66.6.9 --egress --)
svc_client=("${svc_run[@]}" "${on_cpu[@]}")
ruled_client=("$ax" --instance "$ruled" run --net host --name client --ip 10.66.6.9 --egress -- "${on_cpu[@]}")
many_client=("$ax" --instance "$crowd" run --net host --name client --ip 10.66.6.9 --egress -- "${on_cpu[@]}")
# a hundred prefixes and ports, of which the last is the one that is used
egress_list=$(seq -f '198.18.%g.0/24:443,' 99 | tr -d '\n')10.99.0.0/16:7101
listed_client=("${svc_ax[@]}" run --net host --name listed --ip 10.66.6.8 "--egress=$egress_list" -- "${on_cpu[@]}")

service_config() { # HOW MANY, or rules
	awk -v what="$1" -v server="$(realpath "$bench")" -f "$here/services.awk"
}
backends_up() { # [PROGRAM...]: what all backends are, in the network namespace of the program
	"$@" ip route add local 10.99.0.0/16 dev lo
	"$@" ip route add local 10.128.0.0/10 dev lo
}

services_up() {
	backends_up
	start_server svc-close "${on_cpu[@]}" server close 7101
	web_up
	[ -n "$ax" ] || return 0
	agents+=("$service_agent" "$ruled" "$crowd")
	service_config 10 >"$tmp/services.yaml"
	start_agent "$service_agent" "$tmp/services.yaml"
	start_server svc-app "${svc_ax[@]}" run --net host --name server --ip 10.66.6.1 -- "${on_cpu[@]}" server close 7001
	start svc-nginx "${svc_ax[@]}" run --net host --name nginx --ip 10.66.6.2 -- \
		taskset -c "$cpu_b" nginx -p "$tmp/" -c "$tmp/nginx-app.conf"
	wait_for 10 "nginx's answer" "${svc_client[@]}" -t 1 connect-rate 10.66.6.2 7080
	ruled_up
	[ -n "$QUICK" ] || many_up
}

ruled_up() {
	netns_add ruled
	agents+=("$ruled")
	service_config rules >"$tmp/rules.yaml"
	start_agent "$ruled" "$tmp/rules.yaml" nsenter --net=/run/netns/ruled
	start_server_in ruled ruled-app "$ax" --instance "$ruled" run --net host --name server --ip 10.66.6.1 -- \
		"${on_cpu[@]}" server close 7001
}

many_up() {
	local begin
	netns_add many
	agents+=("$crowd")
	backends_up in_netns many
	service_config 10 >"$tmp/many.yaml"
	start_agent "$crowd" "$tmp/many.yaml" nsenter --net=/run/netns/many
	start_server_in many many-close "${on_cpu[@]}" server close 7101
	service_config 10000 >"$tmp/many.yaml"
	begin=$(now_us)
	axi "$crowd" config apply "$tmp/many.yaml" >"$tmp/many.out" 2>"$tmp/many.err" ||
		die "config apply failed: $(tail -n 1 "$tmp/many.err")"
	round=1
	record svc.load "$(awk -v us=$(($(now_us) - begin)) 'BEGIN {printf "%.3f", us / 1e6}')"
	axi "$crowd" service add changing --ip 10.66.6.3 --port 80:7101 --backend address:10.99.0.1-10.99.0.100 \
		>/dev/null 2>"$tmp/many.err" || die "service add failed: $(tail -n 1 "$tmp/many.err")"
}

# nginx as an app, as the server of haproxy, and behind DNAT: of this machine's own connections, since the
# app's clients are here too.
web_up() {
	nginx_config app 7080
	nginx_config proxied 127.0.0.1:7081
	nginx_config nat 10.79.0.2:7080
	start nginx-proxied taskset -c "$cpu_b" nginx -p "$tmp/" -c "$tmp/nginx-proxied.conf"
	haproxy_config 7082 7081
	start haproxy-web haproxy -db -q -f "$tmp/haproxy-7082.cfg"
	netns_add natweb
	in_netns natweb ip addr add 10.79.0.1/32 dev lo
	in_netns natweb ip addr add 10.79.0.2/32 dev lo
	printf '%s\n' 'table ip nat { chain output { type nat hook output priority -100;' \
		'ip daddr 10.79.0.1 tcp dport 80 dnat to 10.79.0.2:7080' '}' '}' | in_netns natweb nft -f -
	start nginx-nat nsenter --net=/run/netns/natweb taskset -c "$cpu_b" nginx -p "$tmp/" -c "$tmp/nginx-nat.conf"
	wait_for 10 "the proxied nginx's answer" "$bench" -t 1 connect-rate 127.0.0.1 7082
	wait_for 10 "the answer of nginx behind DNAT" in_netns natweb "$bench" -t 1 connect-rate 10.79.0.1 80
}
nginx_config() { # NAME [ADDRESS:]PORT
	cat >"$tmp/nginx-$1.conf" <<-CONFIG
		daemon off;
		worker_processes 1;
		pid $tmp/nginx-$1.pid;
		error_log stderr;
		events { worker_connections 1024; }
		http {
			access_log off;
			client_body_temp_path $tmp/nginx-$1-body;
			keepalive_requests 1000000000;
			lingering_close off;
			server {
				listen $2;
				location / { return 200 "$(printf '%0512d' 0)"; }
			}
		}
	CONFIG
}

measure_web() { # CASE URL [PROGRAM...]: requests a second, and their p99 as CASE.p99
	local name=$1 url=$2 out
	shift 2
	out=$("$@" taskset -c "$cpu" wrk -t 1 -c 32 -d "$(((MILLISECONDS + 999) / 1000))s" --latency "$url" 2>"$tmp/$name.err") ||
		die "measuring $name failed: $(tail -n 3 "$tmp/$name.err" | tr '\n' ' ')"
	grep -q 'Requests/sec' <<<"$out" || die "wrk said nothing of $name"
	! grep -q 'Non-2xx\|Socket errors' <<<"$out" || die "wrk had errors with $name: $out"
	record "$name" "$(awk '/^Requests\/sec/ {print $2}' <<<"$out")"
	record "$name.p99" "$(awk '$1 == "99%" {
		f = $2 ~ /us$/ ? 1e3 : $2 ~ /ms$/ ? 1e6 : 1e9
		printf "%.0f", $2 * f
	}' <<<"$out")"
}

now_us() {
	echo "${EPOCHREALTIME/[.,]/}"
}

# The whole command; the list of a hundred backends is written anew.
measure_change() {
	local i begin times=()
	for i in 1 2 3 4 5 6 7; do
		begin=$(now_us)
		axi "$crowd" service set changing --backend "address:10.99.$i.1-10.99.$i.100" >/dev/null 2>"$tmp/change.err" ||
			die "service set failed: $(tail -n 1 "$tmp/change.err")"
		times+=($((($(now_us) - begin) * 1000)))
	done
	record svc.change "$(middle "${times[@]}")"
}
middle() { # of an odd number
	printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"
}

# From connect(), or from the start of the command, to the first bytes of the answer.
measure_start() { # CASE
	local i line times=()
	for i in 1 2 3 4 5; do
		if [ "$1" = svc.start.connect ]; then
			line=$("${svc_ax[@]}" run --net host --name client -- "$bench" first-byte 10.66.6.4 7001 2>"$tmp/$1.err")
			axi "$service_agent" stop lazy >/dev/null
		else
			line=$("${svc_ax[@]}" run --net host --name client -- "$bench" first-byte 10.66.6.5 7001 \
				"${svc_ax[@]}" run --net host --name eager --ip 10.66.6.5 -- \
				"$bench" server echo 7001 2>"$tmp/$1.err")
		fi
		times+=("$(sed -n 's/.*"value":\([0-9]*\).*/\1/p' <<<"$line")")
		[ -n "${times[-1]}" ] || die "measuring $1 failed: $(tail -n 3 "$tmp/$1.err" | tr '\n' ' ')"
	done
	record "$1" "$(middle "${times[@]}")"
}
# What the start by a connection takes longer, in each round.
starts_compared() {
	awk '$1 == "svc.start.hand" {hand[$2] = $3}
		$1 == "svc.start.connect" {connect[$2] = $3}
		END {for (r in hand) print "svc.start.more", r, (connect[r] > hand[r] ? connect[r] - hand[r] : 0)}' \
		"$tmp/raw" >"$tmp/more"
	cat "$tmp/more" >>"$tmp/raw"
}

measure_services() { # CASE
	local strategy=${1#svc.conn.}
	case $1 in
	svc.conn.direct) measure "$1" "${svc_client[@]}" connect-rate 10.99.0.1 7101 ;;
	svc.conn.*.1) measure "$1" "${svc_client[@]}" connect-rate "$(service_ip 6 "${strategy%.*}")" 80 ;;
	svc.conn.*) measure "$1" "${svc_client[@]}" connect-rate "$(service_ip 7 "${strategy%.*}")" 80 ;;
	svc.rules.none) measure "$1" "${svc_client[@]}" connect-rate 10.66.6.1 7001 ;;
	svc.rules.1000) measure "$1" in_netns ruled "${ruled_client[@]}" connect-rate 10.66.6.1 7001 ;;
	svc.egress.all) measure "$1" "${svc_client[@]}" connect-rate 10.99.0.1 7101 ;;
	svc.egress.list) measure "$1" "${listed_client[@]}" connect-rate 10.99.0.1 7101 ;;
	svc.time.10) measure "$1" "${svc_client[@]}" connect-time 10.80.0.6 80 ;;
	svc.time.10000) measure "$1" in_netns many "${many_client[@]}" connect-time 10.80.0.6 80 ;;
	svc.change) measure_change ;;
	svc.web.direct) measure_web "$1" http://10.66.6.2:7080/ "${svc_run[@]}" ;;
	svc.web.service) measure_web "$1" http://10.66.6.20/ "${svc_run[@]}" ;;
	svc.web.haproxy) measure_web "$1" http://127.0.0.1:7082/ ;;
	svc.web.nat) measure_web "$1" http://10.79.0.1/ in_netns natweb ;;
	svc.start.*) measure_start "$1" ;;
	esac
}
service_ip() { # THIRD_BYTE STRATEGY
	local i
	for i in "${!strategies[@]}"; do
		[ "${strategies[i]}" != "$2" ] || echo "10.66.$1.$((i + 10))"
	done
}

service_rows() {
	local strategy n
	for strategy in "${strategies[@]}"; do
		for n in 1 1000; do
			row "connect+accept+close, $strategy, backends: $n" 1/s "svc.conn.$strategy.$n" direct svc.conn.direct '>=' 0.92
		done
	done
	row 'requests to nginx, service' 1/s svc.web.service direct svc.web.direct '>=' 0.97
	row 'requests to nginx, service' 1/s svc.web.service 'haproxy, TCP mode' svc.web.haproxy '>=' 1.8
	row 'requests to nginx, service' 1/s svc.web.service 'nftables DNAT' svc.web.nat '>=' 1.05
	row 'requests to nginx p99, service' ns svc.web.service.p99 direct svc.web.direct.p99 '<=' 1.03
	row 'requests to nginx p99, service' ns svc.web.service.p99 'haproxy, TCP mode' svc.web.haproxy.p99 '<=' 0.56
	row 'requests to nginx p99, service' ns svc.web.service.p99 'nftables DNAT' svc.web.nat.p99 '<=' 0.95
	row 'connect+accept+close, 1000 rules' 1/s svc.rules.1000 'no rules' svc.rules.none '>=' 0.95
	row 'connect+accept+close, egress by a list of 100' 1/s svc.egress.list 'egress to all' svc.egress.all '>=' 0.95
	row 'connect time to a service, 10000 with 100 backends' ns svc.time.10000 'with 10' svc.time.10 '<=' 1.1
	row 'config apply, 10000 services with 100 backends' s svc.load '' '' '<=' 3
	row 'one service of them changed (the whole command)' ns svc.change '' '' '<=' 5000000
	row 'first byte of an app that the connection starts' ns svc.start.connect 'started by hand' svc.start.hand
	row 'so much later than by hand' ns svc.start.more '' '' '<=' 10000000
}
