#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Probes that have names: by hand (ax trace add, ls, view, enable, disable, reset, rm) and of the
# config; the flight recorder; what becomes of them when the agent dies, the file is replaced, the
# app is started anew.
. "$(dirname "$0")/lib.sh"
need jq gcc

[ -e /sys/bus/event_source/devices/uprobe ] || skip_all "missing kernel feature uprobes"

# --- what is probed: calls work(FROM), work(FROM + 1) ... COUNT times ---
cat >"$T/prog.c" <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) long work(long n, const char *s)
{
	__asm__ volatile("" : : "r"(s));
	return n * EXTRA;
}
#if EXTRA == 3
__attribute__((noinline)) long work_more(long n)
{
	__asm__ volatile("" : : "r"(n));
	return n;
}
#endif
int main(int argc, char **argv)
{
	long n = atol(argv[1]), from = argc > 2 ? atol(argv[2]) : 0;
	char text[32];

	for (long i = from; i < from + n; i++) {
		snprintf(text, sizeof(text), "item %ld", i);
		work(i, text);
#if EXTRA == 3
		work_more(i);
#endif
	}
	if (argc > 3)
		pause();
	return 0;
}
EOF
make_prog() { # FILE EXTRA
	gcc -O2 -DEXTRA="$2" -o "$1" "$T/prog.c" || { echo "Bail out! gcc failed"; exit 1; }
}
P=$T/prog
make_prog "$P" 2
ROOT=/sys/fs/bpf/$INST-trace

# Each event of the probe: its first value.
args() {
	ax trace view "$@" -o json 2>/dev/null | jq -r 'select(.values) | .values.arg0' | tr '\n' ' '
}
field() { # NAME FIELD
	ax trace ls "$1" -o json 2>/dev/null | jq -r ".[0].$2"
}
names() {
	ax trace ls -o json | jq -r '.[].name' | tr '\n' ' '
}
links() { # of the instance's probes
	find "$ROOT" -name 'link-*' 2>/dev/null | wc -l
}

# --- by hand, without an agent ---
is "without probes there is nothing to list" "$(names)" ""
ok "a probe is added" ax trace add w "uprobe:$P:work" arg0 arg1:string --last 5
"$P" 3
is "it goes on without its maker" "$(args w)" "0 1 2 "
"$P" 9 10
is "of 12 events exactly the last 5 are kept" "$(args w)" "14 15 16 17 18 "
is "all are counted" "$(field w events)" 12
is "none are dropped" "$(field w dropped)" 0
is "-n: only the last ones" "$(args w -n 2)" "17 18 "
like "as text" "$(ax trace view w -n 1 2>&1)" \
	'work arg0=18 arg1="item 18"'$'\n''12 events, 1 shown, 0 dropped$'
ax trace view w -o json -O "$T/out" && is "-O: into a file" "$(grep -c item "$T/out")" 5
is "the list shows it" "$(names)" "w "
is "its text is canonical" "$(field w probe)" "uprobe:$P:work arg0 arg1:string"

ok "it is disabled" ax trace disable w
is "so the list says" "$(field w state)" disabled
is "nothing of it is attached" "$(links)" 0
"$P" 4 100
is "it sees nothing then" "$(args w)" "14 15 16 17 18 "
like "and the view says that" "$(ax trace view w 2>&1)" "; disabled$"
ok "disabling it again is no mistake" ax trace disable w
ok "it is enabled" ax trace enable w
"$P" 2 200
is "it goes on with what it had" "$(args w)" "16 17 18 200 201 "
is "counts too" "$(field w events)" 14
ok "enabling it again is no mistake" ax trace enable w
"$P" 1 300
is "each event is seen once then" "$(field w events)" 15
ok "it is reset" ax trace reset w
is "nothing is left" "$(field w events)/$(args w)" "0/"
"$P" 1 400
is "and it goes on" "$(args w)" "400 "

# --- following ---
bg "$T/follow" timeout --foreground 60 "$AX" --instance "$INST" trace view w -f -o json
FOLLOW=$BG
wait_for "grep -q 400 '$T/follow'"
"$P" 3 500
ok "-f shows what comes" wait_for "grep -q '\"arg0\":502' '$T/follow'"
kill -INT "$FOLLOW"
wait "$FOLLOW" 2>/dev/null
like "and ends with the summary" "$(tail -n 1 "$T/follow")" '"emitted":4,"shown":4,'

