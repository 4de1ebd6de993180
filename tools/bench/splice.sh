# SPDX-License-Identifier: GPL-2.0-or-later
# What is measured of splicing. Sourced by run.sh, which set ax, bench, splicebench, tmp, cpu, cpu_b.
#
# Three agents, each in a network namespace of its own: one that splices, one with `off`, and one
# with `auto`. The word of the first is `forced`: on kernels whose FIONREAD is wrong for members, `on`
# is refused, and what is done with data is the same. All apps are in host mode, so that what is not
# spliced takes the very path of loopback TCP. Connections join some time after they were made;
# that time is not measured. Processor time is that of both ends.

JOIN_MS=1500		# before measuring what is spliced
LOAD_MS=1500		# of redis-benchmark and wrk
answered=131072		# bytes of a stream after which its reader answers, where it does
splice_words=(on off auto)
splice_server=10.66.9.1 # of the apps, as in config.awk's pool
splice_client=10.66.9.9

# The sizes of round trips and their targets, compared with loopback TCP.
splice_sizes=('64 0.65' '4096 0.65' '16384 0.75')
# Of streams: writes, and targets where the reader says nothing.
splice_writes=('256 0.97' '1024 0.97' '4096 0.97' '16384 1.2' '65536 1.3')

# splice_app WORD NAME COMMAND...: a server that says "ready"
splice_app() {
	local word=$1 name=$2
	shift 2
	start_server "$word-$name" nsenter --net="/run/netns/$word" "$ax" --instance "${splice_instance[$word]}" \
		run --net host --name "$name" --ip "$splice_server" -- "$@"
}
splice_run() { # WORD COMMAND...
	local word=$1
	shift
	in_netns "$word" "$ax" --instance "${splice_instance[$word]}" run --net host --name client \
		--ip "$splice_client" -- "$@"
}

splice_conf() { # NAME LISTEN
	mkdir -p "$tmp/$1"
	chmod 777 "$tmp/$1"
	cat >"$tmp/$1.conf" <<-CONFIG
		pid $tmp/$1/pid;
		error_log $tmp/$1/error.log;
		worker_processes 1;
		master_process off;
		daemon off;
		events { worker_connections 512; }
		http {
			access_log off;
			keepalive_requests 100000000;
			client_body_temp_path $tmp/$1/body;
			proxy_temp_path $tmp/$1/proxy;
			fastcgi_temp_path $tmp/$1/fastcgi;
			uwsgi_temp_path $tmp/$1/uwsgi;
			scgi_temp_path $tmp/$1/scgi;
			server {
				listen $2:7013;
				location / { return 200 "hello\n"; }
				location = /status { stub_status; }
			}
		}
	CONFIG
}
# Both are one process, whose number goes to splice_redis[PLACE] and splice_nginx[PLACE].
declare -A splice_redis=() splice_nginx=() splice_instance=()
splice_redis_command=(taskset -c "$cpu" redis-server --port 7012 --protected-mode no --save ''
	--appendonly no --dir "$tmp" --bind)
