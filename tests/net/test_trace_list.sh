#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What is there to probe: functions with what they take and return, lines, variables, places of static
# probes' arguments; the same shown without being asked for; types from other files for programs that have none.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc clang g++ jq strip objcopy

cat >"$T/db.h" <<'EOF2'
struct row { int id; const char *text; struct row *next; };
long add(int n, const char *why);
struct row *find(const struct row *from, int id);
double scale(double by, int n);
EOF2
cat >"$T/db.c" <<'EOF2'
#include "db.h"
#include <stdio.h>
#include <stdlib.h>
volatile int sink;
static long sum;
__attribute__((noinline)) long add(int n, const char *why)
{
	int x = n * 3;
	sink = x;
	sink = *why;
	sum += x % 7;
	sink = n;
	return sum;
}
__attribute__((noinline)) struct row *find(const struct row *from, int id)
{
	sink = id;
	return from->id == id ? (struct row *)from : from->next;
}
__attribute__((noinline)) double scale(double by, int n)
{
	sink = n;
	return by * n;
}
int main(int argc, char **argv)
{
	struct row last = {2, "last", NULL}, first = {1, "first", &last};
	int n = argc > 1 ? atoi(argv[1]) : 3;
	for (int i = 0; i < n; i++)
		add(i, i % 2 ? "odd" : "even");
	sink = find(&first, 2)->text[0];
	return scale(1.5, n) > 1000;
}
EOF2
# line MARK: the number of the first line that has this text
line() {
	grep -nF "$1" "$T/db.c" | head -n 1 | cut -d: -f1
}

# --- functions, lines, variables: two compilers, with and without optimisation ---

for cc in gcc clang; do
	for o in -O0 -O2; do
		p=$T/db$cc$o
		"$cc" -g "$o" -o "$p" "$T/db.c"
		out=$(ax trace list "uprobe:$p:*")
		like "$cc $o: parameters and what is returned" "$out" \
			"uprobe:$p:add  long( int)? add\(int n, const char \*why\)  db\.c:6"
		like "$cc $o: structs and their pointers" "$out" \
			"struct row \*find\(const struct row \*from, int id\)"
		is "$cc $o: as JSON" "$(ax trace list "uprobe:$p:find" -o json |
			jq -c '[.returns, (.parameters[] | .name, .type), (.source | test("/db.c$")), .line > 10]')" \
			'["struct row *","from","const struct row *","id","int",true,true]'
		out=$(ax trace list "line:$p:db.c:add")
		like "$cc $o: the lines of a function" "$out" "line:$p:db\.c:$(line 'sink = x')  add"
		unlike "$cc $o: and of no other" "$out" "find|main"
		like "$cc $o: all lines of a file" "$(ax trace list "line:$p:db.c")" \
			"db\.c:$(line 'sink = id')  find"
		like "$cc $o: source files" "$(ax trace list "line:$p")" "line:$p:/.*/db\.c"
		is "$cc $o: what is listed can be probed" \
			"$(ax trace list "line:$p:db.c:add" -o json | jq -r .probe | while read -r probe; do
				ax trace explain "$probe" >/dev/null || echo "$probe"
			done)" ""
		out=$(ax trace list "line:$p:db.c:$(line 'sink = x')")
		like "$cc $o: variables of a line" "$out" "int n  parameter, (in|at) %"
		like "$cc $o: local ones" "$out" "int x  local, "
		is "$cc $o: without values a probe shows the parameters" \
			"$(trace_json watch "uprobe:$p:add" -c "$p 2" | jq -c 'select(.values) | .values')" \
			$'{"n":0,"why":"even"}\n{"n":1,"why":"odd"}'
		is "$cc $o: and its return the value" \
			"$(trace_json watch "uretprobe:$p:add" -c "$p 2" | values retval)" "0 3"
		is "$cc $o: a counter at a variable's value" \
			"$(trace_json count "line:$p:db.c:$(line 'sink = x')" 'if x == 42' -c "$p 20" | total)" "1 1 0"
		is "$cc $o: each line of a function" "$(trace_json count "line:$p:db.c:add" -c "$p 5" |
			jq -c 'select(.table) | [.table[] | .count % 5] | unique')" '[0]'
	done