bg "$T/follow2" timeout --foreground 60 "$AX" --instance "$INST" trace view w -f
FOLLOW=$BG
wait_for "grep -q item '$T/follow2'"
ax trace reset w
ok "-f ends when there is nothing to follow any more" wait_for "! alive $FOLLOW"
wait "$FOLLOW" 2>/dev/null
like "and says so" "$(tail -n 1 "$T/follow2")" "removed, or begun anew"

# --- the other actions ---
ok "count" ax trace add c "uprobe:$P:work" 'arg0 & 1' --action count
ok "hist" ax trace add h "uprobe:$P:work" arg0 --action hist --linear 0,20,5
ok "stats" ax trace add s "uprobe:$P:work" arg0 --action stats
ok "latency" ax trace add l "uretprobe:$P:work" --action latency
cd "$T" || exit
ok "a path that is relative" ax trace add rel uprobe:./prog:work
is "is that of the file" "$(field rel probe)" "uprobe:$T/./prog:work"
cd / && ok "and so it is found again from elsewhere" ax trace enable rel
ok "it is removed" ax trace rm rel
ok "latency between two probes" ax trace add b \
	"uprobe:$P:work if arg0 == 1 to uprobe:$P:work if arg0 == 4" --action latency
ok "a tracepoint" ax trace add t tracepoint:syscalls:sys_enter_getppid "if pid == $$"
ok "one that begins disabled" ax trace add d "uprobe:$P:work" --disabled
"$P" 30
is "counts by value" "$(ax trace view c -o json | jq -c 'select(.table) | [.table[].count]')" "[15,15]"
is "the linear histogram" "$(ax trace view h -o json | jq -c 'select(.table) | [.. | .count? // empty] | add')" 30
is "statistics" "$(ax trace view s -o json | jq -c 'select(.table) | [.. | .sum? // empty] | add')" 435
is "latencies" "$(field l events)" 30
is "of which there is one" "$(ax trace view b -o json | jq -c 'select(.table) | [.. | .count? // empty] | add')" 1
"$PYTHON" -c 'import os; os.getppid()'
is "a tracepoint's condition holds" "$(field t events)" 0
is "what is disabled sees nothing" "$(field d state) $(field d events)" "disabled 0"
ax trace disable c && "$P" 10 && ax trace enable c
"$P" 1
is "a table goes on after that" "$(ax trace view c -o json | jq -c 'select(.table) | [.table[].count]')" "[16,15]"
ok "the one that was disabled is enabled" ax trace enable d
"$P" 7
is "and counts" "$(field d events)" 7

# --- armed, scoped ---
ok "one that is armed" ax trace add arm "uprobe:$P:work" arg0 \
	--armed-by "uprobe:$P:work if arg0 == 3" --disarmed-by "uprobe:$P:work if arg0 == 6"
"$P" 10
like "sees what comes between" "$(args arm)" '^(3 )?4 5 (6 )?$'
"$P" 1 0 wait &
SLEEPER=$!
BACKGROUND+=("$SLEEPER")
ok "one of a process" ax trace add pid "uprobe:$P:work" -p "$SLEEPER"
"$P" 5
is "sees no other" "$(field pid events)" 0
end "$SLEEPER"
is "it is stale when that has ended" "$(field pid state)/$(field pid why)" "stale/process $SLEEPER has ended"

# --- wrong input ---
says() { # NAME TEXT COMMAND...
	local name=$1 text=$2
	shift 2
	like "$name" "$("$@" 2>&1)" "$text"
}
says "a name is taken" "there is a probe 'w' already" ax trace add w "uprobe:$P:work"
says "a name with a dot" "'a\.b' is no name for a probe" ax trace add a.b "uprobe:$P:work"
says "no probe" "say a name and what to probe" ax trace add x
says "a text that is none" "uprob" ax trace add x "uprob:$P:work"
says "a function that is not there" "nowhere" ax trace add x "uprobe:$P:nowhere"
says "a file that is not there" "$T/none" ax trace add x "uprobe:$T/none:f"
says "an app that does not run" "no app 'web' is running" ax trace add x "uprobe:$P:work" --app web
says "latency of a tracepoint" "has no return" ax trace add x tracepoint:sched:sched_switch -a latency
says "too many records" "70000 records" ax trace add x "uprobe:$P:work" --last 70000
says "a name that is not there" "there is no probe 'x'" ax trace view x
says "enable it" "there is no probe 'x'" ax trace enable x
says "rm it" "there is no probe 'x'" ax trace rm x
says "-n of a table" "only counts" ax trace view c -n 3
is "none of that left anything" "$(find "$ROOT" -mindepth 1 -maxdepth 1 | wc -l)" 10

