// SPDX-License-Identifier: GPL-2.0-or-later
/* The text of probes: what each form means, which operator takes what, and the canonical text. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/text/spec.h"

#define WORDS_MAX 64

static struct probe_spec parse(const char *text)
{
	struct probe_spec p;
	struct error e = {0};

	if (probe_parse(text, &p, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return p;
}

static void assert_text(const char *name, const char *found, const char *expected)
{
	if (!found != !expected || (found && !streq(found, expected)))
		fail_msg("%s is %s, not %s", name, found ? found : "-", expected ? expected : "-");
}

/* An expression as one would call its items, in postfix order. */
static char *postfix(const struct expr *e)
{
	static const char *const names[] = {
		[EXPR_RETVAL] = "retval", [EXPR_PID] = "pid",	    [EXPR_TID] = "tid",
		[EXPR_COMM] = "comm",	  [EXPR_CGROUP] = "cgroup", [EXPR_APP] = "app",
		[EXPR_NSECS] = "nsecs",	  [EXPR_CPU] = "cpu",	    [EXPR_ELAPSED] = "elapsed",
		[EXPR_ENTRY] = "entry",	  [EXPR_DEREF] = "deref",   [EXPR_UDEREF] = "uderef",
		[EXPR_MEMBER] = "member", [EXPR_INDEX] = "index",   [EXPR_ADD] = "+",
		[EXPR_SUB] = "-",	  [EXPR_AND] = "&",	    [EXPR_OR] = "|",
		[EXPR_XOR] = "^",	  [EXPR_SHL] = "<<",	    [EXPR_SHR] = ">>",
		[EXPR_EQ] = "==",	  [EXPR_NE] = "!=",	    [EXPR_LT] = "<",
		[EXPR_LE] = "<=",	  [EXPR_GT] = ">",	    [EXPR_GE] = ">=",
		[EXPR_LAND] = "&&",	  [EXPR_LOR] = "||",	    [EXPR_NOT] = "!",
		[EXPR_NUMBER] = "",	  [EXPR_STRING] = "text",   [EXPR_ARG] = "arg",
		[EXPR_REG] = "reg",	  [EXPR_STACK] = "stack",   [EXPR_NAME] = "name",
		[EXPR_SYMBOL] = "symbol", [EXPR_TASK] = "task",	    [EXPR_MUL] = "*",
		[EXPR_DIV] = "/",	  [EXPR_MOD] = "%",
	};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (size_t i = 0; i < e->n; i++) {
		const struct expr_item *item = &e->v[i];

		fprintf(f, "%s%s", i ? " " : "", names[item->op]);
		if (item->text)
			fprintf(f, ":%s", item->text);
		if (item->value || item->op <= EXPR_ARG || item->op == EXPR_STACK ||
		    item->op == EXPR_DEREF || item->op == EXPR_UDEREF)
			if (item->op != EXPR_STRING)
				fprintf(f, "%s%" PRId64, item->op == EXPR_NUMBER ? "" : ":",
					item->value);
	}
	fclose(f);
	return text;
}

static void assert_expr(const char *of, const struct expr *e, const char *expected)
{
	autofree char *found = postfix(e);

	if (!streq(found, expected))
		fail_msg("%s is \"%s\", not \"%s\"", of, found, expected);
}

