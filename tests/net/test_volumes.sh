#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax run -v, --read-only, --memory, --cpus, --pids: what an app sees of files and may use.
. "$(dirname "$0")/lib.sh"
need jq python3

# not in /tmp, which read-only apps have for themselves
mount -t tmpfs tmpfs /mnt
M=/mnt
mkdir "$M/data" "$M/data/sub" "$M/at" "$M/mounted"
echo there >"$M/data/file"
echo at first >"$M/at/first"
touch "$M/at.file"
mount -t tmpfs tmpfs "$M/data/sub"
echo below >"$M/data/sub/file"
mount -t tmpfs tmpfs "$M/mounted"
chmod 777 "$M/mounted" "$M/data"

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
apps:
  known:
    volumes: ["$M/data:$M/at:ro"]
    read-only: yes
EOF
mounts=$(cat /proc/self/mountinfo)
for mode in private host; do
	run=(in_app --net "$mode")
	is "$mode: -v: a directory in another place, with what is mounted below it" \
		"$("${run[@]}" -v "$M/data:$M/at" -- cat "$M/at/file" "$M/at/sub/file" | xargs)" "there below"
	is "$mode: -v: of a file" "$("${run[@]}" -v "$M/data/file:$M/at.file" -- cat "$M/at.file")" there
	is "$mode: -v: it can be written" "$("${run[@]}" -v "$M/data:$M/at" -- sh -c \
		"echo $mode >$M/at/written"; cat "$M/data/written")" $mode
	is "$mode: -v :ro: it cannot" "$("${run[@]}" -v "$M/data:$M/at:ro" -- sh -c \
		"echo no >$M/at/written; echo no >$M/at/sub/file" 2>&1 | grep -c 'Read-only')" 2
	is "$mode: -v: a relative source is the caller's" \
		"$(cd "$M/data" && "${run[@]}" -v ".:$M/at" -- cat "$M/at/file")" there
	is "$mode: -v: two of them, the second in the first" "$("${run[@]}" -v "$M/data:$M/at" \
		-v "$M/at:$M/at/sub" -- cat "$M/at/file" "$M/at/sub/first" | xargs)" "there at first"
	is "$mode: -v: and a directory there to begin in" \
		"$("${run[@]}" -v "$M/data:$M/at" -w "$M/at" -- cat file)" there
	out=$("${run[@]}" -v "$M/data:$M/none" -- true 2>&1)
	is "$mode: -v: no such target" "$?" 125
	like "$mode: -v: as a sentence says" "$out" "cannot put a volume at $M/none"
	out=$("${run[@]}" -v "$M/none:$M/at" -- true 2>&1)
	is "$mode: -v: no such source" "$?" 2
	like "$mode: -v: as a sentence says" "$out" "$M/none.* as its source"
	for wrong in "$M/data" "$M/data:at" "$M/data:$M/at:rx" "$M/data:/" ":$M/at"; do
		"${run[@]}" -v "$wrong" -- true >"$T/out" 2>&1
		is "$mode: -v: not '${wrong//$M/T}'" "$?" 2
	done

	# read-only
	like "$mode: --read-only: files" "$("${run[@]}" --read-only -- touch "$M/new" 2>&1)" "Read-only"
	like "$mode: --read-only: other file systems" "$("${run[@]}" --read-only -- touch "$M/mounted/new" 2>&1)" \
		"Read-only"
	like "$mode: --read-only: /run" "$("${run[@]}" --read-only -- touch /run/new 2>&1)" "Read-only"
	is "$mode: --read-only: /tmp is empty and can be written" \
		"$("${run[@]}" --read-only -- sh -c 'echo x >/tmp/mine; ls /tmp')" mine
	is "$mode: --read-only: devices and /proc are there" "$("${run[@]}" --read-only -- sh -c \
		'echo x >/dev/null && echo 100 >/proc/self/oom_score_adj && cat /proc/self/oom_score_adj')" 100
	is "$mode: --read-only: as another user" "$("${run[@]}" --read-only -u nobody -- sh -c \
		"echo x >/tmp/mine && cat /tmp/mine; touch $M/mounted/new" 2>&1 | tr '\n' ' ' | sed 's/touch.*Read-only.*/refused/')" \
		"x refused"
	is "$mode: --read-only: a volume can be written" "$("${run[@]}" --read-only -v "$M/data:$M/at" -v "$M/data:/tmp" -- \
		sh -c 'echo more >/tmp/written'; cat "$M/data/written")" more
	like "$mode: --read-only: one that is :ro not" "$("${run[@]}" --read-only -v "$M/data:/tmp:ro" -- \
		touch /tmp/new 2>&1)" "Read-only"
	# what is mounted while it runs
	ax run --net $mode --detach --read-only --name stays -- sleep 1000 >/dev/null
	mount -t tmpfs tmpfs "$M/at"
	like "$mode: --read-only: what is mounted later is not there" \
		"$(timeout 20 "$AX" --instance "$INST" exec stays touch "$M/at/new" 2>&1)" "Read-only"
	umount "$M/at"
	is "$mode: exec: sees the app's files" "$(timeout 20 "$AX" --instance "$INST" exec stays ls /tmp)" ""
	is "$mode: shown" "$(ax ps -o json stays | jq -c '.[0] | [.read_only, .volumes]')" '[true,[]]'
	ax stop stays >/dev/null

	ok "$mode: the resolver's file is there" "${run[@]}" --read-only -v "$M/data:$M/at" -- \
		grep -q nameserver /etc/resolv.conf
	leftovers "$mode: nothing is left"
