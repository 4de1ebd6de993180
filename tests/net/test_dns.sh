#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# quick
# Names: every record type over UDP and TCP with dig, glibc's resolver, search domain, forwarding;
# from private and from host-mode apps.
. "$(dirname "$0")/lib.sh"
need dig curl getent python3

# an upstream of the test's own, on the private host's loopback
UPSTREAM=127.0.0.53
bg "$T/upstream.out" "$PYTHON" "$SRC/upstream.py" $UPSTREAM 5300 "$T/upstream.log"
wait_for "grep -q ready $T/upstream.out"

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
  dns:
    domain: ax.internal
    upstreams: [$UPSTREAM:5300]
apps:
  later:
    ip: 10.77.3.1,fd77::3:1
  lonely:
    ip: 10.77.3.2
services:
  api:
    ip: 10.77.200.1,fd77::200:1
    ports: ["80:8000", "53:5353/udp"]
    backends: [web]
  four:
    ip: 10.77.200.4
    ports: [80]
    backends: [web]
EOF

mkdir "$T/www"
echo "web's page" >"$T/www/index.html"
serve 80 --ip 10.77.1.1,fd77::1:1 --name web -- "$PYTHON" -m http.server --bind :: \
	--directory "$T/www" 80

# dig_in MODE ARGS...: MODE is private, egress (private as well) or host
dig_in() {
	local mode=(--net "$1")
	[ "$1" != egress ] || mode=(--egress)
	shift
	in_app "${mode[@]}" -- dig +tries=1 +time=20 "$@" 2>&1
}

# answer MODE ARGS...: status, flags that matter, and the records' data
answer() {
	dig_in "$@" | awk '
		/^;; ->>HEADER/ { sub(/,/, "", $6); status = $6 }
		/^;; flags:/ { flags = ($0 ~ / aa[ ;]/ ? " aa" : "") ($0 ~ / tc[ ;]/ ? " tc" : "") }
		/^;; ANSWER SECTION/ { answer = 1; next }
		/^$/ || /^;; [A-Z]+ SECTION/ { answer = 0 }
		answer { data = $4; for (i = 5; i <= NF; i++) data = data " " $i; records[++n] = data }
		/timed out|refused|no servers/ { status = "no answer" }
		END {
			printf "%s%s", status, flags
			asort_n(records, n)
			for (i = 1; i <= n; i++) printf " | %s", records[i]
		}
		function asort_n(a, n,  i, j, t) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && a[j] < a[j - 1]; j--) {
					t = a[j]; a[j] = a[j - 1]; a[j - 1] = t
				}
		}'
}

