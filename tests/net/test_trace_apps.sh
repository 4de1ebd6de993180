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
like "an app that does not run is told" "$(trace count "uprobe:$T/loop:step" if 'app == "third"')" \
	"no app 'third' is running"
like "also for --app" "$(trace count "uprobe:$T/loop:step" --app third)" "no app 'third' is running"
done_testing