# --- another instance ---
OTHER=$(random_name)
INSTANCES+=("$OTHER")
ok "another instance has its own of the same name" \
	ax_in "$OTHER" trace add w "uprobe:$P:work" arg0
before=$(field w events)
"$P" 3
is "both see it" "$(($(field w events) - before))/$(ax_in "$OTHER" trace ls w -o json | jq .[0].events)" 3/3
ok "removing the other's" ax_in "$OTHER" trace rm w
"$P" 1
is "leaves ours alone" "$(($(field w events) - before))" 4
fails "nothing of the other is left" test -e "/sys/fs/bpf/$OTHER-trace"

# --- one who was stopped while changing probes ---
lock=/run/ax/$INST/trace.lock
bg "$T/lock.out" flock -F "$lock" sleep 20
wait_for "! flock -n '$lock' true"
like "others do not wait for ever" "$(ax trace disable w 2>&1)" "another ax has been changing"
kill "$BG"
wait "$BG" 2>/dev/null

# --- a file that is replaced ---
make_prog "$T/new" 2
mv "$T/new" "$P"
is "a replaced file makes it stale" "$(field w state)" stale
before=$(field w events)
"$P" 2
is "the new file is not seen" "$(($(field w events) - before))" 0
ok "until it is enabled again" ax trace enable w
"$P" 2
is "counts went on" "$(($(field w events) - before))/$(field w state)" 2/enabled
ok "by a glob" ax trace add g "uprobe:$P:work*"  --action count
"$P" 4
make_prog "$T/new" 3
mv "$T/new" "$P"
says "other functions: it begins anew" "begins anew" ax trace enable g
"$P" 5
is "with the new functions" "$(field g events)" 10

# --- a file that is written over in its place ---
cp "$P" "$T/over"
ok "a probe on a file" ax trace add over "uprobe:$T/over:work*"
touch "$T/over" && chmod 700 "$T/over"
is "that is touched stays" "$(field over state)" enabled
make_prog "$T/new" 1
cat "$T/new" >"$T/over"
says "a file that is written over is said to be" "was written over and is detached" ax trace ls over
is "and the probe is off it" "$(field over state)/$(field over enabled)" overwritten/null
before=$(field over events)
"$T/over" 3
is "so that what it holds now runs as it is" "$?/$(($(field over events) - before))" 0/0
ok "until it is attached again" ax trace enable over
"$T/over" 3
is "to what is there now" "$(field over state)/$(field over events)" "enabled/3"
ok "it is removed" ax trace rm over

ok "all are removed" ax trace rm w c h s l b t d arm pid g
fails "with their directory" test -e "$ROOT"

# --- the config ---
make_prog "$P" 2
config() {
	default_config
	cat <<-EOF
		probes:
		  - {name: lines, probe: "uprobe:$P:work arg0", last: 4}
		  - {name: sums, probe: "uprobe:$P:work arg0", action: stats}
	EOF
	cat
}
config <<-EOF >"$T/first.yaml"
	  - {name: off, probe: "uprobe:$P:work", enabled: false}
	  - {name: later, probe: "uprobe:$T/later:work arg0"}
	  - {name: ofapp, probe: "uprobe:$P:work arg0", app: web}
EOF
ok "a probe by hand before" ax trace add hand "uprobe:$P:work" arg0 --last 3
agent_start "$T/first.yaml"
state() {
	ax status -o json | jq -r --arg n "$1" '.probes[] | select(.name == $n) | .state'
}
is "the config's probes are there" "$(names)" "hand lines off sums "
is "the agent says so" "$(state lines)" attached
is "one whose file is not there is told of" "$(state later)" failed
like "also in words" "$(ax status)" "Probes +5, 3 as configured"
is "one waits for its app" "$(state ofapp)" waiting
"$P" 6
is "they see" "$(args lines)/$(field sums events)/$(field off events)" "2 3 4 5 /6/0"
is "whose they are" "$(field lines by)/$(field hand by)" config/hand