child_of() {
	local child
	child=$(tr ' ' '\n' <"/proc/$1/task/$1/children" | head -n 1)
	echo "${child:-$1}"
}
splice_answers() { # HOST PORT
	"$bench" -t 1 connect-rate "$1" "$2"
}
# listening NETNS-COMMAND... -- PORT: a server has a socket there
listening() {
	local port=${!#}
	"${@:1:$#-2}" ss -Hltn "sport = :$port" | grep -q .
}

splice_up() {
	local word
	start_server splice-plain "$splicebench" -c "$cpu" server 127.0.0.1 7011
	start_server splice-unix "$splicebench" -c "$cpu" server unix "$tmp/splice.sock"
	start redis-plain "${splice_redis_command[@]}" 127.0.0.1
	splice_redis[plain]=${pids[-1]}
	splice_conf nginx-plain 127.0.0.1
	start nginx-plain taskset -c "$cpu" nginx -c "$tmp/nginx-plain.conf"
	splice_nginx[plain]=${pids[-1]}
	wait_for 10 "the start of redis" listening env -- 7012
	wait_for 10 "the start of nginx" listening env -- 7013
	[ -n "$ax" ] || return 0
	for word in "${splice_words[@]}"; do
		splice_agent_up "$word"
	done
	start redis-on nsenter --net=/run/netns/on "$ax" --instance "${splice_instance[on]}" run --net host \
		--name redis --ip 10.66.9.2 -- "${splice_redis_command[@]}" 10.66.9.2
	wait_for 10 "the start of redis" listening in_netns on -- 7012
	splice_redis[on]=$(child_of "${pids[-1]}")
	splice_conf nginx-on 10.66.9.3
	start nginx-on nsenter --net=/run/netns/on "$ax" --instance "${splice_instance[on]}" run --net host \
		--name nginx --ip 10.66.9.3 -- taskset -c "$cpu" nginx -c "$tmp/nginx-on.conf"
	wait_for 10 "the start of nginx" listening in_netns on -- 7013
	splice_nginx[on]=$(child_of "${pids[-1]}")
}
splice_agent_up() { # WORD
	local word=$1 instance=${1:0:2}$$ said=$1
	[ "$word" != on ] || said=forced
	splice_instance[$word]=$instance
	agents+=("$instance")
	netns_add "$word"
	cat >"$tmp/splice-$word.yaml" <<-CONFIG
		agent:
		  pool: {ipv4: 10.66.128.0/17}
		  dns: {enabled: false}
		  splice: $said
	CONFIG
	start_agent "$instance" "$tmp/splice-$word.yaml" nsenter "--net=/run/netns/$word"
	splice_app "$word" talk "$splicebench" -c "$cpu" server "$splice_server" 7011
	splice_app "$word" close "$bench" -c "$cpu" server close 7001
}

# --- cases: splice.rr.SIZE.CPUS.WAY, splice.stream.SIZE.ANSWERED.CPUS.WAY, splice.load.NAME.CPUS.WAY,
# splice.conn.WAY, splice.stall.WAY; each is recorded with its processor time, as CASE.cpu ---
splice_cases=()
splice_cases_of() {
	local size target way n every
	for n in 1 2; do
		while read -r size target; do
			splice_cases+=("splice.rr.$size.$n".{plain,unix,on})
		done < <(printf '%s\n' "${splice_sizes[@]}")
		for way in redis1 redis16 wrk; do
			splice_cases+=("splice.load.$way.$n".{plain,on})
		done
	done
	for every in 0 "$answered"; do
		while read -r size target; do
			splice_cases+=("splice.stream.$size.$every.2".{plain,on})
		done < <(printf '%s\n' "${splice_writes[@]}")
		splice_cases+=("splice.stream.65536.$every.1".{plain,on})
	done
	splice_cases+=(splice.conn.{on,off,auto} splice.stall.on)
	for way in off auto; do
		splice_cases+=("splice.rr.64.1.$way" "splice.rr.16384.1.$way" "splice.stream.65536.0.2.$way")
	done
}
splice_cases_of

# splice_bench CASE COMMAND...: records what it says of time and of processor time
splice_bench() {
	local name=$1 line
	shift
	line=$("$@" 2>"$tmp/$name.err" </dev/null) ||
		die "measuring $name failed: $(tail -n 3 "$tmp/$name.err" | tr '\n' ' ')"
	record "$name" "$(jq -e .value <<<"$line")"
	[ "$(jq .cpu <<<"$line")" = null ] || record "$name.cpu" "$(jq .cpu <<<"$line")"
}

# splice_to CASE WAY CPUS OPTION... MODE: the client of splicebench, by that way
splice_to() {
	local name=$1 way=$2 client_cpu=$cpu warm=100
	[ "$3" = 1 ] || client_cpu=$cpu_b
	shift 3
	[ "$way" != on ] || warm=$JOIN_MS
	local command=("$splicebench" -c "$client_cpu" -w "$warm" -t "$MILLISECONDS" "$@")
	case $way in
	plain) splice_bench "$name" "${command[@]}" 127.0.0.1 7011 ;;
	unix) splice_bench "$name" "${command[@]}" unix "$tmp/splice.sock" ;;
	*) splice_bench "$name" splice_run "$way" "${command[@]}" "$splice_server" 7011 ;;
	esac
}

# splice_load CASE WAY CPUS NAME
splice_load() {
	local name=$1 way=$2 client_cpu=$cpu host=127.0.0.1 run=() command
	[ "$3" = 1 ] || client_cpu=$cpu_b
	[ "$way" = plain ] || run=(splice_run on)
	case $4 in
	redis*)
		[ "$way" = plain ] || host=10.66.9.2
		command=("$splicebench" -w "$JOIN_MS" -t "$LOAD_MS" -p "${splice_redis[$way]}" -q redis load
			"$host" 7012 redis-benchmark -h "$host" -p 7012 -c 50 -P "${4#redis}" -t set
			-n 1000000000 -q)
		;;
	wrk)
		[ "$way" = plain ] || host=10.66.9.3
		command=("$splicebench" -w "$JOIN_MS" -t "$LOAD_MS" -p "${splice_nginx[$way]}" -q nginx load
			"$host" 7013 wrk -t 1 -c 100 -d 30 --latency "http://$host:7013/")
		;;
	esac
	splice_bench "$name" "${run[@]}" taskset -c "$client_cpu" "${command[@]}"
	[ "$4" != wrk ] || record "$name.p99" "$(splice_p99 "$tmp/$name.err")"
}
# In ns: wrk says "99%    1.23ms"
splice_p99() {
	awk '$1 == "99%" {
		unit = $2 ~ /us$/ ? 1e3 : $2 ~ /ms$/ ? 1e6 : 1e9
		printf "%d\n", $2 * unit
	}' "$1"
}

