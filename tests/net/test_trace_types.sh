#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Values by their types: structs, arrays, unions, enums, bit fields, floats and strings of C, C++ and
# Go, as text and as JSON, in conditions and as keys; registers, errors and system calls by name.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc g++ clang go jq

# first NAME ARG...: the value of the first record, as JSON
first() {
	local name=$1
	shift
	trace_json watch "$@" | jq -cs --arg n "$name" 'map(.values // empty)[0][$n]'
}

# --- C, by two compilers, optimised and not ---

item='{"name":"abc","why":"because","color":"BLUE","flags":"F_READ|F_EXEC","low":5,"mid":-3,'
item+='"wide":78187493520,"on":true,"at":{"x":0,"y":-0.1},"u":{"i":1065353216,"f":1},'
item+='"list":[1,2,3],"grid":[[1,2],[3,-4]],"exact":3.25,"rest":""}'
for cc in gcc clang; do
	for level in 0 2; do
		build "typed-$cc-$level" typed.c $cc -std=gnu11 -g -O$level "$SRC/typed.c" -o %o
		p=$BIN/typed-$cc-$level
		out=$(trace_json watch "uprobe:$p:take" v='*it' s p c n=m.n numbers e='it->exact' \
			-c "$p")
		is "a struct with all that C has, $cc -O$level" "$(jq -cs \
			'map(.values // empty)[0].v | del(.next)' <<<"$out")" "$item"
		is "structs in registers, enums, arrays, $cc -O$level" "$(jq -cs \
			'map(.values // empty)[1] | [.s, .p, .c, .n, (.numbers[2] == 1e300), .numbers[:2], .e]' <<<"$out")" \
			'[{"a":1,"b":-7},{"a":1,"b":"pair"},"GREEN",1,true,[1.5,-0.25],3.25]'
		is "what is returned, $cc -O$level" \
			"$(first retval "uretprobe:$p:give" retval -c "$p")" '{"a":0,"b":5}'
	done
done
like "text has no quotes, and says where it ends" "$(ax trace watch "uprobe:$p:take" v='*it' -n 1 \
	-c "$p" 2>/dev/null)" 'v=\{name="abc", why="because", color=BLUE, flags=F_READ\|F_EXEC, .*grid=\[\[1, 2\], \[3, -4\]\], next=0x.*\}'
is "floating point and names of enums in conditions" "$(trace_json watch "uprobe:$p:take" x=it-\>at.x \
	'if it->at.x >= 0.5 && it->at.y < -0.09 && it->color == BLUE' -c "$p" | values x)" 2
is "and in what they are counted by" "$(trace_json count "uprobe:$p:take" it-\>at.x it-\>color -c "$p" |
	jq -cs '[.[0].table[].key | [.[]]] | sort')" '[[0,"BLUE"],[1,"GREEN"],[2,"BLUE"]]'
is "a float at an address" "$(first v "uprobe:$p:take" 'v=+40(%di):f64' -c "$p")" -0.1
is "bits of a number, as ftrace has them" "$(first v "uprobe:$p:take" 'v=+20(%di):b4@1/32' -c "$p")" 2
is "all registers" "$(trace_json watch "uprobe:$p:take" r='$regs' -n 1 -c "$p" | jq -cs \
	'map(.values // empty)[0] | .r | [length >= 18, has("di", "sp", "ip")]')" '[true,true,true,true]'
is "a register that probes cannot read is none" "$(first m "uprobe:$p:take" m -c "$p")" '{"n":0,"d":null}'
like "and is said to be so" "$(ax trace watch "uprobe:$p:take" d -c "$p" 2>&1)" "floating-point"
like "a struct is no key" "$(ax trace count "uprobe:$p:take" it-\>at -c "$p" 2>&1)" "cannot be a key"
like "nor is there a sum of floats" "$(ax trace hist "uprobe:$p:take" it-\>at.x -c "$p" 2>&1)" \
	"buckets are of integers"

