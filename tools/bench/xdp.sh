# SPDX-License-Identifier: GPL-2.0-or-later
# What is measured of `ax xdp`. Sourced by run.sh, which set ax, xdpbench, xdp, pins, here, tmp, cpu,
# cpu_b.
#
# Each list is on a veth pair of its own in one network namespace; frames go into the end whose name
# ends in p. Programs are measured by the kernel's test run, PACKETS packets at a time, less what a
# program that does nothing costs right before. Live frames are made and received on one processor.
# What was sent is held against what ax, nftables and xdp-filter counted.

PACKETS=${PACKETS:-1000000}
xb=(nsenter --net=/run/netns/xdp "$xdpbench" -c "$cpu")
many=1000000 # prefixes of the large set
vip=(-p tcp -s 198.51.100.7:40000 -d 192.0.2.1:80)
last10=(-e drop -s 10.0.9.1:53 -d 10.0.0.2:65001)
last1000=(-e drop -s 10.3.231.1:53 -d 10.0.0.2:65001)
last10000=(-e drop -s 10.39.15.1:53 -d 10.0.0.2:65001)
overlap1000=(-e drop -s 10.0.99.1:53 -d 10.0.0.2:65001)
overlap10000=(-e drop -s 10.3.231.1:53 -d 10.0.0.2:65001)
swaps=0
dropped=0 # by xdp-filter, of live frames