for mode in private host; do
	is "$mode: A of an app" "$(answer $mode web.ax.internal A)" "NOERROR aa | A 10.77.1.1"
	is "$mode: AAAA of an app" "$(answer $mode web.ax.internal AAAA)" "NOERROR aa | AAAA fd77::1:1"
	is "$mode: A over TCP" "$(answer $mode +tcp web.ax.internal A)" "NOERROR aa | A 10.77.1.1"
	is "$mode: AAAA over TCP" "$(answer $mode +tcp web.ax.internal AAAA)" \
		"NOERROR aa | AAAA fd77::1:1"
	is "$mode: without EDNS" "$(answer $mode +noedns web.ax.internal A)" "NOERROR aa | A 10.77.1.1"
	is "$mode: a service" "$(answer $mode api.ax.internal A)" "NOERROR aa | A 10.77.200.1"
	is "$mode: a declared app that has not been started" "$(answer $mode later.ax.internal AAAA)" \
		"NOERROR aa | AAAA fd77::3:1"
	is "$mode: a single label" "$(answer $mode web A)" "NOERROR aa | A 10.77.1.1"
	is "$mode: names are case-insensitive" "$(answer $mode WEB.Ax.InterNal A)" \
		"NOERROR aa | A 10.77.1.1"
	like "$mode: the question comes back as it was asked" "$(dig_in $mode WEB.Ax.InterNal A)" \
		";WEB.Ax.InterNal."
	is "$mode: a name without that type is NOERROR and empty" \
		"$(answer $mode four.ax.internal AAAA)" "NOERROR aa"
	is "$mode: a declared name without that type as well" \
		"$(answer $mode lonely.ax.internal AAAA)" "NOERROR aa"
	is "$mode: MX of a known name is NOERROR and empty" "$(answer $mode web.ax.internal MX)" \
		"NOERROR aa"
	is "$mode: TXT of a known name is NOERROR and empty, over TCP" \
		"$(answer $mode +tcp web.ax.internal TXT)" "NOERROR aa"
	is "$mode: an unknown name is NXDOMAIN" "$(answer $mode nobody.ax.internal A)" "NXDOMAIN aa"
	is "$mode: an unknown name is NXDOMAIN for AAAA too" \
		"$(answer $mode nobody.ax.internal AAAA)" "NXDOMAIN aa"
	is "$mode: PTR of an app" "$(answer $mode -x 10.77.1.1)" "NOERROR aa | PTR web.ax.internal."
	is "$mode: PTR of an app's IPv6 address" "$(answer $mode -x fd77::1:1)" \
		"NOERROR aa | PTR web.ax.internal."
	is "$mode: PTR of a service" "$(answer $mode -x 10.77.200.1)" "NOERROR aa | PTR api.ax.internal."
	is "$mode: PTR of an unused address of the pool is NXDOMAIN" "$(answer $mode -x 10.77.9.9)" \
		"NXDOMAIN aa"
	out=$mode
	[ $mode = host ] || out=egress # see test_dns_askers.sh
	is "$mode: a foreign name is forwarded" "$(answer $out www.example.test A)" \
		"NOERROR | A 192.0.2.77"
	is "$mode: a foreign name is forwarded over TCP" "$(answer $out +tcp www.example.test A)" \
		"NOERROR | A 192.0.2.77"
	is "$mode: a foreign name that does not exist" "$(answer $mode www.nowhere.test A)" "NXDOMAIN"
	is "$mode: a long answer is cut with TC" "$(answer $out +ignore big.example.test A)" "NOERROR tc"
	is "$mode: and arrives over TCP" \
		"$(dig_in $out +short big.example.test A | grep -c '^192\.0\.2\.')" 100

	is "$mode: getent ahostsv4" "$(in_app --net $mode -- getent ahostsv4 web | awk '{ print $1 }' |
		sort -u)" 10.77.1.1
	is "$mode: getent ahostsv6" \
		"$(in_app --net $mode -- getent ahostsv6 web.ax.internal | awk '{ print $1 }' | sort -u)" \
		fd77::1:1
	is "$mode: getent ahosts" "$(in_app --net $mode -- getent ahosts api | awk '{ print $1 }' |
		sort -u | tr '\n' ' ')" "10.77.200.1 fd77::200:1 "
	is "$mode: getent hosts by address" "$(in_app --net $mode -- getent hosts 10.77.1.1 |
		awk '{ print $2 }')" web.ax.internal
	fails "$mode: getent says no for a name that does not exist" \
		in_app --net $mode -- getent hosts nobody.ax.internal
	is "$mode: curl by the single label" "$(in_app --net $mode -- curl -s --max-time 20 http://web/)" \
		"web's page"
	is "$mode: a nameserver of the app's own choice is the agent too" \
		"$(answer $mode @192.0.2.99 web.ax.internal A)" "NOERROR aa | A 10.77.1.1"
	like "$mode: and its answer comes from the address that was asked" \
		"$(dig_in $mode @192.0.2.99 web.ax.internal A)" "SERVER: 192.0.2.99#53"
	like "$mode: over TCP as well" \
		"$(dig_in $mode +tcp @192.0.2.99 web.ax.internal A)" "SERVER: 192.0.2.99#53.*TCP"
done

like "SRV has the port, and its target's address beside it" \
	"$(dig_in private _80._tcp.api.ax.internal SRV)" \
	"SRV[[:space:]]+[0-9]+ [0-9]+ 80 api.ax.internal.*api.ax.internal.*A[[:space:]]+10.77.200.1"
is "SRV of a port that the service does not have is empty" \
	"$(answer private _81._tcp.api.ax.internal SRV)" "NOERROR aa"
is "SRV of the UDP port" "$(answer private _53._udp.api.ax.internal SRV)" \
	"NOERROR aa | SRV 0 0 53 api.ax.internal."

like "private apps have a resolv.conf with the search domain" \
	"$(in_app -- cat /etc/resolv.conf)" "search.*ax.internal"
like "and low ndots" "$(in_app -- cat /etc/resolv.conf)" "ndots:[01]"
unlike "the host's resolv.conf is left alone" "$(cat /etc/resolv.conf)" "ax.internal"

is "the upstream was asked over both protocols, and for foreign names only" \
	"$(awk '{ print $1 }' "$T/upstream.log" | sort -u | tr '\n' ' ')$(grep -ci 'ax.internal\| web ' \
		"$T/upstream.log")" "tcp udp 0"

end "${BACKGROUND[0]}"
is "without an upstream a foreign name is SERVFAIL" "$(answer egress www.example.test A)" "SERVFAIL"
is "and our own names go on" "$(answer private web.ax.internal A)" "NOERROR aa | A 10.77.1.1"
done_testing