# --- the order of numbers, and where floating-point numbers are ---

cat >"$T/order.c" <<'EOF'
__attribute__((noinline)) unsigned long wide(unsigned long a, long s, const void *p)
{
	__asm__ volatile("" : : "r"(a), "r"(s), "r"(p) : "memory");
	return a + (unsigned long)s;
}
__attribute__((noinline)) double mixed(double d, int n)
{
	__asm__ volatile("" : : "x"(d), "r"(n) : "memory");
	return d * n;
}
int main(void)
{
	return (int)(wide(-1UL, -1, (const void *)-1L) + wide(1, 1, (const void *)1)) + (mixed(1.5, 2) > 3);
}
EOF
gcc -g -O1 -o "$T/order" "$T/order.c"
how_many() { # CONDITION: of the two calls
	ax trace count "uprobe:$T/order:wide" if "$1" -c "$T/order" 2>&1 | sed -n 's/^\([0-9]*\) events\?, .*/\1/p'
}
is "what debug data says to be unsigned is compared so" \
	"$(how_many 'a > 5') $(how_many 'a < 5') $(how_many '5 < a') $(how_many 'p > 5') $(how_many 'a + 0 > 5')" "1 1 1 1 1"
is "signed numbers, and what nothing is said of, are signed" "$(how_many 's > 0') $(how_many 's < 0') $(how_many 'arg0 < 0')" "1 1 1"
is "and so is what is compared with a number below 0" "$(how_many 'a > -2') $(how_many 'a < -5')" "2 0"
out=$(ax trace watch "uprobe:$T/order:mixed" -c "$T/order" 2>&1)
like "a parameter that probes cannot read is shown as such" "$out" "mixed d=<passed in a floating-point.*> n=2"
like "and said to be" "$out" "mixed: d is not shown: it is passed in a floating-point"
like "a result, too" "$(ax trace watch "uretprobe:$T/order:mixed" -c "$T/order" 2>&1)" "mixed retval=<returned in a floating-point"
like "it is not read from elsewhere" "$(ax trace watch "uretprobe:$T/order:mixed" retval:f64 -c "$T/order" 2>&1)" \
	"retval: it is returned in a floating-point register"

# --- texts that look like what stands around them ---

cat >"$T/quotes.c" <<'EOF'
struct named { const char *name; char text[16]; char c; };
__attribute__((noinline)) void take(const struct named *p, const char *t)
{
	__asm__ volatile("" : : "r"(p), "r"(t) : "memory");
}
int main(void)
{
	struct named n = {"a\", text=\"b\\\n", "x\\\"y", '\''};
	take(&n, n.name);
	return 0;
}
EOF
gcc -g -O1 -o "$T/quotes" "$T/quotes.c"
like "quotes and backslashes are told from those around the text, in structs as elsewhere" \
	"$(ax trace watch "uprobe:$T/quotes:take" '*p' t c='p->c' -c "$T/quotes" 2>/dev/null)" \
	' \*p=\{name="a\\", text=\\"b\\\\\\n", text="x\\\\\\"y", c='"'\\\\''"'\} t="a\\", text=\\"b\\\\\\n" c='"'\\\\''"
cat >"$T/self.c" <<'EOF'
struct big { long a, b, c; } kept = {5, 6, 7};
__attribute__((noinline)) long use(struct big s)
{
	return s.a + s.c;
}
int main(void)
{
	return (int)use(kept) - 12;
}
EOF
gcc -g -O0 -o "$T/self" "$T/self.c"
like "a struct is shown as what it is" "$(ax trace watch "uprobe:$T/self:use" s -c "$T/self" 2>&1)" ' s=\{a=5, b=6, c=7\}'
like "and is no pointer" "$(ax trace watch "uprobe:$T/self:use" '*s' -c "$T/self" 2>&1)" \
	"it is no pointer, but a struct or union itself: expected it without"