done
is "the machine's own mounts stay as they are" "$(diff <(echo "$mounts") /proc/self/mountinfo)" ""
is "the config's hold" "$(in_app --name known -- sh -c "cat $M/at/file; touch $M/new" 2>&1 |
	sed 's/touch.*Read-only.*/refused/' | xargs)" "there refused"
ax run --detach --name known -- sleep 1000 >/dev/null
like "and are shown" "$(ax ps -o wide known)" "$M/data:$M/at:ro.*yes"
agent_kill9
agent_again
like "after a restart of the agent, too" "$(ax ps -o wide known)" "$M/data:$M/at:ro.*yes"
ax stop known >/dev/null

# --- limits ---

for args in "--memory x" "--memory 1" "--memory 1T" "--memory 10MB" "--cpus 0" "--cpus 0.001" "--cpus x" \
	"--cpus 1." "--pids 0" "--pids -1" "--pids 1k"; do
	# shellcheck disable=SC2086
	in_app $args -- true >"$T/out" 2>&1
	is "refused: $args" "$?" 2
	like "with a sentence: $args" "$(cat "$T/out")" "cannot be .*: give a "
done
has() { # CONTROLLER: cgroup2 has it
	grep -qw "$1" "$CGROUP2/cgroup.controllers"
}
limited() { # CONTROLLER OPTION VALUE FILE EXPECTED
	local out
	if ! has "$1"; then
		out=$(in_app "$2" "$3" -- true 2>&1)
		is "$2: without the controller it is an error" "$?" 125
		like "$2: that says which, and why" "$out" "no $1 controller in cgroup2: (cgroup v1 has it|this kernel|it is switched|whoever)"
		skip "$2: the limit" "missing controller $1"
		return
	fi
	is "$2: the limit" "$(in_app "$2" "$3" -- sh -c \
		"cat $CGROUP2\$(sed -n 's/^0:://p' /proc/self/cgroup)/$4")" "$5"
}
limited memory --memory 64m memory.max 67108864
limited cpu --cpus 0.5 cpu.max "50000 100000"
limited pids --pids 20 pids.max 20
if has pids; then
	like "--pids: no more than that" "$(in_app --pids 5 -- sh -c \
		'for i in 1 2 3 4 5 6 7; do sleep 5 & done; wait' 2>&1)" "fork"
	ax run --detach --pids 7 --cpus 1.5 --name small -- sleep 1000 >/dev/null
	like "shown" "$(ax ps -o wide small)" "pids=7"
	ax stop small >/dev/null
fi
if has memory; then
	in_app --memory 32M -- "$PYTHON" -c 'x = bytearray(100 << 20)' >/dev/null 2>&1
	is "--memory: whoever wants more is killed" "$?" 137
fi
leftovers "nothing is left of apps with limits"
umount "$M/data/sub" "$M/mounted" /mnt
done_testing
