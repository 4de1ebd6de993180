#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# agent.host-names: programs outside ax find apps and services by their names, in /etc/hosts.
. "$(dirname "$0")/lib.sh"
need python3 jq curl dig getent

# /etc is a copy of this mount namespace's own
mkdir "$T/etc"
cp -a /etc/. "$T/etc/"
mount --bind "$T/etc" /etc
printf '127.0.0.1 localhost taken # own\n::1 localhost\n' >/etc/hosts
chmod 640 /etc/hosts
cp -a /etc/hosts "$T/before"

config() { # MODE
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host-names: $1
		services:
		  shop:
		    ip: 10.77.200.1
		    ports: ["80"]
		    backends: [web]
	EOF
}
address() {
	getent ahostsv4 "$1" | awk '{ print $1; exit }'
}

agent_start - < <(config off)
echo hello >"$T/index.html"
for mode in private host; do
	serve 80 --name "web$mode" --net $mode -- "$PYTHON" -m http.server --directory "$T" 80
done
serve 80 --name web -- "$PYTHON" -m http.server --directory "$T" 80
sleep 0.5
ok "off: the file is nobody's but theirs" cmp /etc/hosts "$T/before"

config hosts >"$T/on.yaml"
like "a change of the config is seen" "$(ax config apply --dry-run "$T/on.yaml")" "host-names.*off -> hosts"
ok "and applied" ax config apply "$T/on.yaml"
cp "$T/on.yaml" "$T/$INST.yaml"
wait_for 'grep -q shop /etc/hosts'
for name in web webprivate webhost shop web.ax.internal; do
	is "curl outside ax: http://$name/" "$(curl -sS --max-time 20 "http://$name/index.html" 2>&1)" hello
done
is "IPv6, too" "$(getent ahostsv6 web | awk '{ print $1; exit }')" \
	"$(ax get names -o json | jq -r '.[] | select(.name == "web") | .ip6')"
is "its mode and owner are the same" "$(stat -c '%a %U %G' /etc/hosts)" "$(stat -c '%a %U %G' "$T/before")"
is "what was there comes first, and is as it was" "$(head -n 2 /etc/hosts)" "$(cat "$T/before")"

run_app --name later -- sleep 1000
wait_for '[ -n "$(address later)" ]'
is "an app that comes has its address" "$(address later)" "$(ax get apps -o json later | jq -r '.[0].ip4')"
run_app --name taken -- sleep 1000
wait_for 'grep -q taken.ax.internal /etc/hosts'
is "a name that others have is left to them" "$(address taken)" 127.0.0.1
is "but for the domain" "$(address taken.ax.internal)" "$(ax get apps -o json taken | jq -r '.[0].ip4')"
echo "192.0.2.7 written-meanwhile" >>/etc/hosts
stop_app "$APP"
wait_for '! grep -q taken.ax.internal /etc/hosts'
is "an app that goes is gone" "$(grep -c taken.ax.internal /etc/hosts)" 0
is "what others wrote meanwhile is there" "$(address written-meanwhile)" 192.0.2.7
is "one block" "$(grep -c '^# begin of ax' /etc/hosts)" 1

# the agent's DNS answers the host, too
dns=$(ax status -o json | jq -r '.dns.address')
web=$(ax get names -o json | jq -r '.[] | select(.name == "shop") | .ip4')
is "dig from the host: SRV" "$(dig +short +time=20 "@$dns" SRV _http._tcp.shop.ax.internal | head -n 1 | awk '{ print $3 }')" 80
is "dig from the host: PTR" "$(dig +short +time=20 "@$dns" -x "$web")" shop.ax.internal.

# a file that is a mount is written in place
cp -a /etc/hosts "$T/mounted"
mount --bind "$T/mounted" /etc/hosts
run_app --name there -- sleep 1000
wait_for '[ -n "$(address there)" ]'
is "a bind mount: written in place" "$(address there)" "$(ax get apps -o json there | jq -r '.[0].ip4')"
is "a bind mount: it is one still" "$(awk '$5 == "/etc/hosts"' /proc/self/mountinfo | wc -l)" 1
agent_stop
is "the agent's end takes all of it back" "$(grep -c 'ax' /etc/hosts)" 0
umount /etc/hosts
agent_again
wait_for 'grep -q shop /etc/hosts'
agent_kill9
is "killed, it does not" "$(grep -c '^# begin of ax' /etc/hosts)" 1
config off >"$T/$INST.yaml"
touch "/etc/hosts.ax-$INST" # it was about to rename it
agent_again
wait_for '! grep -q "begin of ax" /etc/hosts'
is "the next agent does that" "$(grep -c '^# begin of ax' /etc/hosts)" 0
is "and what others wrote is there" "$(cat /etc/hosts)" "$(cat "$T/before"; echo "192.0.2.7 written-meanwhile")"
config hosts >"$T/$INST.yaml"
ok "on again" ax config apply "$T/$INST.yaml"
wait_for 'grep -q shop /etc/hosts'
is "no other file is left" "$(find /etc -name 'hosts.ax-*')" ""
stop_apps
wait_for '! grep -q webhost /etc/hosts'
agent_kill9
ok "flush" ax agent --flush
is "flush takes it back as well" "$(grep -c '^# begin of ax' /etc/hosts)" 0
umount /etc
done_testing
