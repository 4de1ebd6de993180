#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 400
# agent.host-names: resolved, resolvconf: programs outside ax find apps and services by the host's resolver,
# which asks nobody else for them, and (resolved) the agent for nothing else.
. "$(dirname "$0")/lib.sh"
need python3 jq curl dig getent dbus-daemon
UNPACKED=${AX_CACHE:-/var/cache/ax}/unpacked
for package in systemd-resolved libsystemd-shared libnss-resolve resolvconf openresolv; do
	[ -d "$UNPACKED/$package" ] || skip_all "the package $package is not in $UNPACKED: make deps-test"
done

# /etc and where the agent looks for programs first are this mount namespace's own. Nothing below may
# be done to the machine's.
mkdir "$T/etc" "$T/sbin"
cp -a /etc/. "$T/etc/"
mount --bind "$T/etc" /etc
mount --bind "$T/sbin" /usr/local/sbin
touch "$T/etc/.own" "$T/sbin/.own"
if [ ! -e /etc/.own ] || [ ! -e /usr/local/sbin/.own ]; then
	skip_all "/etc cannot be this test's own"
fi
rm -f /etc/resolv.conf
echo "nameserver 192.0.2.9" >/etc/resolv.conf

# What the host asked before. It knows one name, and writes down what it is asked.
cat >"$T/outside.py" <<-'PYTHON'
	import socket
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	s.bind(("192.0.2.9", 53))
	print("bound", flush=True)
	while True:
	    q, peer = s.recvfrom(4096)
	    i, labels = 12, []
	    while q[i]:
	        labels.append(q[i + 1:i + 1 + q[i]].decode())
	        i += q[i] + 1
	    name, end = ".".join(labels).lower(), i + 5
	    print("asked", name, int.from_bytes(q[i + 1:i + 3], "big"), flush=True)
	    known = name == "outside.example"
	    address = known and q[i + 1:i + 3] == b"\0\1"
	    head = q[:2] + (b"\x85\x80" if known else b"\x85\x83") + b"\0\1" + (b"\0\1" if address else b"\0\0")
	    answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\xc0\0\2\7" if address else b""
	    s.sendto(head + b"\0\0\0\0" + q[12:end] + answer, peer)
PYTHON
ip addr add 192.0.2.9/32 dev lo
bg "$T/outside" "$PYTHON" "$T/outside.py"
wait_for 'grep -q bound $T/outside'

config() { # MODE
	cat <<-YAML
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host-names: $1
		services:
		  shop:
		    ip: 10.77.200.1
		    ports: ["80"]
		    backends: [web]
	YAML
}
apply() { # MODE
	config "$1" >"$T/$INST.yaml"
	ax config apply "$T/$INST.yaml" 2>&1
}
name_of() { # NAME ip4|ip6
	ax get names -o json | jq -r --arg n "$1" ".[] | select(.name == \$n) | .$2"
}
first_address() {
	getent ahostsv4 "$1" | awk '{ print $1; exit }'
}

# --- what is not there ---

config bind >"$T/bad.yaml"
like "what is no word is refused, with those that are" "$(ax config check "$T/bad.yaml" 2>&1)" \
	"off, hosts, resolved or resolvconf"
agent_start - < <(config off)
if ! command -v resolvectl >/dev/null; then
	like "resolved without its program: says what to install" "$(apply resolved)" \
		"needs the program resolvectl.*install systemd-resolved"
fi
if ! command -v resolvconf >/dev/null; then
	like "resolvconf without its program: says what to install" "$(apply resolvconf)" \
		"needs the program resolvconf.*install resolvconf"
fi
echo hello >"$T/index.html"
serve 80 --name web -- "$PYTHON" -m http.server --directory "$T" 80
web6=$(name_of web ip6)

# --- systemd-resolved ---

lib=$(dirname "$(find "$UNPACKED/libsystemd-shared" -name 'libsystemd-shared-*.so')")
resolvectl=$(find "$UNPACKED/systemd-resolved" -name resolvectl -type f -path '*/bin/*')
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$lib" "$resolvectl" >"$T/sbin/resolvectl"
chmod 755 "$T/sbin/resolvectl"
PATH=$T/sbin:$PATH
if ! getent passwd systemd-resolve >/dev/null; then
	echo 'systemd-resolve:x:987:987::/:/usr/sbin/nologin' >>/etc/passwd
	echo 'systemd-resolve:x:987:' >>/etc/group
fi
cat >"$T/bus.conf" <<-'XML'
	<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
	 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
	<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
	<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/>
	<allow send_destination="*"/><allow receive_type="method_call"/><allow eavesdrop="false"/></policy></busconfig>