like "but by a type of one's own" "$(ax trace watch "uprobe:$T/self:use" v='*s:u32' -c "$T/self" 2>&1)" ' v=5'
like "and in what it is counted by" "$(ax trace hist "uprobe:$T/quotes:take" 1 by t:string -c "$T/quotes" 2>/dev/null)" \
	't="a\\", text=\\"b\\\\\\n"'

# --- a probe that stays shows its values to others ---

probe=typed$$
ax trace add "$probe" "uprobe:$p:take" v='*it' c >/dev/null
"$p"
is "what was kept has its types" "$(ax trace view "$probe" -o json | jq -cs \
	'map(.values // empty)[0] | [.v.color, .v.flags, .v.list, .v.at, .c]')" \
	'["BLUE","F_READ|F_EXEC",[1,2,3],{"x":0,"y":-0.1},"GREEN"]'
ax trace rm "$probe" >/dev/null

# --- C++ ---

# strings_of_cxx ABI: in $p
strings_of_cxx()
{
	local abi=$1 out
	out=$(trace_json watch "uprobe:$p:take" s='*s' r='*r' m v copy -c "$p")
	is "strings of C++, ABI $abi" "$(jq -cs 'map(.values // empty)[0] | [.s, .r, .m, .v, .copy]' \
		<<<"$out")" \
		'["short\u0000x",{"id":7,"name":"in a struct","view":"seen"},"on","a view","by value and long enough"]'
	is "long and empty ones, ABI $abi" "$(jq -cs 'map(.values // empty)[1] | [(.s | length), .m, .v]' \
		<<<"$out")" '[300,"off",""]'
	is "compared, ABI $abi" "$(trace_json watch "uprobe:$p:take" id='r->id' \
		'if r->name == "in a struct" && v == "a view" && *s != "x"' -c "$p" | values id)" 7
	is "counted by, ABI $abi" "$(trace_json count "uprobe:$p:take" v -c "$p" |
		jq -cs '[.[0].table[].key.v] | sort')" '["","a view"]'
}
for abi in 0 1; do
	build "typed-cc-$abi" typed.cc g++ -std=c++17 -g -O$((abi * 2)) \
		-D_GLIBCXX_USE_CXX11_ABI=$abi "$SRC/typed.cc" -o %o
	p=$BIN/typed-cc-$abi
	strings_of_cxx "$abi"
done
# its name in the table of symbols is text[abi:cxx11](int)
cat >"$T/returns.cc" <<'EOF'
#include <string>
__attribute__((noinline)) std::string text(int n)
{
	return std::string(n, 'x');
}
int main()
{
	return text(3).size() != 3;
}
EOF
g++ -g -O1 -o "$T/returns" "$T/returns.cc"
for name in text "text(int)"; do
	is "a function that returns a std::string has its name without what GCC adds: $name" \
		"$(trace_json watch "uretprobe:$T/returns:$name" -c "$T/returns" | values retval)" xxx
done

if echo '#include <string>' | clang++ -x c++ -stdlib=libc++ -fsyntax-only - 2>"$T/null"; then
	for level in 0 2; do
		build "typed-libc++-$level" typed.cc clang++ -std=c++17 -stdlib=libc++ -g -O$level "$SRC/typed.cc" -o %o
		p=$BIN/typed-libc++-$level
		strings_of_cxx "libc++ at -O$level"
	done
else
	skip "strings of libc++" "libc++-dev is not installed"
fi

# --- Go ---

build typed-go typed.go env CGO_ENABLED=0 GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$BIN/go-cache" \
	HOME="${HOME:-/root}" go build -o %o "$SRC/typed.go"
p=$BIN/typed-go
out=$(trace_json watch "uprobe:$p:main.take" s list r='*r' all pt=p -c "$p")
is "strings and slices of Go" "$(jq -cs 'map(.values // empty)[0] | [.s, .list, .pt]' <<<"$out")" \
	'["hello",[{"X":1,"Y":2},{"X":3,"Y":4}],{"X":8,"Y":9}]'
