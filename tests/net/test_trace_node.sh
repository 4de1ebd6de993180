#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Probes in a large C++ program: Node.js, by names without their arguments, and its JIT's code in
# call stacks.
. "$(dirname "$0")/lib.sh"
need node jq

# Debian's program is small: all of it is in libraries, whose static functions have no names.
node=$(readlink -f "$(command -v node)")
library() { # NAME: which file has its functions
	local file
	file=$(ldd "$node" | sed -n "s/.* => \\(.*$1[^ ]*\\) .*/\\1/p")
	echo "${file:-$node}"
}
file=$(library libnode)
uv=$(library libuv)
trace() {
	ax trace "$@" 2>&1
}
cd "$T" || exit # with some options Node.js writes files into the directory that it runs in
like "a function by its name without arguments" "$(trace list "uprobe:$file:node::Start")" \
	"node::Start\(int, char\*\*\)"
out=$(trace count "uprobe:$file:node::Start" -c "$node -e 0")
is "it is called once" "$(tail -n 1 <<<"$out")" "1 event, 1 received, 0 dropped"
echo "require('fs').statSync('/')" >"$T/stat.js"
out=$(trace count "uprobe:$file:node::fs::*" -c "$node $T/stat.js")
like "all functions of a namespace" "$out" "node::fs::BindingData"
out=$(trace watch "uprobe:$uv:uv_fs_stat" arg2:string -c "$node $T/stat.js")
like "a system call's function, with the file's name" "$out" 'uv_fs_.?stat .*"/"'
cat >"$T/busy.js" <<'EOF'
function spin(n) { let s = 0; for (let i = 0; i < n; i++) s += new Date(i).toString().length; return s; }
require('fs').writeFileSync(process.argv[2], String(process.pid));
for (let i = 0; i < 20; i++) spin(500);
setTimeout(() => {}, 500); // so that it can still be asked what is where in it
EOF
out=$(ax trace count "uprobe:$file:v8::internal::Builtin_Date*" by ustack -o json \
	-c "$node --perf-basic-prof --interpreted-frames-native-stack $T/busy.js $T/pid" 2>"$T/err" | head -n 1)
rm -f "/tmp/perf-$(cat "$T/pid").map"
ok "call stacks go through what the JIT made" test "$(jq '[.table[].key.ustack[] |
	select(contains("spin"))] | length' <<<"$out")" -gt 0
done_testing