static const struct {
	const char *text;
	struct probe_spec p;
} target_texts[] = {
	{"uprobe:/bin/bash:readline",
	 {.kind = PROBE_UPROBE, .file = "/bin/bash", .symbol = "readline"}},
	{"uprobe:libc.so.6:malloc+0x10",
	 {.kind = PROBE_UPROBE, .file = "libc.so.6", .symbol = "malloc", .offset = 16}},
	{"uprobe:bash:read*+4",
	 {.kind = PROBE_UPROBE, .file = "bash", .symbol = "read*", .offset = 4}},
	{"uprobe:./a:0x1139", {.kind = PROBE_UPROBE, .file = "./a", .offset = 0x1139}},
	{"uprobe:./a:4096", {.kind = PROBE_UPROBE, .file = "./a", .offset = 4096}},
	{"uprobe:./a:ns::f(int)", {.kind = PROBE_UPROBE, .file = "./a", .symbol = "ns::f(int)"}},
	{"uprobe:./a:\"ns::f(int, char)\"+8",
	 {.kind = PROBE_UPROBE, .file = "./a", .symbol = "ns::f(int, char)", .offset = 8}},
	{"uprobe:./a:operator+", {.kind = PROBE_UPROBE, .file = "./a", .symbol = "operator+"}},
	{"uprobe:./a:\"f+8\"", {.kind = PROBE_UPROBE, .file = "./a", .symbol = "f+8"}},
	{"uprobe:./a:\"8\"", {.kind = PROBE_UPROBE, .file = "./a", .symbol = "8"}},
	{"uprobe:\"/opt/my app:1/a\":f",
	 {.kind = PROBE_UPROBE, .file = "/opt/my app:1/a", .symbol = "f"}},
	{"uretprobe:/bin/bash:readline",
	 {.kind = PROBE_URETPROBE, .file = "/bin/bash", .symbol = "readline"}},
	{"uretprobe:./a:0x10", {.kind = PROBE_URETPROBE, .file = "./a", .offset = 16}},
	{"usdt:./db:db:snapshot",
	 {.kind = PROBE_USDT, .file = "./db", .group = "db", .symbol = "snapshot"}},
	{"usdt:./db:snap*", {.kind = PROBE_USDT, .file = "./db", .symbol = "snap*"}},
	{"usdt:/usr/bin/python3*",
	 {.kind = PROBE_USDT, .file = "/usr/bin/python3*", .symbol = "*"}},
	{"line:./prog:trace.c:36",
	 {.kind = PROBE_LINE, .file = "./prog", .source = "trace.c", .line = 36}},
	{"line:./prog:src/a:b.c:4294967295",
	 {.kind = PROBE_LINE, .file = "./prog", .source = "src/a:b.c", .line = UINT32_MAX}},
	{"kprobe:vfs_read", {.kind = PROBE_KPROBE, .symbol = "vfs_read"}},
	{"kprobe:vfs_read+0x4", {.kind = PROBE_KPROBE, .symbol = "vfs_read", .offset = 4}},
	{"kprobe:tcp_*", {.kind = PROBE_KPROBE, .symbol = "tcp_*"}},
	{"kprobe:ext4:ext4_*", {.kind = PROBE_KPROBE, .group = "ext4", .symbol = "ext4_*"}},
	{"kprobe:0xffffffff81000000", {.kind = PROBE_KPROBE, .offset = 0xffffffff81000000ull}},
	{"kretprobe:vfs_read", {.kind = PROBE_KRETPROBE, .symbol = "vfs_read"}},
	{"tracepoint:syscalls:sys_enter_openat",
	 {.kind = PROBE_TRACEPOINT, .group = "syscalls", .symbol = "sys_enter_openat"}},
	{"tracepoint:sock:*", {.kind = PROBE_TRACEPOINT, .group = "sock", .symbol = "*"}},
	{"profile:99", {.kind = PROBE_PROFILE, .offset = 99}},
	{"profile:hz:100000", {.kind = PROBE_PROFILE, .offset = 100000}},
	/* as bpftrace shortens them */
	{"u:./a:f", {.kind = PROBE_UPROBE, .file = "./a", .symbol = "f"}},
	{"ur:./a:f", {.kind = PROBE_URETPROBE, .file = "./a", .symbol = "f"}},
	{"U:./a:b", {.kind = PROBE_USDT, .file = "./a", .symbol = "b"}},
	{"k:f", {.kind = PROBE_KPROBE, .symbol = "f"}},
	{"kr:f", {.kind = PROBE_KRETPROBE, .symbol = "f"}},
	{"t:a:b", {.kind = PROBE_TRACEPOINT, .group = "a", .symbol = "b"}},
	/* ftrace's */
	{"p:zfree_entry /bin/zsh:0x5de10",
	 {.kind = PROBE_UPROBE, .name = "zfree_entry", .file = "/bin/zsh", .offset = 0x5de10}},
	{"p /bin/zsh:0x5de10", {.kind = PROBE_UPROBE, .file = "/bin/zsh", .offset = 0x5de10}},
	{"p:uprobes/z /bin/zsh:0x0000000000000010",
	 {.kind = PROBE_UPROBE,
	  .name_group = "uprobes",
	  .name = "z",
	  .file = "/bin/zsh",
	  .offset = 16}},
	{"r:z /bin/zsh:0x10",
	 {.kind = PROBE_URETPROBE, .name = "z", .file = "/bin/zsh", .offset = 16}},
	{"p:z /bin/zsh:0x10%return",
	 {.kind = PROBE_URETPROBE, .name = "z", .file = "/bin/zsh", .offset = 16}},
	{"p:z /a:b:0x10(0x4028)",
	 {.kind = PROBE_UPROBE, .name = "z", .file = "/a:b", .offset = 16, .semaphore = 0x4028}},
	{"p:z /bin/bash:readline",
	 {.kind = PROBE_UPROBE, .name = "z", .file = "/bin/bash", .symbol = "readline"}},
	{"p:z \"bash\":readline",
	 {.kind = PROBE_UPROBE, .name = "z", .file = "bash", .symbol = "readline"}},
	{"p do_sys_openat2", {.kind = PROBE_KPROBE, .symbol = "do_sys_openat2"}},
	{"p:kprobes/o do_sys_openat2+0x5",
	 {.kind = PROBE_KPROBE,
	  .name_group = "kprobes",
	  .name = "o",
	  .symbol = "do_sys_openat2",
	  .offset = 5}},
	{"p:o ext4:ext4_file_open",
	 {.kind = PROBE_KPROBE, .name = "o", .group = "ext4", .symbol = "ext4_file_open"}},
	{"p:o 0xffffffff81234567",
	 {.kind = PROBE_KPROBE, .name = "o", .offset = 0xffffffff81234567ull}},
	{"r:o vfs_read", {.kind = PROBE_KRETPROBE, .name = "o", .symbol = "vfs_read"}},
	{"r16:o vfs_read", {.kind = PROBE_KRETPROBE, .name = "o", .symbol = "vfs_read"}},
	{"r16 vfs_read+0", {.kind = PROBE_KRETPROBE, .symbol = "vfs_read"}},
	{"p:o vfs_read%return", {.kind = PROBE_KRETPROBE, .name = "o", .symbol = "vfs_read"}},
};

