#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# tests/run finds what a whole run, from building on, left in the tree, and which skips are failures.
. "$(dirname "$0")/lib.sh"

mkdir -p "$T/tree/tests/net" "$T/tree/.output"
cp "$TOP/tests/run" "$T/tree/tests/"
cat >"$T/tree/tests/net/test_one.sh" <<'EOF'
cd "$(dirname "$0")/../.." || exit 1
eval "$LEAVE"
echo "ok 1 - one"
echo 1..1
EOF
# whole LEAVE [FILES]: a run of a test that does this
whole() {
	env -u ONLY -u QUICK -u OUT LEAVE="$1" FILES="${2:-}" bash "$T/tree/tests/run" net 2>&1
}
found="not ok 1 - nothing is left behind"

unlike "a run that leaves nothing" "$(whole :)" "$found"
like "a file at the top" "$(whole 'touch isolate-1.log')" "$found.*file isolate-1\.log"
unlike "what was there before is not of this run" "$(whole :)" "$found"
like "a directory below" "$(whole 'mkdir tests/net/left')" "$found.*file tests/net/left"
unlike "what is built may stay" "$(whole 'touch .output/built')" "$found"
bash "$T/tree/tests/run" --files >"$T/files"
touch "$T/tree/core" # by building, say
like "what came before the tests, but after the list" "$(whole : "$T/files")" "$found.*file core"
rm "$T/tree/core"
# in this script's own network: what an ax beside the run has is not the run's, whenever it ends
cp /bin/sleep "$T/ax"
unlike "somebody's ax that ends during the run" \
	"$("$T/ax" 600 & whole "kill $!; while [ -e /proc/$!/exe ]; do sleep 0.1; done")" "$found"
like "a rule is found" "$(whole 'ip rule add prio 7 lookup 7')" "$found.*rule 7:"
ip rule del prio 7

# what a skip counts as, where all was installed
skips() { CI=$1 whole "echo 'ok 1 - other # SKIP $2'; echo 1..2; echo 'ok 2 - a'; exit" | tail -n 1; }
is "a skip is none of a failure" "$(skips '' 'missing program x')" "2 passed, 0 failed, 1 skipped"
is "it is one where all was installed" "$(skips true 'missing program x')" "2 passed, 1 failed, 1 skipped"
is "but for what the kernel has not" "$(skips true 'missing kernel feature x')" "2 passed, 0 failed, 1 skipped"
is "or was not given" "$(skips true 'missing controller x')" "2 passed, 0 failed, 1 skipped"
done_testing