measure_splice() { # CASE
	local what size n way every
	case $1 in
	splice.rr.*)
		IFS=. read -r _ what size n way <<<"$1"
		splice_to "$1" "$way" "$n" -s "$size" rr
		;;
	splice.stream.*)
		IFS=. read -r _ what size every n way <<<"$1"
		splice_to "$1" "$way" "$n" -s "$size" -a "$every" stream
		;;
	splice.load.*)
		IFS=. read -r _ what size n way <<<"$1"
		splice_load "$1" "$way" "$n" "$size"
		;;
	splice.stall.*) splice_to "$1" "${1##*.}" 2 stall ;;
	splice.conn.*)
		measure "$1" splice_run "${1##*.}" "$bench" -c "$cpu" -t "$MILLISECONDS" \
			connect-rate "$splice_server" 7001
		;;
	esac
}

splice_rows() {
	local tcp='loopback TCP' socket='a Unix socket' size target n place name text load
	for n in 1 2; do
		place='one CPU'
		[ $n = 1 ] || place='two CPUs'
		while read -r size target; do
			name=splice.rr.$size.$n
			text="$size-byte round trip, $place, spliced"
			row "$text, p50" ns "$name.on" "$tcp" "$name.plain" '<=' "$target"
			row "$text, CPU time" ns "$name.on.cpu" "$tcp" "$name.plain.cpu" '<=' "$target"
			row "$text, p50" ns "$name.on" "$socket" "$name.unix" '<=' 0.90
			row "$text, CPU time" ns "$name.on.cpu" "$socket" "$name.unix.cpu" '<=' 0.90
		done < <(printf '%s\n' "${splice_sizes[@]}")
		for load in 'redis1 0.68 redis-benchmark -P 1' 'redis16 0.82 redis-benchmark -P 16' \
			'wrk 0.68 wrk on nginx, 100 connections'; do
			read -r name target text <<<"$load"
			name=splice.load.$name.$n
			row "$text, $place: CPU time of a request" ns "$name.on.cpu" "$tcp" "$name.plain.cpu" \
				'<=' "$target"
			row "$text, $place" 1/s "$name.on" "$tcp" "$name.plain" '' ''
			[[ $name != *wrk* ]] ||
				row "$text, $place: p99" ns "$name.on.p99" "$tcp" "$name.plain.p99" '<=' 1.0
		done
	done
	while read -r size target; do
		splice_stream_rows "$size" 0 2 "stream, writes of $size bytes" '>=' "$target"
	done < <(printf '%s\n' "${splice_writes[@]}")
	splice_stream_rows 65536 0 1 'stream, writes of 65536 bytes, one CPU' '>=' 1.3
	while read -r size target; do
		splice_stream_rows "$size" "$answered" 2 "stream with answers, writes of $size bytes" '' ''
	done < <(printf '%s\n' "${splice_writes[@]}")
	splice_stream_rows 65536 "$answered" 1 'stream with answers, writes of 65536 bytes, one CPU' '' ''
	row 'connect+accept+close, splicing on' 1/s splice.conn.on off splice.conn.off '>=' 0.98
	row 'held for a reader that does not read' 'of its buffer' splice.stall.on '' '' '<=' 2
	row 'auto: connect+accept+close' 1/s splice.conn.auto off splice.conn.off '>=' 1.0
	row 'auto: 64-byte round trip p50' ns splice.rr.64.1.auto off splice.rr.64.1.off '<=' 1.0
	row 'auto: 16384-byte round trip p50' ns splice.rr.16384.1.auto off splice.rr.16384.1.off '<=' 1.0
	row 'auto: stream, writes of 65536 bytes' Gbit/s splice.stream.65536.0.2.auto off \
		splice.stream.65536.0.2.off '>=' 1.0
}
splice_stream_rows() { # SIZE ANSWERED CPUS TEXT DIRECTION TARGET
	local name=splice.stream.$1.$2.$3
	row "$4" Gbit/s "$name.on" 'loopback TCP' "$name.plain" "$5" "$6"
	row "$4: CPU time of a MiB" ns "$name.on.cpu" 'loopback TCP' "$name.plain.cpu" '' ''
}