static void targets(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(target_texts); i++) {
		const struct probe_spec *expected = &target_texts[i].p;
		struct probe_spec p = parse(target_texts[i].text);

		if (!probe_spec_eq(&p, expected)) {
			autofree char *text = probe_format(&p);

			assert_text("the file", p.file, expected->file);
			assert_text("the symbol", p.symbol, expected->symbol);
			assert_text("the group", p.group, expected->group);
			assert_text("the name", p.name, expected->name);
			fail_msg("%s is %s", target_texts[i].text, text);
		}
		probe_spec_free(&p);
	}
}

/* Behind a kprobe or, with r, a kretprobe. */
static void expressions(void **state)
{
	static const struct {
		const char *target, *text, *expected;
	} cases[] = {
		{"k:f", "arg0", "arg:0"},
		{"k:f", "arg9", "arg:9"},
		{"kr:f", "retval", "retval"},
		{"kr:f", "retval1 + retval8", "retval:1 retval:8 +"},
		{"kr:f", "arg0@entry", "arg:0 entry"},
		{"kr:f", "(arg0->len + 1)@entry", "arg:0 member:len 1 + entry"},
		{"kr:f", "*arg0@entry", "arg:0 entry deref:0"},
		{"kr:f", "(*arg0)@entry", "arg:0 deref:0 entry"},
		{"kr:f", "retval+arg1@entry", "retval arg:1 entry +"},
		{"k:f", "%rdi", "reg:rdi"},
		{"k:f", "name", "name:name"},
		{"k:f", "argc", "name:argc"},
		{"t:a:b", "args.pid", "name:pid"},
		{"t:a:b", "args->comm", "name:comm"},
		{"line:a:b:1", "args.pid", "name:args member:pid"},
		{"k:f", "pid", "pid"},
		{"k:f", "tid", "tid"},
		{"k:f", "comm", "comm"},
		{"k:f", "cgroup", "cgroup"},
		{"k:f", "app", "app"},
		{"k:f", "nsecs", "nsecs"},
		{"k:f", "cpu", "cpu"},
		{"k:f", "elapsed", "elapsed"},
		{"k:f", "$task->mm", "task member:mm"},
		{"k:f", "arg0*4", "arg:0 4 *"},
		{"k:f", "arg0 * arg1 + 1", "arg:0 arg:1 * 1 +"},
		{"k:f", "1+arg0/2%3", "1 arg:0 2 / 3 % +"},
		{"k:f", "ustack", "stack:-1"},
		{"k:f", "42", "42"},
		{"k:f", "0xffffffffffffffff", "-1"},
		{"k:f", "18446744073709551615", "-1"},
		{"k:f", "-9223372036854775808", "-9223372036854775808"},
		{"k:f", "*arg0", "arg:0 deref:0"},
		{"k:f", "**arg0", "arg:0 deref:0 deref:0"},
		{"k:f", "arg1[2]", "arg:1 2 index"},
		{"k:f", "arg1[arg0 + 1]", "arg:1 arg:0 1 + index"},
		{"k:f", "arg0->a.b->c", "arg:0 member:a member:b member:c"},
		{"k:f", "*arg0->a", "arg:0 member:a deref:0"},
		{"k:f", "(*arg0)->a", "arg:0 deref:0 member:a"},
		{"k:f", "arg0->v[1].x", "arg:0 member:v 1 index member:x"},
		/* precedence */
		{"k:f", "1+2-3", "1 2 + 3 -"},
		{"k:f", "1-(2-3)", "1 2 3 - -"},
		{"k:f", "1 + 2 << 3", "1 2 + 3 <<"},
		{"k:f", "1 << 2 + 3", "1 2 3 + <<"},
		{"k:f", "1&2|3", "1 2 & 3 |"},
		{"k:f", "1|2&3", "1 2 3 & |"},
		{"k:f", "1|2^3&4", "1 2 3 4 & ^ |"},
		{"k:f", "arg0>>8&0xff", "arg:0 8 >> 255 &"},
		{"k:f", "arg0- -1", "arg:0 -1 -"},
		{"k:f", "*arg0+8", "arg:0 deref:0 8 +"},
		{"k:f", "( arg0\n+8 )", "arg:0 8 +"},
		/* ftrace's fetch arguments */
		{"p f", "%ax", "reg:ax"},
		{"p f", "$stack", "stack:-1"},
		{"p f", "$stack0", "stack:0"},
		{"p f", "$stack2047", "stack:2047"},
		{"p f", "$arg1", "arg:0"},
		{"r f", "$arg1", "arg:0 entry"},
		{"r f", "$retval", "retval"},
		{"p f", "$comm", "comm"},
		{"p f", "@0x1234", "4660 deref:0"},
		{"p f", "@jiffies_64", "symbol:jiffies_64 deref:0"},
		{"p f", "@f.isra.0+0x8", "symbol:f.isra.0:8 deref:0"},
		{"p f", "@f-8", "symbol:f:-8 deref:0"},
		{"p /a:0x1", "@+16", "symbol:16 deref:0"},
		{"p f", "+8(%di)", "reg:di deref:8"},
		{"p f", "-0x8(%di)", "reg:di deref:-8"},
		{"p f", "+u8(%di)", "reg:di uderef:8"},
		{"p f", "+0(+16(-u8($stack1)))", "stack:1 uderef:-8 deref:16 deref:0"},
		{"p f", "\\0x10", "16"},
		{"p f", "\\-1", "-1"},
		/* where a string is */
		{"p f", "+0(%si):string", "reg:si"},
		{"p f", "+8(%si):string", "reg:si 8 +"},
		{"p f", "-8(+16(%si)):string", "reg:si deref:16 -8 +"},
		{"p f", "@name:string", "symbol:name"},
		{"p f", "+8(%si):buf[4]", "reg:si 8 +"},
		{"k:f", "*arg0:string", "arg:0 deref:0"},
		{"k:f", "arg0+8:string", "arg:0 8 +"},
		{"p f", "+8(%si):u8", "reg:si deref:8"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = NULL;
		struct probe_spec p;

		assert_true(asprintf(&text, "%s %s", cases[i].target, cases[i].text) > 0);
		p = parse(text);
		assert_int_equal(p.n_args, 1);
		assert_expr(text, &p.args[0].expr, cases[i].expected);
		probe_spec_free(&p);
	}
}

static void conditions(void **state)
{
	static const struct {
		const char *text, *expected, *canonical;
	} cases[] = {
		{"flags & 0x40", "name:flags 64 &", "flags & 0x40"},
		{"flags&64", "name:flags 64 &", "flags & 0x40"},
		{"pid==1", "pid 1 ==", "pid == 1"},
		{"comm == \"bash\"", "comm text:bash ==", "comm == \"bash\""},
		{"\"a\\\"\\\\b\\t\" != app", "text:a\"\\b\t app !=", "\"a\\\"\\\\b\\x09\" != app"},
		{"filename == \"/etc/passwd\"",
		 "name:filename text:/etc/passwd ==", "filename == \"/etc/passwd\""},
		{"a<1||b<=2&&c>3", "name:a 1 < name:b 2 <= name:c 3 > && ||",
		 "a < 1 || b <= 2 && c > 3"},
		{"(a<1||b>=2)&&c!=3", "name:a 1 < name:b 2 >= || name:c 3 != &&",
		 "(a < 1 || b >= 2) && c != 3"},
		{"a && (b && c)", "name:a name:b name:c && &&", "a && (b && c)"},
		{"!a", "name:a !", "!a"},
		{"!(a == 1)", "name:a 1 == !", "!(a == 1)"},
		{"!!a", "name:a ! !", "!!a"},
		{"! * a", "name:a deref:0 !", "!*a"},
		{"(flags & 3) == 1", "name:flags 3 & 1 ==", "(flags & 3) == 1"},
		{"flags == (3 & b)", "name:flags 3 name:b & ==", "flags == (3 & b)"},
		{"a + 1 == b << 2", "name:a 1 + name:b 2 << ==", "a + 1 == b << 2"},
		{"a - (b - 1) > -1", "name:a name:b 1 - - -1 >", "a - (b - 1) > -1"},
		{"((a))[((1))] > 0", "name:a 1 index 0 >", "a[1] > 0"},
		{"(a+8)->b.c > 0", "name:a 8 + member:b member:c 0 >", "(a + 8)->b->c > 0"},
		{"+0x10(a)", "name:a deref:16", "+16(a)"},
		{"-u1(a + 1)", "name:a 1 + uderef:-1", "-u1(a + 1)"},
		{"*(a+1)", "name:a 1 + deref:0", "*(a + 1)"},
		{"@x + @y-0x8", "symbol:x deref:0 symbol:y:-8 deref:0 +", "@x + @y-8"},
		{"@5", "5 deref:0", "*5"},
		{"args.pid == pid", "name:pid pid ==", "args.pid == pid"},
		{"args.args && args.by && args.arg1", "name:args name:by && name:arg1 &&",
		 "args.args && args.by && args.arg1"},
		/* a script would take them for its variables */
		{"global.x && thread->x", "name:global member:x name:thread member:x &&",
		 "args.global->x && args.thread->x"},
		{"%di ^ $stack1 | $stack", "reg:di stack:1 ^ stack:-1 |", "%di ^ $stack1 | $stack"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = NULL, *format = NULL;
		struct probe_spec p;

		assert_true(asprintf(&text, "k:f if %s", cases[i].text) > 0);
		p = parse(text);
		assert_expr(text, &p.condition, cases[i].expected);
		format = probe_format(&p);
		assert_non_null(format);
		assert_string_equal(format + strlen("kprobe:f if "), cases[i].canonical);
		probe_spec_free(&p);
	}
}

static void types(void **state)
{
	static const struct {
		const char *text;
		enum value_type type;
		uint32_t size;
	} cases[] = {
		{"k:f arg0", VALUE_NONE, 0},
		{"k:f arg0:u8", VALUE_UNSIGNED, 1},
		{"k:f arg0:u16", VALUE_UNSIGNED, 2},
		{"k:f arg0:u32", VALUE_UNSIGNED, 4},
		{"k:f arg0:u64", VALUE_UNSIGNED, 8},
		{"k:f arg0:s8", VALUE_SIGNED, 1},
		{"k:f arg0:s16", VALUE_SIGNED, 2},
		{"k:f arg0:s32", VALUE_SIGNED, 4},
		{"k:f arg0:s64", VALUE_SIGNED, 8},
		{"k:f arg0:x8", VALUE_HEX, 1},
		{"k:f arg0:x16", VALUE_HEX, 2},
		{"k:f arg0:x32", VALUE_HEX, 4},
		{"k:f arg0:x64", VALUE_HEX, 8},
		{"k:f arg0:char", VALUE_CHAR, 1},
		{"k:f arg0:bool", VALUE_BOOL, 1},
		{"k:f arg0:string", VALUE_STRING, 0},
		{"k:f arg0:string[200]", VALUE_STRING, 200},
		{"k:f arg0:ustring", VALUE_USTRING, 0},
		{"k:f arg0:ustring[4096]", VALUE_USTRING, 4096},
		{"k:f arg0:buf[64]", VALUE_BUFFER, 64},
		{"k:f arg0:buf[arg1]", VALUE_BUFFER, 4096},
		{"k:f arg0:string[arg1-1]", VALUE_STRING, 4096},
		{"k:f arg0:symbol", VALUE_SYMBOL, 8},
		{"k:f arg0:symstr", VALUE_SYMBOL, 8},
		{"k:f arg0:f32", VALUE_FLOAT, 4},
		{"k:f +8(%di):f64", VALUE_FLOAT, 8},
		{"k:f arg0:errno", VALUE_ERRNO, 8},
		{"k:f arg0:syscall", VALUE_SYSCALL, 8},
		{"k:f arg0:b3@5/16", VALUE_UNSIGNED, 2},
		{"k:f $regs", VALUE_NONE, 0},
		{"p f $regs", VALUE_NONE, 0},
		{"k:f comm:string", VALUE_STRING, 0},
		{"k:f stack", VALUE_KERNEL_STACK, 0},
		{"t:a:b stack", VALUE_KERNEL_STACK, 0},
		{"u:a:b stack", VALUE_USER_STACK, 0},
		{"k:f ustack", VALUE_USER_STACK, 0},
		{"u:a:b kstack", VALUE_KERNEL_STACK, 0},
		{"k:f s=$stack:stack", VALUE_KERNEL_STACK, 0},
		{"k:f $stack:ustack", VALUE_USER_STACK, 0},
		/* ftrace says numbers in hexadecimal */
		{"p f %ax", VALUE_HEX, 8},
		{"p f +0(%ax)", VALUE_HEX, 8},
		{"p f %ax:s32", VALUE_SIGNED, 4},
		{"p f $comm", VALUE_NONE, 0},
		{"p f pid", VALUE_NONE, 0},
		{"p f buf->len", VALUE_NONE, 0},
		{"p f +u0(%ax):string", VALUE_USTRING, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct probe_spec p = parse(cases[i].text);

		assert_int_equal(p.n_args, 1);
		if (p.args[0].type != cases[i].type || p.args[0].size != cases[i].size)
			fail_msg("%s: type %d, size %u", cases[i].text, p.args[0].type,
				 p.args[0].size);
		probe_spec_free(&p);
	}
}

static void canonical_texts(void **state)
{
	static const struct {
		const char *text, *canonical;
	} cases[] = {
		{"uretprobe:/bin/bash:readline retval:string", NULL},
		{"uretprobe:libc.so.6:malloc arg0@entry", NULL},
		{"kprobe:vfs_read by comm", NULL},
		{"tracepoint:syscalls:sys_enter_openat filename if flags & 0x40", NULL},
		{"line:./prog:trace.c:36 ret", NULL},
		{"uprobe:./a:ns::f+0x8", NULL},
		{"uprobe:./a:\"f(int, int)\"", NULL},
		{"uprobe:./a:\"8\"", NULL},
		{"uprobe:./a:\"f+8\"", NULL},
		{"usdt:\"a b\":\"c:d\":e", NULL},
		{"line:a:\"my src.c\":1", NULL},
		{"p:x \"bash\":readline", NULL},
		{"p:x bash:0x10", NULL},
		{"p:x /f:\"a:b\"", NULL},
		{"p:x \"a/b%c\"", NULL},
		{"p:x mod:f+0x8", NULL},
		{"r:g/x /a:0x10(0x20) $retval:s32 $arg1:x64", NULL},
		{"kprobe:f arg0 & 0xf0 n=arg1+ 8:u8 by comm pid", NULL},
		{"kprobe:f $regs arg0:b3@5/16 v=arg1:f32", NULL},
		{"uprobe:./a:f x if x > 1.5 && x < -2.25e-3 && 0.5 != y", NULL},
		{" u:./a:f\n arg0,\targ1 , arg2 ", "uprobe:./a:f arg0 arg1 arg2"},
		{"p /a:16 %ax", "uprobe:/a:0x10 %ax:x64"},
		{"p:zfree_entry /bin/zsh:0x5de10 %ip %ax",
		 "p:zfree_entry /bin/zsh:0x5de10 %ip:x64 %ax:x64"},
		{"p:x /a:b:0x10", "p:x \"/a:b\":0x10"},
		{"kprobe:f by comm,pid if(pid>1)", "kprobe:f if pid > 1 by comm pid"},
		{"kprobe:f arg0:symstr $stack:stack", "kprobe:f arg0:symbol kstack"},
		{"kprobe:f ( arg0\n  + 8 ):u8", "kprobe:f ( arg0 + 8 ):u8"},
		{"kprobe:\"f\"", "kprobe:f"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct probe_spec p = parse(cases[i].text), second;
		autofree char *text = probe_format(&p);

		assert_string_equal(text, cases[i].canonical ? cases[i].canonical : cases[i].text);
		second = parse(text);
		assert_true(probe_spec_eq(&p, &second));
		probe_spec_free(&p);
		probe_spec_free(&second);
	}
}

static void arguments_are_divided_by_blanks_and_commas(void **state)
{
	static const char *const texts[] = {"arg0",   "-8(%bp)", "arg1 & 3",
					    "arg2+1", "*arg3",	 "arg4 + -8(%bp)"};
	struct probe_spec p =
		parse("k:f arg0 -8(%bp), arg1 & 3 arg2+1 *arg3 x=arg4 + -8(%bp):u32 by comm , pid");

	(void)state;
	assert_int_equal(p.n_args, ARRAY_SIZE(texts));
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_string_equal(p.args[i].text, texts[i]);
	assert_null(p.args[4].name);
	assert_string_equal(p.args[5].name, "x");
	assert_int_equal(p.args[5].size, 4);
	assert_int_equal(p.n_by, 2);
	assert_string_equal(p.by[1].text, "pid");
	probe_spec_free(&p);
}

/* Every way to cut a text at its blanks into words. */
static void words_of_a_command_line(void **state)
{
	static const char text[] = "p:x /bin/zsh:0x10 arg0 & 3 %ax if comm == \"a b\" by comm pid";
	struct probe_spec whole = parse(text);
	size_t blanks = 0;

	(void)state;
	for (const char *s = text; *s; s++)
		blanks += *s == ' ';
	for (uint32_t cuts = 0; cuts < 1u << blanks; cuts++) {
		char copy[sizeof(text)];
		const char *words[WORDS_MAX] = {copy};
		struct probe_spec p;
		struct error e = {0};
		size_t n = 1, blank = 0;

		memcpy(copy, text, sizeof(text));
		for (char *s = copy; s < copy + sizeof(copy) - 1; s++) {
			if (*s != ' ' || !(cuts >> blank++ & 1))
				continue;
			*s = '\0';
			words[n++] = s + 1;
		}
		assert_int_equal(probe_parse_words(words, n, &p, &e), 0);
		assert_true(probe_spec_eq(&whole, &p));
		probe_spec_free(&p);
	}
	probe_spec_free(&whole);
}

static void kinds_have_names(void **state)
{
	(void)state;
	for (int k = PROBE_UPROBE; k <= PROBE_TRACEPOINT; k++) {
		const char *name = probe_kind_name((enum probe_kind)k);
		autofree char *text = NULL;
		struct probe_spec p;

		assert_true(asprintf(&text, "%s:%s", name,
				     k == PROBE_LINE				 ? "a:b:1"
				     : k == PROBE_KPROBE || k == PROBE_KRETPROBE ? "a"
										 : "a:b") > 0);
		p = parse(text);
		assert_int_equal(p.kind, k);
		probe_spec_free(&p);
	}
}

static void equality_sees_every_part(void **state)
{
	static const char *const texts[] = {
		"k:f",		"kr:f",		 "k:g",		"k:m:f",	"k:f+1",
		"p:x f",	"p:y f",	 "p:g/x f",	"u:a:f",	"u:b:f",
		"u:a:0x1",	"u:a:0x1(0x2)",	 "line:a:b:1",	"line:a:b:2",	"line:a:c:1",
		"k:f arg0",	"k:f arg1",	 "k:f x=arg0",	"k:f arg0:u8",	"k:f arg0:s8",
		"k:f arg0:u16", "k:f by arg0",	 "k:f if arg0", "k:f if !arg0", "k:f if a",
		"k:f if b",	"k:f arg0 arg0",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct probe_spec a = parse(texts[i]);

		for (size_t j = 0; j < ARRAY_SIZE(texts); j++) {
			struct probe_spec b = parse(texts[j]);

			if (probe_spec_eq(&a, &b) != (i == j))
				fail_msg("%s and %s", texts[i], texts[j]);
			probe_spec_free(&b);
		}
		probe_spec_free(&a);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets),
		cmocka_unit_test(expressions),
		cmocka_unit_test(conditions),
		cmocka_unit_test(types),
		cmocka_unit_test(canonical_texts),
		cmocka_unit_test(arguments_are_divided_by_blanks_and_commas),
		cmocka_unit_test(words_of_a_command_line),
		cmocka_unit_test(kinds_have_names),
		cmocka_unit_test(equality_sees_every_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
