# SPDX-License-Identifier: GPL-2.0-or-later
# A cluster of many nodes, for the record: a real etcd has what NODES nodes with NODE_APPS apps each
# would have written, one agent reads it all, and follows it while apps of another one come and go.
# Sourced by run.sh.
NODES=${NODES:-1000}
NODE_APPS=${NODE_APPS:-100}
CHURN_SECONDS=${CHURN_SECONDS:-10}
watcher=w$$
coming=g$$
etcd_url=http://127.0.0.1:7379

# etcd_post PATH [BODY]
etcd_post() {
	curl -sS --fail --max-time 60 -d "${2:-{\}}" "$etcd_url/v3/$1"
}

cluster_config() { # NODE ADDRESS
	printf '%s\n' 'cluster:' '  name: many' "  etcd: [\"$etcd_url\"]" '  pool: 10.128.0.0/12' \
		"  node: {name: $1, address: $2}"
}

# What they would have written, all under one lease, in transactions of a hundred keys.
records() { # LEASE
	jq -nc --argjson nodes "$NODES" --argjson apps "$NODE_APPS" --arg lease "$1" '
		def id: "0000000000000000000000000000" + (. + 10000 | tostring | .[1:]);
		def put($lease): {request_put: ({key: (.[0] | @base64), value: (.[1] | tojson | @base64)} +
			if $lease then {lease: $lease} else {} end)};
		range($nodes) as $n | "node\($n)" as $node | "10.\(129 + ($n / 256 | floor)).\($n % 256)" as $net |
		[(["/ax/many/nodes/\($node)", {v: 1, name: $node, id: ($n | id), since: 1700000000, version: "0.1",
			address: "10.99.\($n / 256 | floor).\($n % 256)"}] | put($lease)),
		 (["/ax/many/blocks/\($net).0-24", {v: 1, prefix: "\($net).0/24", node: $node, id: ($n | id)}] | put(null)),
		 (range($apps) as $a | ["/ax/many/apps/\($node)/\($a + 1)", {v: 1, node: $node, name: "app\($a)-\($n)",
			id: ($a + 1), net: "private", since: 1700000000, labels: "tier=back,zone=z\($n % 3)",
			ip4: "\($net).\($a + 1)", ports: [{proto: "tcp", port: 8080}]}] | put($lease))] |
		_nwise(100) | {success: .}'
}

# Its directory is in memory: /run is run.sh's own.
etcd_filled() {
	local lease
	mkdir -p "$tmp/fill"
	start etcd etcd --name e --data-dir /run/etcd --listen-client-urls "$etcd_url" \
		--advertise-client-urls "$etcd_url" --listen-peer-urls http://127.0.0.1:7380 \
		--initial-advertise-peer-urls http://127.0.0.1:7380 --initial-cluster e=http://127.0.0.1:7380
	wait_for 30 "etcd's answer" etcd_post kv/range '{"key": "AA=="}'
	lease=$(etcd_post lease/grant '{"TTL": 100000}' | jq -r .ID)
	records "$lease" | split -l 1 -a 5 - "$tmp/fill/"
	for body in "$tmp/fill"/*; do
		printf 'next\nurl = "%s/v3/kv/txn"\ndata = "@%s"\noutput = /dev/null\nfail\n' "$etcd_url" "$body"
	done | tail -n +2 >"$tmp/fill.curl"
	curl -sS --fail-early -K "$tmp/fill.curl" 2>"$tmp/fill.err" || die "etcd was not filled: $(tail -n 1 "$tmp/fill.err")"
	rm -r "$tmp/fill"
}

cluster_has() { # INSTANCE FILTER
	axi "$1" status -o json 2>/dev/null | jq -e ".cluster | $2" >/dev/null
}
# How many times anybody wrote to etcd.
etcd_writes() {
	curl -sS --fail "$etcd_url/metrics" | awk '$1 == "etcd_server_proposals_applied_total" {printf "%.0f\n", $2}'
}

# What was started last, and it alone.
stop_last() {
	kill -TERM "${pids[-1]}"
	wait "${pids[-1]}" || true
	unset 'pids[-1]'
}

# Apps of another node that come and go, a hundred of each a second.
churned() {
	local i=0 until writes ticks begin
	cluster_config coming 10.99.250.2 >"$tmp/coming.yaml"
	agents+=("$coming")
	start_agent "$coming" "$tmp/coming.yaml"
	wait_for 60 "the second node's block" cluster_has "$coming" '.blocks | length > 0'
	writes=$(etcd_writes) ticks=$(cpu_ticks "$watcher_pid") begin=$(now_us)
	until=$((begin + CHURN_SECONDS * 1000000))
	while [ "$(now_us)" -lt "$until" ]; do
		axi "$coming" run --net host --name "a$i" -- sleep 0.5 >/dev/null 2>"$tmp/coming.err" &
		i=$((i + 1))
		while [ $(($(now_us) - begin)) -lt $((i * 10000)) ]; do sleep 0.002; done
	done
	round=1
	record cluster.churn "$(awk -v n=$i -v s="$CHURN_SECONDS" 'BEGIN {printf "%.1f", n / s}')"
	record cluster.writes "$(awk -v n=$(($(etcd_writes) - writes)) -v s="$CHURN_SECONDS" 'BEGIN {printf "%.1f", n / s}')"
	record cluster.cpu "$(awk -v t=$(($(cpu_ticks "$watcher_pid") - ticks)) -v hz="$(getconf CLK_TCK)" \
		-v us=$(($(now_us) - begin)) 'BEGIN {printf "%.2f", 100 * t / hz / (us / 1e6)}')"
	wait_for 30 "the last app's end" cluster_has "$watcher" ".apps <= $((NODES * NODE_APPS))"
}

measure_cluster() {
	local begin
	[ -n "$ax" ] || return 0
	measure_ways
	etcd_filled
	cluster_config watcher 10.99.250.1 >"$tmp/watcher.yaml"
	agents+=("$watcher")
	for round in 1 2 3; do
		begin=$(now_us)
		start_agent "$watcher" "$tmp/watcher.yaml"
		watcher_pid=$agent_pid
		wait_for 120 "all apps" cluster_has "$watcher" ".current and .apps >= $((NODES * NODE_APPS))"
		record cluster.resync "$(awk -v us=$(($(now_us) - begin)) 'BEGIN {printf "%.3f", us / 1e6}')"
		record cluster.rss "$(rss_mib "$watcher_pid")"
		[ "$round" = 3 ] || stop_last
	done
	churned
	{
		way_rows
		cluster_rows
	} >"$tmp/rows.cluster"
}
cluster_rows() {
	row "$NODES nodes with $NODE_APPS apps each: all read" s cluster.resync '' '' '<=' 5
	row "resident memory of the agent that has them" MiB cluster.rss '' '' '<=' 128
	row 'apps that come and go elsewhere' 1/s cluster.churn
	row 'writes to etcd meanwhile' 1/s cluster.writes
	row 'processor time of the agent that follows' % cluster.cpu
}