done

# --- what is not there ---

p=$T/dbgcc-O2
after=$(line 'sink = n;')
out=$(ax trace explain "line:$p:db.c:$after" 'if x == 42' 2>&1)
rc=$?
if [[ $rc = 0 ]]; then
	like "x is still there: the condition is told" "$out" "only if"
else
	like "explain names the nearest lines that have it" "$out" \
		"the nearest lines? where x has a value (is|are) [0-9]"
fi
out=$(ax trace explain "line:$p:db.c:$(line 'sink = id')" 'if x == 42' 2>&1)
is "explain fails where the probe would be refused" "$?" 1
like "since there is no such variable" "$out" "has no variable x"
at=$(printf '0x%x' "$(($(ax trace list "uprobe:$p:add" -o json | jq .offset) + 1))")
out=$(ax trace explain "uprobe:$p:$at" 2>&1)
rc=$?
if ! grep -q refused <<<"$out"; then # the first instruction has one byte only
	out=$(ax trace explain "uprobe:$p:$(printf '0x%x' "$((at + 1))")" 2>&1)
	rc=$?
fi
is "also in the midst of an instruction" "$rc" 1
like "which is said" "$out" "cannot be probed"

out=$(ax trace watch "uretprobe:$p:[asf][dci]*" retval -c "$p 1" 2>&1)
like "a function that returns a float is not in the way of others" "$out" "add retval=0"
like "its value is left out" "$out" "scale.*: retval is not shown: it is returned in a floating-point|scale retval=1\.5"
out=$(ax trace count "uretprobe:$p:[asf][dci]*" retval -c "$p 1" 2>&1)
like "and where values are counted, it is" "$out" "scale is left out: retval: |scale +1\.5"

# --- C++, Go and the kernel ---

printf 'namespace n { struct box { int v; int get(const box &o, int by) const; };
__attribute__((noinline)) int box::get(const box &o, int by) const { return v + o.v + by; } }
int main(int argc, char **) { n::box b{argc}; return b.get(b, 1) == 0; }\n' >"$T/c.cc"
g++ -g -O1 -o "$T/cxx" "$T/c.cc"
like "C++" "$(ax trace list "uprobe:$T/cxx:*get*")" \
	"int n::box::get\(const box \*const this, const box &o, int by\)  c\.cc:2"
if [[ -r /sys/kernel/btf/vmlinux ]]; then
	like "the kernel's functions" "$(ax trace list kprobe:vfs_read)" \
		"ssize_t vfs_read\(struct file \*file, char \*buf, size_t count, loff_t \*pos\)"
else
	skip "the kernel's functions" "missing kernel feature CONFIG_DEBUG_INFO_BTF"
fi
if echo '#include <sys/sdt.h>' | gcc -E - >/dev/null 2>&1; then
	printf '#include <sys/sdt.h>\nint main(int argc, char **argv) { DTRACE_PROBE2(db, snapshot, argc, argv[0]); return 0; }\n' \
		>"$T/u.c"
	gcc -O1 -o "$T/u" "$T/u.c"
	like "a static probe's arguments: sign, size, place" "$(ax trace list "usdt:$T/u")" \
		"db:snapshot arg0:s32@%e[a-z]+ arg1:u64@[^ ]+"
	is "and as JSON" "$(ax trace list "usdt:$T/u" -o json | jq -c '.args[0] | [.name, .type, .fetchable]')" \
		'["arg0","s32",true]'
else
	skip "a static probe's arguments" "missing header sys/sdt.h"
fi

# --- programs without debug data ---

gcc -g -O2 -Wl,--build-id -o "$T/full" "$T/db.c"
objcopy --only-keep-debug "$T/full" "$T/full.debug"
cp "$T/full" "$T/bare"
strip --strip-debug "$T/bare"
is "a program without debug data shows no parameters" \
	"$(trace_json watch "uprobe:$T/bare:add" -c "$T/bare 1" | jq -c 'select(.probe) | .values')" '{}'
