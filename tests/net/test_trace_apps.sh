#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Probes and the apps of `ax run`: values that are apps, conditions, and --app.
. "$(dirname "$0")/lib.sh"
need gcc jq

cat >"$T/loop.c" <<'EOF'
#include <unistd.h>
__attribute__((noinline)) int step(int n) { __asm__ volatile("" ::: "memory"); return n + 1; }
int main(void)
{
	for (int n = 0;; n = step(n))
		usleep(10000);
}
EOF
gcc -O1 -o "$T/loop" "$T/loop.c"
agent_start
for name in first second; do
	run_app --name "$name" -- "$T/loop"
done
bg "$T/alone" "$T/loop"
launched first second || not_ok "the apps start"

trace() {
	ax trace "$@" 2>&1
}
json() {
	ax trace "$@" -o json 2>"$T/json.err"
}
out=$(json count "uprobe:$T/loop:step" by app -d 1s | head -n 1)
is "what happens is counted by app" \
	"$(jq -r '[.table[] | select(.count > 10) | .key.app] | sort | join(" ")' <<<"$out")" \
	"- first second"
out=$(json watch "uprobe:$T/loop:step" app if 'app == "second"' -n 20)
is "a condition takes one app" "$(jq -rs 'map(.values.app // empty) | unique | join(" ")' <<<"$out")" \
	second
out=$(json watch "uprobe:$T/loop:step" app --app first -n 20)
is "--app does, too" "$(jq -rs 'map(.values.app // empty) | unique | join(" ")' <<<"$out")" first
run_app --name second -- "$T/loop"
wait_for '[ "$(ax get apps -o json | jq "[.[] | select(.name == \"second\")] | length")" = 2 ]'
out=$(json count "uprobe:$T/loop:step" by pid --app second -d 500ms)
is "all apps of a name" "$(jq -rs '.[0].table | length' <<<"$out")" 2
ax trace add steps "uprobe:$T/loop:step" by pid -a count --app second
ok "also of a probe that stays" wait_for '[ "$(ax trace view steps -o json | jq -s ".[0].table | length")" = 2 ]'
is "which is not stale" "$(ax trace ls -o json | jq -r '.. | .stale? // empty')" ""
ax trace rm steps
like "an app that does not run is told" "$(trace count "uprobe:$T/loop:step" if 'app == "third"')" \
	"no app 'third' is running"
like "also for --app" "$(trace count "uprobe:$T/loop:step" --app third)" "no app 'third' is running"
# --- ready commands ---

out=$(json syscalls --by app --top 0 -d 1s)
# two apps that have the same name have a line each
is "system calls are counted by app" \
	"$(jq -r 'select(.syscall == "clock_nanosleep" and .count > 10) | .app' <<<"$out" | sort | tr '\n' ' ')" "- first second second "
ids=$(ax get apps -o json | jq -r '.[] | select(.name == "second") | .id' | sort -n | tr '\n' ' ')
is "and can be told from each other" "$(jq -r 'select(.syscall == "clock_nanosleep" and .app == "second") | .app_id' <<<"$out" |
	sort -n | tr '\n' ' ')" "$ids"
is "also as text, where others have their names alone" "$(trace syscalls --by app --top 0 -d 1s |
	grep -oE '^(first|second)[-0-9]* +clock_nanosleep' | cut -d' ' -f1 | sort | tr '\n' ' ')" \
	"first $(tr ' ' '\n' <<<"$ids" | sed -n 's/./second-&/p' | sort | tr '\n' ' ')"
out=$(json syscalls --by process --app second -d 1s)
is "and with --app of one, by process" "$(jq -r 'select(.syscall) | "\(.comm) \(.app)"' <<<"$out" | sort -u)" "loop second"
like "as text" "$(trace syscalls --by app --app first -d 500ms)" $'^.*APP +SYSCALL .*\nfirst +clock_nanosleep '
first=$(json syscalls --by process --app first -d 500ms | jq -r 'select(.comm == "loop") | .pid' | head -n 1)
bg "$T/signals.out" "$AX" --instance "$INST" trace signals USR2 --app first -o json -O "$T/signals" -n 1
watcher=$BG
wait_for "grep -q attached $T/signals.out"
kill -USR2 "$first" # ends it
wait_for "! alive $watcher" || kill "$watcher"
is "signals to an app have its name" "$(jq -r 'select(.to_app) | "\(.signal) \(.to_comm) \(.to_app)"' "$T/signals")" "SIGUSR2 loop first"
done_testing