XML
mkdir -p /run/dbus /run/systemd/resolve /etc/systemd
chown systemd-resolve: /run/systemd/resolve
rm -rf /etc/systemd/resolved.conf /etc/systemd/resolved.conf.d
printf '[Resolve]\nDNS=192.0.2.9\nFallbackDNS=\nLLMNR=no\nMulticastDNS=no\nDNSSEC=no\n' >/etc/systemd/resolved.conf
resolved_start() {
	bg "$T/resolved" env "LD_LIBRARY_PATH=$lib" \
		"$(find "$UNPACKED/systemd-resolved" -name systemd-resolved -type f -path '*/systemd/systemd-resolved' -perm -1)"
	RESOLVED=$BG
	wait_for -t 30 'resolvectl status'
}
stub() {
	dig +short +time=20 +tries=1 @127.0.0.53 "$@" | grep -v '^;'
}
link_is_told() {
	resolvectl status "$INST-dns" 2>/dev/null | grep -q '^ *Current Scopes: DNS'
}
links() {
	ip -o link | grep -c -- " $INST-dn"
}

ok "resolved that does not run: the config is applied" apply resolved
ok "and the log says why nothing comes of it" \
	wait_for -t 60 "grep -q 'host-names: systemd-resolved cannot be told' $T/$INST.log"
is "no device is left of that" "$(links)" 0
apply off >/dev/null
bg "$T/bus" dbus-daemon --config-file="$T/bus.conf" --nofork --nopidfile
wait_for '[ -S /run/dbus/system_bus_socket ]'
resolved_start || diag "$(cat "$T/resolved" "$T/bus")"
ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf

config resolved >"$T/on.yaml"
like "a change of the config is seen" "$(ax config apply --dry-run "$T/on.yaml")" "host-names.*off -> resolved"
apply resolved >/dev/null
ok "the agent's link is one that resolved asks" wait_for -t 30 link_is_told
wait_for -t 30 '[ "$(first_address web)" ]'
for name in web shop web.ax.internal shop.ax.internal; do
	is "resolved: curl outside ax: http://$name/" "$(curl -sS --max-time 20 "http://$name/index.html" 2>&1)" hello
done
is "resolved: AAAA" "$(stub AAAA web.ax.internal)" "$web6"
is "resolved: SRV" "$(stub SRV _http._tcp.shop.ax.internal | awk '{ print $3, $4 }')" "80 shop.ax.internal."
is "resolved: PTR" "$(stub -x 10.77.200.1)" "shop.ax.internal."
is "resolved: PTR of an IPv6 address" "$(stub -x "$(name_of web ip6)")" "web.ax.internal."
run_app --name later -- sleep 1000
launched later
is "resolved: a name that comes later" "$(stub later.ax.internal)" "$(name_of later ip4)"
ok "resolved: names of others are asked for where they were" \
	wait_for -t 30 '[ "$(stub outside.example)" = 192.0.2.7 ]'
is "resolved: and ours there never" "$(grep -c 'ax.internal\|77.10.in-addr\|7.7.d.f.ip6' "$T/outside")" 0
like "resolved: a name that nobody has is not asked for in a circle" \
	"$(dig +time=20 +tries=1 @127.0.0.53 MX nobody)" "status: NXDOMAIN"
is "an app's other names go by the host's resolver" \
	"$(in_app --egress -- dig +short +time=20 outside.example)" 192.0.2.7
# nss-resolve asks resolved by its socket, and nobody else unless that is not there
sed -i 's/^hosts:.*/hosts: resolve [!UNAVAIL=return] files dns/' /etc/nsswitch.conf
grep -q '^hosts: resolve' /etc/nsswitch.conf || diag "$(cat /etc/nsswitch.conf)"
nss=$(dirname "$(find "$UNPACKED/libnss-resolve" -name libnss_resolve.so.2)")
found() { # NAME [COMMAND...]: its address, as a program that the command starts finds it
	"${@:2}" env "LD_LIBRARY_PATH=$nss" getent ahostsv4 "$1" | awk 'NR == 1 { print $1 }'
}
is "nss-resolve: outside ax" "$(found outside.example)" 192.0.2.7
is "nss-resolve: an app finds apps" "$(found later in_app --)" "$(name_of later ip4)"
is "nss-resolve: and others' names with egress" "$(found outside.example in_app --egress --)" 192.0.2.7
is "nss-resolve: without it none" "$(found outside.example in_app --)" ""
is "an app does not see resolved's socket" "$(in_app -- ls /run/systemd/resolve | xargs)" "resolv.conf stub-resolv.conf"
# as the file of one interface is that somebody keeps there
mkdir -p /run/systemd/resolve/kept
echo 'nameserver 127.0.0.53' >/run/systemd/resolve/kept/one.conf
ln -sf /run/systemd/resolve/kept/one.conf /etc/resolv.conf
is "where /etc/resolv.conf leads deeper below, too" "$(found later in_app --)" "$(name_of later ip4)"
ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
agent_kill9
ok "killed, its link is there" link_is_told
agent_again
ok "the next agent has one anew" wait_for -t 30 '[ "$(stub web.ax.internal)" ] && link_is_told'
end "$RESOLVED"
resolved_start || diag "$(cat "$T/resolved")"
ok "resolved that starts again knows what it was told" wait_for -t 30 '[ "$(stub web.ax.internal)" ]'
apply off >/dev/null
ok "off: the link goes" wait_for -t 30 '[ $(links) = 0 ]'
ok "and resolved does not ask the agent any more" wait_for -t 30 '[ -z "$(stub web.ax.internal)" ]'
apply resolved >/dev/null
wait_for -t 30 link_is_told
agent_kill9
config off >"$T/$INST.yaml"
agent_again
is "killed, and the next one has another config: it takes the link away" "$(links)" 0
apply resolved >/dev/null
wait_for -t 30 link_is_told
agent_stop
is "the agent's end takes it away" "$(links)" 0
agent_again
ok "it starts with it, too" wait_for -t 30 link_is_told
apply off >/dev/null
end "$RESOLVED"

