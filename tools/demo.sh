#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: tools/demo.sh AX      (make demo)
#
# Shows what ax does, on real programs, and checks each answer: it ends with a status that is not
# zero, and one sentence, as soon as something is not what it must be.
#
# So that nothing of the machine is touched, it all happens in a network and a mount namespace of
# its own (with its own /run and bpffs), by an instance of ax of its own: two demos can run at once.
# ax needs neither; leave out the unshare, the mounts and --instance, and it is the machine itself.
set -uo pipefail

fail() {
	echo "demo: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || fail "it launches apps under virtual IPs: run it as root"
[ -x "${1:-}" ] || fail "give the path of ax, as 'make demo' does"
for tool in nginx curl python3 ip unshare; do
	command -v "$tool" >/dev/null || fail "$tool is missing: 'make demo' installs it"
done
if [ "${AX_DEMO_INSIDE:-}" != 1 ]; then
	AX_DEMO_INSIDE=1 exec unshare --net --mount --propagation private "$0" "$@"
fi
unset AX_DEMO_INSIDE

binary=$(realpath "$1")
config=$(cd "$(dirname "$0")" && pwd)/share/ax.yaml
instance=d$$ # at most 8 characters; no pid has more than 7
agent=
held=
bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\e[1m' plain=$'\e[0m'
fi
tmp=$(mktemp -d /tmp/ax-demo.XXXX)

ax() {
	"$binary" --instance "$instance" "$@"
}

cleanup() {
	local status=$?
	trap - EXIT
	[ -z "$held" ] || kill "$held" 2>/dev/null
	[ -z "$agent" ] || kill "$agent" 2>/dev/null
	wait
	ax agent --flush >/dev/null 2>&1
	rm -rf "$tmp"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- showing and checking ---
about() {
	printf '\n# %s\n' "$*"
}
command_line() { # the command as one would type it
	local word line=''
	for word in "$@"; do
		case $word in
		'&') line+=' &' ;;
		*[[:space:]\;\&\<\>\|\(\)\$\*]*) line+=" '$word'" ;;
		*) line+=" $word" ;;
		esac
	done
	printf '%s$%s%s\n' "$bold" "$line" "$plain"
}
# show COMMAND...: prints it and its output, which stays in $out; it must succeed
show() {
	local status=0
	command_line "$@"
	out=$("$@" 2>&1 </dev/null) || status=$?
	[ -z "$out" ] || printf '%s\n' "$out"
	[ "$status" = 0 ] || fail "'$*' ended with status $status"
}
# must PATTERN SENTENCE: the last output has a line that matches
must() {
	grep -Eq -- "$1" <<<"$out" || fail "$2"
}
# until_true SENTENCE COMMAND...: polls for 30 s, which a machine with much else to do may need
until_true() {
	local sentence=$1 tries=600
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || fail "$sentence"
		sleep 0.05
	done
}
listening() { # APP PORT SERVERS: so many servers of the app listen there
	[ "$(ax get servers | grep -Ec "(^| )$1 .*[ :]$2( |$)")" -ge "$3" ]
}
has_line() { # PATTERN COMMAND...
	local pattern=$1
	shift
	"$@" 2>&1 | grep -Eq -- "$pattern"
}

answers_or_ended() {
	ax status || ! kill -0 "$agent"
}

# --- what the servers serve ---
web_server() { # NAME PAGE: writes a prefix directory for nginx
	mkdir -p "$tmp/$1/html" "$tmp/$1/logs"
	echo "$2" >"$tmp/$1/html/index.html"
	cat >"$tmp/$1/nginx.conf" <<-CONFIG
		user nobody nogroup;
		worker_processes 1;
		pid nginx.pid;
		error_log logs/error.log;
		events {}
		http {
			access_log logs/access.log;
			client_body_temp_path body;
			proxy_temp_path proxy;
			fastcgi_temp_path fastcgi;
			uwsgi_temp_path uwsgi;
			scgi_temp_path scgi;
			server {
				listen 80;
				root html;
			}
		}
	CONFIG
}
write_pages() {
	chmod 755 "$tmp" # nginx's worker is nobody
	web_server web1 'hello from web, the first nginx'
	web_server web2 'hello from web, the second nginx'
	mkdir "$tmp/files"
	echo 'hello from files' >"$tmp/files/index.html"
}

# --- the steps ---
start_agent() {
	mount -t tmpfs -o mode=755 tmpfs /run
	mkdir -p /sys/fs/bpf
	mount -t bpf bpf /sys/fs/bpf
	ip link set lo up
	before=$(machine)
	about "An agent with the example config. (Each ax below has --instance $instance besides.)"
	show ax config check "$config"
	command_line ax agent --config "$config" '&'
	"$binary" --instance "$instance" agent --config "$config" >"$tmp/agent.log" 2>&1 &
	agent=$!
	until_true "the agent does not answer" answers_or_ended
	kill -0 "$agent" 2>/dev/null || fail "the agent ended: $(tail -n 1 "$tmp/agent.log")"
}

launch_servers() {
	about 'Two web servers, each under an address and a name. Both listen on port 80.'
	show ax run --ip 1.2.3.4 --name web --detach -- \
		nginx -p "$tmp/web1" -c "$tmp/web1/nginx.conf" -g 'daemon off;'
	show ax run --ip 1.2.3.5 --name files --net host --detach -- \
		python3 -m http.server 80 --directory "$tmp/files"
	until_true "nginx does not listen on port 80; see 'ax logs web'" listening web 80 1
	until_true "python3 does not listen on port 80; see 'ax logs files'" listening files 80 1
}

use_clients() {
	about 'A client with an address of its own reaches them by name and by address.'
	show ax run --ip 5.6.7.8 -- curl -sS http://web/
	must '^hello from web, the first' 'http://web/ is not the page of nginx'
	show ax run --ip 5.6.7.8 -- curl -sS http://1.2.3.4/
	must '^hello from web, the first' 'http://1.2.3.4/ is not the page of nginx'
	show ax run --ip 5.6.7.8 --net host -- curl -sS http://files/
	must '^hello from files' 'http://files/ is not the page of python3'
	show ax run --ip 5.6.7.8 -- curl -sS http://1.2.3.5/
	must '^hello from files' 'http://1.2.3.5/ is not the page of python3'

	about 'nginx saw who asked: no address was translated.'
	show cat "$tmp/web1/logs/access.log"
	must '^5\.6\.7\.8 .*"GET / ' "nginx's access log has not 5.6.7.8 as the peer"

	about 'A program that ax did not launch reaches them too.'
	show curl -sS http://1.2.3.4/
	must '^hello from web, the first' 'a program outside ax does not reach 1.2.3.4'
}

# With a fair choice the chance to miss one of the two in 25 connections is 6 in 10^8.
both_answer() {
	local i
	# shellcheck disable=SC2016 # for the other shell
	show ax run --ip 5.6.7.8 -- sh -c \
		'for i in $(seq 25); do curl -sS http://web/; done | sort | uniq -c'
	for i in first second; do
		must "hello from web, the $i nginx" "the $i nginx never answered for web"
	done
	[ "$(wc -l <<<"$out")" = 2 ] || fail 'something else than the two nginx answered for web'
}

make_service() {
	about 'A second app of the same name: the two are a service now, the address stays.'
	show ax run --name web --detach -- \
		nginx -p "$tmp/web2" -c "$tmp/web2/nginx.conf" -g 'daemon off;'
	until_true "the second nginx does not listen; see 'ax logs web'" listening web 80 2
	both_answer
	show ax get services
	must '(^| )web .*1\.2\.3\.4' "ax get services does not list web with 1.2.3.4"
}

show_tables() {
	about 'What there is.'
	show ax get apps
	must '(^| )web .*1\.2\.3\.4' "ax get apps does not list web with 1.2.3.4"
	must '(^| )files .*1\.2\.3\.5' "ax get apps does not list files with 1.2.3.5"
	show ax get servers
	must 'files .*1\.2\.3\.5' "ax get servers does not list files at 1.2.3.5"
	show ax get names
	must '(^| )web[. ].*1\.2\.3\.4' "ax get names does not list web with 1.2.3.4"

	about 'And who talks to whom: a client that holds its connection.'
	command_line ax run --ip 5.6.7.9 --name holder -- \
		bash -c 'exec 3<>/dev/tcp/files/80; exec sleep 20' '&'
	"$binary" --instance "$instance" run --ip 5.6.7.9 --name holder -- \
		bash -c 'exec 3<>/dev/tcp/files/80; exec sleep 20' </dev/null &
	held=$!
	until_true "the held connection is not in 'ax get conns'" \
		has_line 'established.*' ax get conns
	show ax get conns
	must 'holder|5\.6\.7\.9' "ax get conns does not name the client"
	must 'files|1\.2\.3\.5' "ax get conns does not name the server"
	kill "$held"
	wait "$held"
	[ $? = 143 ] || fail "ax run did not pass SIGTERM on, or not the command's status"
	held=
}

# What ax could have changed outside its processes; the same before and after, or something is left.
machine() {
	local mount
	ip -o link show
	ip -o address show
	ip route show table all
	ip -6 route show table all
	ip rule show
	ip -6 rule show
	cat /proc/sys/net/ipv4/ip_forward
	find /sys/fs/bpf -mindepth 1
	mount=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/self/mounts)
	[ -z "$mount" ] || find "$mount" -mindepth 1 -maxdepth 1 -name "$instance"
}

clean_up() {
	about 'Everything is taken away again.'
	show ax stop web
	show ax stop files
	kill "$agent"
	wait "$agent" || fail "the agent ended with status $? at SIGTERM: $(tail -n 1 "$tmp/agent.log")"
	agent=
	show ax agent --flush
	out=$(diff <(echo "$before") <(machine)) || fail "something is left or lost: $out"
	! pgrep -f "$tmp" >/dev/null || fail "a server still runs: $(pgrep -af "$tmp")"
	about 'Nothing is left: no app, link, route, cgroup or pinned program.'
}

write_pages
start_agent
launch_servers
use_clients
make_service
show_tables
clean_up