# The listed ports are dropped by the object for the policy that allows the others.
find_xdpfilter() {
	local file
	for file in /usr/lib/*/bpf /usr/lib64/bpf /usr/lib/bpf /usr/local/lib/bpf; do
		if [ -e "$file/xdpfilt_alw_all.o" ]; then
			echo "$file/xdpfilt_alw_all.o"
			return
		fi
	done
	die "xdp-filter's xdpfilt_alw_all.o is not there: 'make bench' installs it"
}

ax_xdp() { # COMMAND...
	in_netns xdp "$ax" --instance "$xdp" xdp "$@"
}
pair() { # NAME
	in_netns xdp ip link add "$1" type veth peer name "$1p"
	in_netns xdp ip link set "$1" up
	in_netns xdp ip link set "$1p" up
}
# list NAME RULES_AWK_VARIABLE...: a pair with that list
list() {
	local name=$1 v args=()
	shift
	for v in "$@"; do
		args+=(-v "$v")
	done
	awk "${args[@]}" -f "$here/rules.awk" >"$tmp/$name.yaml"
	pair "$name"
	load_list "$name"
}
load_list() { # NAME [OPTION...]
	ax_xdp load "$1" --rules "$tmp/$1.yaml" "${@:2}" >"$tmp/load.out" 2>&1 ||
		die "ax xdp load $1 failed: $(tail -n 1 "$tmp/load.out")"
}

# balanced NAME NETWORK MODE PORT: a VIP on four backends, whose MAC addresses are known
balanced() {
	local i backends=
	pair "$1"
	in_netns xdp ip addr add "$2.1/24" dev "$1"
	in_netns xdp sysctl -qw "net.ipv4.conf.$1.forwarding=1"
	for i in 11 12 13 14; do
		backends="$backends${backends:+, }\"$2.$i$4\""
	done
	cat >"$tmp/$1.yaml" <<-RULES
		balancers:
		  shop: {mode: $3, backends: [$backends]}
		rules:
		  - {name: shop, dst: 192.0.2.1, proto: tcp, dport: 80, action: balance shop}
	RULES
	load_list "$1" --force # nothing is sent there: frames of test runs stay where they are
	for i in 11 12 13 14; do
		in_netns xdp ip neigh replace "$2.$i" lladdr "02:00:00:00:00:$i" dev "$1"
	done
}

# nft_pair NAME: rules on standard input; the receiver takes frames in its driver's way (GRO)
nft_pair() {
	pair "$1"
	in_netns xdp ethtool -K "$1" gro on
	in_netns xdp nft -f - 2>"$tmp/nft.err" || die "nft failed: $(head -n 1 "$tmp/nft.err")"
}
nft_up() {
	local kind
	for kind in ports mixed; do
		awk -v kind=$kind -v n=1000 -v nft=n$kind -f "$here/rules.awk" | nft_pair n$kind
	done
	nft_pair nset <<-RULES
		table netdev nset {
			set ports {
				type inet_service
				elements = { $(seq -s , 10000 10999) }
			}
			chain ingress {
				type filter hook ingress device "nset" priority 0; policy accept;
				udp dport @ports counter drop
			}
		}
	RULES
}

# Routers: frames come in by NAMEi and leave by NAMEo, to who drops them: at the other end of the list's
# pair a program, which costs least there; of the others' the stack, which costs them less than a
# program, because frames of theirs would be copied for it.
route_pair() { # NAME NET
	pair "$1i"
	pair "$1o"
	in_netns xdp ip link set "$1i" address 02:00:00:00:00:01 # as frames are addressed
	in_netns xdp ip addr add "10.$2.1.1/24" dev "$1i"
	in_netns xdp ip addr add "10.$2.2.1/24" dev "$1o"
	in_netns xdp ip neigh replace "10.$2.1.2" lladdr 02:00:00:00:01:02 dev "$1i"
	in_netns xdp ip neigh replace "10.$2.2.2" lladdr 02:00:00:00:02:02 dev "$1o"
}
has_flowtable= # where the kernel has none, nothing is compared with it
routers_up() {
	route_pair rt 91
	route_pair kf 92
	route_pair ft 93
	in_netns xdp ethtool -K kfi gro on
	in_netns xdp ethtool -K fti gro on
	ax_xdp load rtop --default drop >"$tmp/load.out" 2>&1 || die "ax xdp load rtop failed"
	echo 'rules: [{name: way, action: route}]' >"$tmp/rti.yaml"
	load_list rti --force # what programs behind it would send does not come
	if in_netns xdp nft -f - 2>"$tmp/nft.err" <<-RULES; then
		table inet ft {
			flowtable fast { hook ingress priority 0; devices = { fti, fto }; }
			chain forward {
				type filter hook forward priority 0; policy accept;
				iifname "fti" ct state established flow add @fast
				iifname "fto" ct state established flow add @fast
			}
		}
	RULES
		has_flowtable=yes
	else
		note "this kernel has no flowtable: $(head -n 1 "$tmp/nft.err")"
	fi
}
routed_frames() { # CASE NAME NET FRAMES
	xdp_run "$1" "$2i" -n "$4" -p udp -s "10.$3.1.2:5" -d "10.$3.2.2:9" flood "$2ip"
}
# A flow is in the flowtable once both ends have been heard.
route_by_flowtable() { # CASE
	[ -n "$has_flowtable" ] || return 0
	"${xb[@]}" -n 64 -p udp -s 10.93.1.2:5 -d 10.93.2.2:9 send ftip >/dev/null
	in_netns xdp ip link set fto address 02:00:00:00:00:01
	"${xb[@]}" -n 64 -p udp -s 10.93.2.2:9 -d 10.93.1.2:5 send ftop >/dev/null
	routed_frames "$1" ft 93 "$PACKETS"
}

# Flows that are forwarded, which the lists keep: what fli lets through begins some, and flo takes
# their answers alone.
flows_up() {
	pair fli
	pair flo
	cat >"$tmp/fli.yaml" <<-RULES
		default: drop
		track: own
		rules: [{name: begins, state: new, proto: udp, action: pass}]
	RULES
	cat >"$tmp/flo.yaml" <<-RULES
		default: drop
		track: own
		rules: [{name: answer, state: established, action: pass}]
	RULES
	load_list fli
	load_list flo
}
flow_known() { # CASE
	"${xb[@]}" -n 64 -p udp -s 10.94.1.2:5 -d 10.94.2.2:9 send flip >/dev/null
	program "$1" flo -e pass -p udp -s 10.94.2.2:9 -d 10.94.1.2:5
}

xdp_up() {
	xdpfilter=$(find_xdpfilter)
	netns_add xdp
	in_netns xdp sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
		net.ipv6.conf.default.disable_ipv6=1 net.ipv4.ip_forward=1
	pair lxf
	nft_up
	if [ -n "$ax" ]; then
		xdp_lists_up
	fi
}
xdp_lists_up() {
	local n
	list ports kind=ports n=1000
	for n in 10 1000 10000; do
		list "mixed$n" kind=mixed n=$n
	done
	list payload10 kind=payload n=10
	for n in 1000 10000; do
		list "overlap$n" kind=overlap n=$n
	done
	for n in 1000 $many; do
		"$xdpbench" addresses "$n" >"$tmp/set$n.txt"
		list "set$n" kind=set "file=set$n.txt" "set=set$n"
	done
	list more kind=set "file=set$many.txt" set=more
	list swap kind=swap n=10000
	awk -v kind=swap -v n=10000 -v other=1 -f "$here/rules.awk" >"$tmp/other.yaml"
	balanced tonat 10.1.1 nat :80
	balanced toipip 10.1.2 ipip ''
	balanced togue 10.1.3 gue ''
	routers_up
	flows_up
	list lports kind=ports n=1000
	list lmixed kind=mixed n=1000
}

# --- counting ---
# Packets per interface: what xdpbench said it sent.
declare -A sent
ax_counted() { # INTERFACE: by all rules but the default
	ax_xdp stats "$1" -o json | jq '[.rules[] | select(.rule != "default").packets] | add'
}
nft_counted() { # TABLE
	in_netns xdp nft -j list table netdev "$1" | jq '[.. | .counter? | .packets?] | add'
}
# Frames that did not get into the receiver's queue. Whoever is measured never saw them.
lost() { # INTERFACE
	in_netns xdp ethtool -S "$1p" | awk '/_xdp_xmit_errors:/ {n += $2} END {print n + 0}'
}
check_count() { # INTERFACE COUNTED
	local all=${sent[$1]:-0} lost
	lost=$(lost "$1")
	[ "$2" = $((all - lost)) ] ||
		die "on $1 $((all - lost)) packets arrived and $2 were counted: its figures are wrong"
	[ $((lost * 1000)) -le "$all" ] ||
		note "$lost of $all frames to $1 were lost on the way, and cost less than they should"
}
xdp_check() {
	local i
	sleep 0.2
	for i in ports mixed10 mixed1000 mixed10000 payload10 overlap1000 overlap10000 \
		set1000 set$many tonat toipip togue lports lmixed rti; do
		[ -z "$ax" ] || check_count "$i" "$(ax_counted "$i")"
	done
	check_count lxf "$dropped"
	check_count nports "$(nft_counted nports)"
	check_count nmixed "$(nft_counted nmixed)"
	check_count nset "$(nft_counted nset)"
}

# --- measuring ---
# xdp_run CASE INTERFACE OPTION... COMMAND...: records net time, and its parts
xdp_run() {
	local name=$1 iface=$2
	shift 2
	measured=$("${xb[@]}" "$@" 2>"$tmp/$name.err" </dev/null) ||
		die "measuring $name failed: $(tail -n 3 "$tmp/$name.err" | tr '\n' ' ')"
	record "$name" "$(jq .value <<<"$measured")"
	record "$name.nothing" "$(jq .nothing <<<"$measured")"
	record "$name.mpps" "$(jq '1000 / .program' <<<"$measured")"
	sent[$iface]=$((${sent[$iface]:-0} + $(jq .packets <<<"$measured")))
}
program() { # CASE INTERFACE OPTION... : the list of an interface on one packet
	xdp_run "$1" "$2" -n "$PACKETS" "${@:3}" filter "$pins/$2"
}
balancer() { # CASE INTERFACE [FLOWS]
	xdp_run "$1" "$2" -n "$PACKETS" -i "$2" "${vip[@]}" -e tx balancer "$pins/$2" "${@:3}"
}
# What it costs that the last of ten rules looks at eight bytes of payload, which it finds.
payload_cost() {
	local without
	program xdp.payload10.without mixed10 "${last10[@]}"
	without=$(jq .value <<<"$measured")
	program xdp.payload10 payload10 "${last10[@]}"
	record xdp.payload10.more "$(jq ".value - $without" <<<"$measured")"
}
live() { # CASE INTERFACE FRAMES OPTION...
	xdp_run "$1" "$2" -n "$3" "${@:4}" flood "$2p"
}
# Each of the thousand ports in its turn.
all_ports=(-d 10.0.0.2:10000 -P 1000)
address=(-s 158.55.121.177:53) # the first of the sets

# seconds CASE COMMAND...: sets elapsed
seconds() {
	local name=$1 begin end
	shift
	begin=$(date +%s.%N)
	"$@" >"$tmp/$name.out" 2>&1 || die "$name failed: $(tail -n 1 "$tmp/$name.out")"
	end=$(date +%s.%N)
	elapsed=$(echo "$begin $end" | awk '{printf "%.3f", $2 - $1}')
}

# Both lists in turns, while frames come. One rule of each matches them, under another name, so
# that a frame that both lists have judged counts twice, and one that neither has not at all.
swap_under_load() {
	local frames=$((8 * PACKETS)) before pid took=() list wrong
	before=$(($(ax_counted swap) + $(lost swap)))
	"${xb[@]}" -n "$frames" send swapp >"$tmp/send.out" 2>"$tmp/send.err" &
	pid=$!
	pids+=("$pid")
	while kill -0 "$pid" 2>/dev/null; do
		list=$tmp/other.yaml
		[ $((swaps % 2)) = 0 ] || list=$tmp/swap.yaml
		seconds swap taskset -c "$cpu_b" nsenter --net=/run/netns/xdp "$ax" \
			--instance "$xdp" xdp apply swap --rules "$list"
		took+=("$elapsed")
		swaps=$((swaps + 1))
	done
	wait "$pid" || die "sending frames failed: $(cat "$tmp/send.err")"
	unset 'pids[-1]'
	sleep 0.1
	wrong=$(($(ax_counted swap) + $(lost swap) - before - frames))
	record xdp.swap "$(printf '%s\n' "${took[@]}" | sort -n | awk '{v[NR] = $1}
		END {print v[int((NR + 1) / 2)]}')"
	record xdp.swap.wrong ${wrong#-}
}

xdp_cases=(xdp.ports xdp.xdpfilter xdp.mixed10 xdp.payload10 xdp.mixed1000 xdp.mixed10000
	xdp.overlap1000 xdp.overlap10000
	xdp.set1000 "xdp.set$many" xdp.hot1000 "xdp.hot$many"
	xdp.nat xdp.ipip xdp.gue xdp.natflows xdp.ipipflows
	live.ports live.xdpfilter live.mixed live.nftset live.nftports live.nftmixed
	xdp.route live.route live.kernelroute live.flowtable xdp.known xdp.unknown
	xdp.swap xdp.apply xdp.add)

measure_xdp() {
	case $1 in
	xdp.xdpfilter)
		xdp_run "$1" none -n "$PACKETS" -o "$xdpfilter" -e drop "${all_ports[@]}" xdpfilter
		;;
	live.xdpfilter)
		xdp_run "$1" lxf -n "$PACKETS" -o "$xdpfilter" "${all_ports[@]}" \
			flood lxfp lxf
		dropped=$((dropped + $(jq .dropped <<<"$measured")))
		;;
	live.nftset) live "$1" nset "$PACKETS" "${all_ports[@]}" ;;
	live.nftports) live "$1" nports $((PACKETS / 50)) "${all_ports[@]}" ;;
	live.nftmixed) live "$1" nmixed $((PACKETS / 100)) "${last1000[@]}" ;;
	*) [ -z "$ax" ] || measure_ax_xdp "$1" ;;
	esac
}
measure_ax_xdp() {
	local n=${1##*[a-z]}
	case $1 in
	xdp.ports) program "$1" ports -e drop -d 10.0.0.2:10999 ;;
	xdp.mixed10) program "$1" mixed10 "${last10[@]}" ;;
	xdp.payload10) payload_cost ;;
	xdp.mixed1000) program "$1" mixed1000 "${last1000[@]}" ;;
	xdp.mixed10000) program "$1" mixed10000 "${last10000[@]}" ;;
	xdp.overlap1000) program "$1" overlap1000 "${overlap1000[@]}" ;;
	xdp.overlap10000) program "$1" overlap10000 "${overlap10000[@]}" ;;
	xdp.set*) xdp_run "$1" "set$n" -n "$PACKETS" -e drop sources "$pins/set$n" "$n" ;;
	xdp.hot*) program "$1" "set$n" -e drop "${address[@]}" ;;
	xdp.natflows) balancer "$1" tonat 10000 ;;
	xdp.ipipflows) balancer "$1" toipip 10000 ;;
	xdp.nat | xdp.ipip | xdp.gue) balancer "$1" "to${1#xdp.}" ;;
	live.ports) live "$1" lports "$PACKETS" "${all_ports[@]}" ;;
	xdp.route)
		xdp_run "$1" rti -n "$PACKETS" -i rti -p udp -s 10.91.1.2:5 -d 10.91.2.2:9 \
			-e redirect balancer "$pins/rti"
		;;
	xdp.known) flow_known "$1" ;;
	xdp.unknown) program "$1" flo -e drop -p udp -s 10.94.2.2:9 -d 10.94.1.2:6 ;;
	live.route) routed_frames "$1" rt 91 "$PACKETS" ;;
	live.kernelroute) routed_frames "$1" kf 92 $((PACKETS / 5)) ;;
	live.flowtable) route_by_flowtable "$1" ;;
	live.mixed) live "$1" lmixed "$PACKETS" "${last1000[@]}" ;;
	xdp.swap) swap_under_load ;;
	xdp.apply)
		seconds "$1" ax_xdp apply more --rules "$tmp/more.yaml"
		record "$1" "$elapsed"
		;;
	xdp.add)
		seconds "$1" ax_xdp set add more "203.0.$round.0/24"
		record "$1" "$elapsed"
		;;
	esac
}

# --- the table's rows ---
xdp_rows() {
	local filter='xdp-filter, 1000 ports' nftset='nftables netdev, a set of 1000 ports'
	row 'a program that does nothing' ns xdp.ports.nothing '' '' '' ''
	row '1000 dropped ports' ns xdp.ports "$filter" xdp.xdpfilter '<=' 0.3
	row 'eight bytes of payload in the last of 10 rules, added' ns xdp.payload10.more '' '' '<=' 8
	row '1000 mixed rules, the last hits' ns xdp.mixed1000 '10 rules' xdp.mixed10 '<=' 1.5
	row '1000 mixed rules, the last hits' ns xdp.mixed1000 '' '' '<=' 50
	row '10000 mixed rules, the last hits' ns xdp.mixed10000 '1000 rules' xdp.mixed1000 \
		'<=' 1.3
	row '1000 that overlap, the last hits' ns xdp.overlap1000 '10 rules' xdp.mixed10 '<=' 1.5
	row '10000 that overlap, the last hits' ns xdp.overlap10000 '1000 rules' \
		xdp.overlap1000 '<=' 1.3
	row '10000 that overlap, the last hits' ns xdp.overlap10000 '10 rules' xdp.mixed10 '<=' 1.5
	row "set of $many, any address hits" ns xdp.set$many 'set of 1000' xdp.set1000 '<=' 3
	row "set of $many, one address hits" ns xdp.hot$many 'set of 1000' xdp.hot1000 '' ''
	row 'balance by NAT, one flow' ns xdp.nat '' '' '<=' 45
	row 'balance by IPIP, one flow' ns xdp.ipip '' '' '<=' 45
	row 'balance by GUE, one flow' ns xdp.gue '' '' '<=' 45
	row 'balance by NAT, any of 10000 flows' ns xdp.natflows '' '' '<=' 110
	row 'balance by IPIP, any of 10000 flows' ns xdp.ipipflows '' '' '<=' 110
	row 'state of a flow that is forwarded' ns xdp.known '' '' '<=' 60
	row 'state of no flow' ns xdp.unknown '' '' '<=' 90
	row 'live drop, 1000 ports' Mpps live.ports.mpps "$filter" live.xdpfilter.mpps '>=' 1.2
	row 'live drop, 1000 ports' Mpps live.ports.mpps "$nftset" live.nftset.mpps '>=' 3
	row 'live drop, 1000 ports' Mpps live.ports.mpps 'nftables netdev, 1000 rules' \
		live.nftports.mpps '>=' 3
	row 'live drop, 1000 mixed rules' Mpps live.mixed.mpps "$filter" live.xdpfilter.mpps \
		'>=' 1.2
	row 'live drop, 1000 mixed rules' Mpps live.mixed.mpps "$nftset" live.nftset.mpps '>=' 3
	row 'live drop, 1000 mixed rules' Mpps live.mixed.mpps 'nftables netdev, the same rules' \
		live.nftmixed.mpps '>=' 3
	row 'live drop, net, 1000 ports' ns live.ports "$filter" live.xdpfilter '' ''
	row 'live drop, net, 1000 ports' ns live.ports "$nftset" live.nftset '' ''
	row 'route, the program' ns xdp.route '' '' '<=' 120
	row 'live routing' Mpps live.route.mpps 'the kernel'\''s forwarding' live.kernelroute.mpps \
		'>=' 1.7
	row 'live routing' Mpps live.route.mpps 'an nftables flowtable' live.flowtable.mpps '' ''
	row 'live routing, net' ns live.route 'the kernel'\''s forwarding' live.kernelroute '' ''
	row 'swap of a list of 10000 rules under load' s xdp.swap '' '' '<=' 0.3
	row 'frames then judged by neither or both' frames xdp.swap.wrong '' '' '<=' 0
	row "apply of a list with a set of $many" s xdp.apply '' '' '' ''
	row 'one element more in that set' s xdp.add '' '' '<=' 0.005
}