agent_kill9
"$P" 2 20
is "they go on when the agent has died" "$(args lines)" "4 5 20 21 "
ok "one is disabled meanwhile" ax trace disable sums
agent_again
"$P" 1 30
is "the next agent takes them over" "$(args lines)" "5 20 21 30 "
is "all events are counted once" "$(field lines events)" 9
is "what was disabled by hand stays so" "$(field sums state) $(field sums events)" "disabled 8"
ok "and is enabled again" ax trace enable sums

# later comes; lines changes; off is enabled; sums is not named any more
cp "$P" "$T/later"
{
	default_config
	cat <<-EOF
		probes:
		  - {name: lines, probe: "uprobe:$P:work arg0 arg1:string", last: 4}
		  - {name: off, probe: "uprobe:$P:work", enabled: true}
		  - {name: later, probe: "uprobe:$T/later:work arg0"}
		  - {name: ofapp, probe: "uprobe:$P:work arg0", app: web}
	EOF
} >"$T/second.yaml"
like "a dry run says what would be done" "$(ax config apply --dry-run "$T/second.yaml" 2>&1)" "probe"
ok "another config" ax config apply "$T/second.yaml"
is "one is removed, one came" "$(names)" "hand later lines off "
is "the changed one begins anew" "$(field lines events)" 0
"$P" 3 40
"$T/later" 2 50
is "the changed one" "$(ax trace view lines -n 1 -o json | jq -r 'select(.values) | .values.arg1')" "item 42"
is "the enabled one" "$(field off events)" 3
is "the one that came" "$(args later)" "50 51 "
is "the one by hand is as it was" "$(field hand events)" 12
before=$(field off events)
ok "the same config again" ax config apply "$T/second.yaml"
is "changes nothing" "$(field off events)" "$before"

# --- an app ---
run_app --name web -- "$P" 3 60 wait
ok "the app's first call is seen" wait_for '[ "$(args ofapp)" = "60 61 62 " ]'
"$P" 2
is "others' are not" "$(args ofapp)" "60 61 62 "
stop_app "$APP"
wait_for '! ax get apps -o json | jq -e ".[] | select(.name == \"web\")"'
run_app --name web -- "$P" 1 70 wait
ok "the next app of that name is seen by it too" wait_for '[ "$(args ofapp)" = "60 61 62 70 " ]'
stop_app "$APP"

# --- names that clash, mistakes ---
{
	default_config
	echo "probes: [{name: hand, probe: 'uprobe:$P:work'}]"
} >"$T/clash.yaml"
says "a name that was added by hand" "was added by hand" ax config apply "$T/clash.yaml"
is "that one is as it was" "$(field hand by)" hand
is "and the former ones are gone" "$(names)" "hand "
{
	default_config
	echo "probes: [{name: hand, probe: 'uprob:x'}]"
} >"$T/wrong.yaml"
says "a mistake has its line" 'wrong.yaml:3:30: probes\[0\]\.probe: found "uprob:x", expected a probe' \
	ax config check "$T/wrong.yaml"
ok "rm of one of the config's" ax config apply "$T/second.yaml"
says "says that it comes back" "comes back" ax trace rm off
cp "$T/second.yaml" "$T/$INST.yaml"
kill -HUP "$AGENT"
ok "and it does" wait_for '[ "$(field off state)" = enabled ]'
cp "$T/later" "$T/copy"
cat "$T/copy" >"$T/later" # the same bytes: nothing is wrong
is "a file that is written anew with what it had" "$(field later state)" enabled
printf x >>"$T/later"
is "one of the config's that is written over" "$(field later state)" overwritten
ok "is attached again by the next apply" ax config apply "$T/second.yaml"
is "to what is there" "$(field later state)" enabled
"$T/later" 1 80
make_prog "$T/new" 2
mv "$T/new" "$T/later"
is "a file of the config's that is replaced" "$(field later state)" stale
kill -HUP "$AGENT"
ok "is found by a reload" wait_for '[ "$(field later state)" = enabled ]'
"$T/later" 1 81
is "and what there was is kept" "$(args later)" "80 81 "
done_testing