go='{"Name":"in go","N":-3,"Ok":true,"F":2.5,"Tags":[4,5]}'
is "structs of Go behind a pointer and on the stack" "$(jq -cs 'map(.values // empty)[1] |
	[.r, .all] | map(del(.P, .Err))' <<<"$out")" "[$go,$go]"
is "compared" "$(trace_json watch "uprobe:$p:main.take" n=r.N \
	'if s == "hello" && r.Name == "in go" && r.F > 2.25' -c "$p" | values n)" "-3 -3"
is "counted by" "$(trace_json count "uprobe:$p:main.take" s -c "$p" |
	jq -cs '[.[0].table[] | [.key.s, .count]]')" '[["hello",2]]'
is "results, and strings kept from the entry" "$(trace_json watch "uretprobe:$p:main.join" \
	retval n=n@entry 'if retval == "j!"' -c "$p" | jq -cs '[.[].values // empty]')" \
	'[{"retval":"j!","n":"j"},{"retval":"j!","n":"j"}]'

build faces faces.go env CGO_ENABLED=0 GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$BIN/go-cache" \
	HOME="${HOME:-/root}" go build -o %o "$SRC/faces.go"
p=$BIN/faces
out=$(ax trace watch "uprobe:$p:main.look" s v err -c "$p" 2>"$T/null" |
	sed -n '/main.look /{s/.*main.look //;s/0x[0-9a-f]*/0x/g;p}')
is "what is in interfaces of Go: values, pointers, errors, nothing" "$out" \
	's=main.square{Side=3} v=int(42) err=*errors.errorString{s="an error"}
s=*main.box{Name="a box", W=2, H=5} v=string("a text") err=*fmt.wrapError{msg="wrapped: file already exists", err={tab=0x, data=0x}}
s=*main.box{Name="b", W=2, H=5} v=main.box{Name="by value", W=1, H=2} err=nil
s=nil v=nil err=nil'
out=$(trace_json watch "uprobe:$p:main.keep" h='*h' -c "$p")
is "in structs, as JSON" "$(jq -c '.values.h // empty | [.What.type, (.What.value | if type == "string" then "an address" else . end), .Err]' \
	<<<"$out")" '["float64",3.5,{"type":"*errors.errorString","value":{"s":"file already exists"}}]
["bool",true,null]
["map[int]int","an address",null]
["int32",-7,null]'
is "at a return" "$(trace_json watch "uretprobe:$p:main.keep" retval -c "$p" | jq -c '.values.retval.type // empty' | tr '\n' ' ')" \
	'"float64" "bool" "map[int]int" "int32" '

# --- errors and system calls ---

like "errors by their names" "$(ax trace watch tracepoint:syscalls:sys_exit_openat 'if ret < 0' \
	-c "cat /nowhere" 2>/dev/null)" 'ret=-ENOENT'
p=$BIN/typed-gcc-2
like "also of a function of one's own" "$(ax trace watch "uretprobe:$p:take" retval:errno -c "$p" \
	2>/dev/null)" 'retval=-ENOENT'
like "system calls by their names" "$(ax trace count tracepoint:raw_syscalls:sys_enter by id \
	-c "cat /dev/null" 2>/dev/null)" '(^|
)openat +[0-9]'
like "more tracepoints than 64" "$(ax trace count 'tracepoint:syscalls:sys_enter_[a-g]*' pid \
	'if comm == "nobody"' -c true 2>&1)" "(6[5-9]|[7-9][0-9]|[1-9][0-9][0-9]) places probed"
# of a pid namespace, so that there are no others
ok "what ends so many ends by itself, when ax has ended" unshare -pf --mount-proc bash -c '
	"$0" trace count "tracepoint:syscalls:sys_enter_[a-g]*" pid if "comm == \"nobody\"" -c true || exit 1
	for i in {1..600}; do
		ps -e -o comm= | grep -q "^ax" || exit 0
		sleep 0.1
	done
	exit 1' "$AX"
done_testing