# --- resolvconf: Debian's, and openresolv ---

# with_resolvconf PACKAGE: /usr/local/sbin/resolvconf is the package's, with its own parts.
with_resolvconf() {
	local root=$UNPACKED/$1 usr=$UNPACKED/$1
	[ -d "$root/lib" ] || usr=$root/usr # since Debian 13
	rm -rf /run/resolvconf "$T/rc"
	mkdir "$T/rc"
	cp -a "$usr/lib/resolvconf" "$T/rc/lib"
	[ ! -d "$root/etc/resolvconf" ] || cp -aT "$root/etc/resolvconf" /etc/resolvconf
	[ ! -e "$root/etc/resolvconf.conf" ] || cp -a "$root/etc/resolvconf.conf" /etc/
	cp -a "$usr/sbin/resolvconf" "$T/sbin/resolvconf"
	grep -rlI /lib/resolvconf "$T/rc/lib" "$T/sbin/resolvconf" /etc/resolvconf 2>/dev/null |
		xargs sed -Ei "s#(/usr)?/lib/resolvconf#$T/rc/lib#g"
	rm -f /etc/resolv.conf
	if [ "$1" = resolvconf ]; then
		mkdir -p /run/resolvconf/interface
		: >/run/resolvconf/resolv.conf
		: >/run/resolvconf/enable-updates
		ln -s /run/resolvconf/resolv.conf /etc/resolv.conf
	fi
	lease 192.0.2.9
}
# lease ADDRESS...: what a DHCP client says.
lease() {
	{
		printf 'nameserver %s\n' "$@"
		echo "search lan.example"
	} | resolvconf -a eth0.dhcp
}
nameservers() {
	awk '/^nameserver/ { printf "%s%s", n++ ? " " : "", $2 }' /etc/resolv.conf
}

dns=$(ax status -o json | jq -r .dns.address)
for kind in resolvconf openresolv; do
	with_resolvconf $kind
	is "$kind: before" "$(nameservers)" 192.0.2.9
	cp /etc/resolv.conf "$T/before"
	ok "$kind: applied" apply resolvconf
	wait_for -t 30 'grep -q ax.internal /etc/resolv.conf'
	is "$kind: the agent is asked first" "$(nameservers)" "$dns 192.0.2.9"
	for name in web shop web.ax.internal; do
		is "$kind: curl outside ax: http://$name/" \
			"$(curl -sS --max-time 20 "http://$name/index.html" 2>&1)" hello
	done
	is "$kind: SRV" "$(dig +short +time=20 SRV _http._tcp.shop.ax.internal | awk '{ print $3 }')" 80
	is "$kind: PTR" "$(dig +short +time=20 -x 10.77.200.1)" shop.ax.internal.
	is "$kind: names of others" "$(first_address outside.example)" 192.0.2.7
	like "$kind: the search domain of others stays" "$(grep ^search /etc/resolv.conf)" "ax.internal.*lan.example"
	lease 127.0.0.8 # nobody
	ok "$kind: names of others are not found in a network without a server" \
		wait_for -t 30 '[ -z "$(first_address outside.example)" ]'
	lease 192.0.2.9 192.0.2.8
	ok "$kind: and are in the next one" wait_for -t 30 '[ "$(first_address outside.example)" = 192.0.2.7 ]'
	lease 192.0.2.9
	agent_kill9
	is "$kind: killed, and names of others are found" "$(first_address outside.example)" 192.0.2.7
	config off >"$T/$INST.yaml"
	agent_again
	ok "$kind: the next agent takes the record back" wait_for -t 30 "cmp /etc/resolv.conf $T/before"
	apply resolvconf >/dev/null
	wait_for -t 30 'grep -q ax.internal /etc/resolv.conf'
	agent_stop
	ok "$kind: and so does the agent's end" cmp /etc/resolv.conf "$T/before"
	agent_again
	wait_for -t 30 'grep -q ax.internal /etc/resolv.conf'
	apply off >/dev/null
	ok "$kind: and off" wait_for -t 30 "cmp /etc/resolv.conf $T/before"
done
apply resolvconf >/dev/null
wait_for -t 30 'grep -q ax.internal /etc/resolv.conf'
stop_apps
agent_kill9
ok "flush" ax agent --flush
ok "flush takes it back, too" cmp /etc/resolv.conf "$T/before"
ln -sf resolvectl "$T/sbin/resolvconf"
config off >"$T/$INST.yaml"
agent_again
like "a resolvconf that is systemd-resolved's: says which word is meant" "$(apply resolvconf)" "say resolved instead"
umount /usr/local/sbin /etc
done_testing