is "with a file of debug data of the same build lines are known, too" \
	"$(trace_json count "line:$T/bare:db.c:$(line 'sink = x')" 'if x == 42' --types "$T/full.debug" \
		-c "$T/bare 20" | total)" "1 1 0"
strip -o "$T/none" "$T/full"
is "and functions, where strip took their names, too" \
	"$(trace_json watch "uprobe:$T/none:add" --types "$T/full.debug" -c "$T/none 1" | jq -c 'select(.probe) | .values')" \
	'{"n":0,"why":"even"}'
like "a list has these names" "$(ax trace list "uprobe:$T/none:ad*" --types "$T/full.debug")" \
	"none:add +[a-z ]+add\(int n, const char \*why\)"
like "so has flow" "$(ax trace flow "$T/none" add --types "$T/full" -c "$T/none 1" 2>&1)" '-> add n=0 why="even"'
gcc -g -O1 -Wl,--build-id -o "$T/older" "$T/db.c"
like "a file of another build does not say where functions are" \
	"$(ax trace watch "uprobe:$T/none:add" --types "$T/older" -c "$T/none 1" 2>&1)" "has no names of functions"
gcc -g -O0 -c -o "$T/other.o" "$T/db.c"
is "with an object of another build its functions" \
	"$(trace_json watch "uprobe:$T/bare:add" --types "$T/other.o" -c "$T/bare 1" | jq -c 'select(.probe) | .values')" \
	'{"n":0,"why":"even"}'
is "their members" "$(trace_json watch "uprobe:$T/bare:find" 'from->next->text' --types "$T/other.o" \
	-c "$T/bare 1" | values 'from->next->text')" last
is "and what they return" "$(trace_json watch "uretprobe:$T/bare:find" 'retval->id' --types "$T/other.o" \
	-c "$T/bare 1" | values 'retval->id')" 2
printf '#include "db.h"\nvoid *used[] = {add, find};\n' >"$T/types.c"
gcc -g -c -o "$T/types.o" "$T/types.c"
is "a header's functions have types and names by an object in which they are used" \
	"$(trace_json watch "uprobe:$T/bare:find" --types "$T/types.o" 'from->text' id -c "$T/bare 1" |
		jq -c 'select(.probe) | .values')" '{"from->text":"first","id":2}'
like "a list has them" "$(ax trace list "uprobe:$T/bare:add" --types "$T/types.o")" \
	"add\(int n, const char \*why\)"
mv "$T/db.h" "$T/away.h"
is "types without names, when the header is away" \
	"$(trace_json watch "uprobe:$T/bare:find" --types "$T/types.o" 'arg0->text' arg1:s32 -c "$T/bare 1" |
		jq -c 'select(.probe) | .values')" '{"arg0->text":"first","arg1":2}'
mv "$T/away.h" "$T/db.h"
like "so has flow" "$(ax trace flow "$T/bare" add --types "$T/other.o" -c "$T/bare 1" 2>&1)" \
	'-> add n=0 why="even"'
is "and a script" "$(ax trace run -e "uprobe:$T/bare:add { print \"%d %s\" n why }" --types "$T/other.o" \
	-c "$T/bare 1" 2>/dev/null)" '0 even'
like "the text of a header is refused" "$(ax trace watch "uprobe:$T/bare:add" --types "$T/db.h" -c true 2>&1)" \
	"source text, of which only a compiler knows"
like "a function that the file does not have" \
	"$(ax trace watch "uprobe:$T/bare:main" argc --types "$T/types.o" -c true 2>&1)" "has no function main"
ok "a probe that stays has them, too" ax trace add kept "uprobe:$T/bare:find" --types "$T/other.o"
"$T/bare" 1
is "its records" "$(ax trace view kept -o json | jq -c 'select(.values) | .values.id')" 2
ok "also when it begins anew" ax trace disable kept
ok "by that name" ax trace enable kept
"$T/bare" 1
is "with its types" "$(ax trace view kept -o json | jq -c 'select(.values) | .values.id' | sort -u)" 2
ok "and goes" ax trace rm kept

done_testing
