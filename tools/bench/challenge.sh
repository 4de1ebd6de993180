# SPDX-License-Identifier: GPL-2.0-or-later
# Who connects while SYNs of nobody come in: `action challenge` beside the kernel's own cookies. Sourced by
# run.sh.
#
# Server, client and flood are on one processor, as they are where a card has one queue for them; the flood
# goes first, as what a card brings does. It comes by the client's veth pair, and answers to it go back there. Both servers have net.ipv4.tcp_syncookies=2.

SYNS=${SYNS:-300000} # a second

# syn_pair NAME NET: server NAME, client NAME + c behind a veth pair
syn_pair() {
	netns_add "$1"
	veth_into "$1" "$1c" "10.$2.0.2" "10.$2.0.1"
	in_netns "$1" ip link set "$1c" address 02:00:00:00:00:01 # as frames are addressed
	in_netns "$1c" ip link set eth0 address 02:00:00:00:00:02
	in_netns "$1" sysctl -qw net.ipv4.tcp_syncookies=2 net.ipv4.tcp_timestamps=2 net.ipv4.conf.all.rp_filter=0 \
		net.ipv4.tcp_max_tw_buckets=0 net.ipv6.conf.all.disable_ipv6=1
	in_netns "$1c" sysctl -qw net.ipv4.tcp_max_tw_buckets=0 net.ipv6.conf.all.disable_ipv6=1
	in_netns "$1" ip neigh replace "10.$2.0.2" lladdr 02:00:00:00:00:02 dev "$1c"
	in_netns "$1c" ip neigh replace "10.$2.0.1" lladdr 02:00:00:00:00:01 dev eth0
	in_netns "$1" ip route add 32.0.0.0/3 via "10.$2.0.2"
	in_netns "$1c" ip route add blackhole 32.0.0.0/3
	start_server_in "$1" "$1-server" "$bench" -c "$cpu" server close 80
}
challenge_up() {
	syn_pair kc 94
	in_netns kc ethtool -K kcc gro on # it takes the flood's frames
	[ -n "$ax" ] || return 0
	syn_pair xc 95
	echo 'rules: [{name: ask, proto: tcp, dport: 80, action: challenge}]' >"$tmp/xc.yaml"
	echo 'rules: [{name: nobody, dst: 32.0.0.0/3, action: drop}]' >"$tmp/xcc.yaml"
	in_netns xcc "$ax" --instance "${xdp/x/y}" xdp load eth0 --rules "$tmp/xcc.yaml" >"$tmp/load.out" 2>&1 ||
		die "ax xdp load eth0 failed: $(tail -n 1 "$tmp/load.out")"
	in_netns xc "$ax" --instance "$xdp" xdp load xcc --rules "$tmp/xc.yaml" >"$tmp/load.out" 2>&1 ||
		die "ax xdp load xcc failed: $(tail -n 1 "$tmp/load.out")"
}
# How many connections there are in the time, with the flood (from 1 s before on) and without.
connects() { # CASE NAME NET [flood]
	local pid=
	if [ $# -gt 3 ]; then
		in_netns "$2c" nice -n -20 "$xdpbench" -c "$cpu" -y -d "10.$3.0.1:80" syns eth0 "$SYNS" $((MILLISECONDS + 2000)) \
			>"$tmp/$1.syns" 2>&1 &
		pid=$!
		pids+=("$pid")
		sleep 1
	fi
	field=count measure "$1" in_netns "$2c" "$bench" -c "$cpu" -t "$MILLISECONDS" connect-rate "10.$3.0.1" 80
	[ -n "$pid" ] || return 0
	wait "$pid" || die "sending SYNs failed: $(cat "$tmp/$1.syns")"
	unset 'pids[-1]'
	record "$1.syns" "$(jq .value "$tmp/$1.syns")"
}
# What a SYN costs with its answer, by the time of frames that are made and received; less what making them costs.
cost() { # CASE NAME NET
	local line
	line=$(in_netns "$2c" "$xdpbench" -c "$cpu" -n $((PACKETS / 5)) -y -d "10.$3.0.1:80" flood eth0 2>"$tmp/$1.err") ||
		die "measuring $1 failed: $(tail -n 1 "$tmp/$1.err")"
	record "$1" "$(jq .value <<<"$line")"
}
challenge_cases=(syn.kernel syn.challenge quiet.kernel quiet.challenge syn.cost.kernel syn.cost.challenge)
measure_challenge() {
	case $1 in
	syn.kernel) connects "$1" kc 94 flood ;;
	quiet.kernel) connects "$1" kc 94 ;;
	syn.cost.kernel) cost "$1" kc 94 ;;
	syn.cost.challenge) [ -z "$ax" ] || cost "$1" xc 95 ;;
	syn.challenge) [ -z "$ax" ] || connects "$1" xc 95 flood ;;
	quiet.challenge) [ -z "$ax" ] || connects "$1" xc 95 ;;
	esac
}
challenge_rows() {
	row 'connections kept under a flood of SYNs' '1' syn.challenge 'the kernel'\''s cookies' syn.kernel '>=' 2
	row 'the same without one' '1' quiet.challenge 'the kernel'\''s cookies' quiet.kernel '' ''
	row 'a SYN and its answer, net' ns syn.cost.challenge 'the kernel'\''s cookies' syn.cost.kernel '<=' 0.5
	row 'SYNs a second of that flood' 1/s syn.challenge.syns 'beside the kernel'\''s cookies' syn.kernel.syns '' ''
}
