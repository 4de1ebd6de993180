// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * USDT probes: each form of operand as text, and programs of both compilers that are stopped at
 * their probes to see whether what the operands say is what the program gave.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/probe_programs.h"

struct form {
	const char *text;
	struct usdt_arg want;
};

static const struct form forms[] = {
	{"8@%rax", {.kind = USDT_REG, .size = 8, .reg = "rax"}},
	{"-4@%eax", {.kind = USDT_REG, .size = 4, .is_signed = true, .reg = "rax"}},
	{"2@%r8w", {.kind = USDT_REG, .size = 2, .reg = "r8"}},
	{"1@%r15b", {.kind = USDT_REG, .size = 1, .reg = "r15"}},
	{"4@%r10d", {.kind = USDT_REG, .size = 4, .reg = "r10"}},
	{"1@%al", {.kind = USDT_REG, .size = 1, .reg = "rax"}},
	{"1@%sil", {.kind = USDT_REG, .size = 1, .reg = "rsi"}},
	{"2@%bp", {.kind = USDT_REG, .size = 2, .reg = "rbp"}},
	{"1@%dh", {.kind = USDT_REG, .size = 1, .reg = "rdx", .shift = 8}},
	{"%rdi", {.kind = USDT_REG, .size = 8, .reg = "rdi"}},
	{"8f@%rdx", {.kind = USDT_REG, .size = 8, .is_float = true, .reg = "rdx"}},
	{"4f@-16(%rbp)",
	 {.kind = USDT_MEMORY, .size = 4, .is_float = true, .value = -16, .reg = "rbp"}},
	{"8f@%xmm3",
	 {.kind = USDT_REG, .size = 8, .is_float = true, .unfetchable = true, .reg = "xmm3"}},
	{"4@%xmm0",
	 {.kind = USDT_REG, .size = 4, .is_float = true, .unfetchable = true, .reg = "xmm0"}},
	{"4@$5", {.kind = USDT_CONST, .size = 4, .value = 5}},
	{"-4@$-5", {.kind = USDT_CONST, .size = 4, .is_signed = true, .value = -5}},
	{"8@$0xffffffffffffffff", {.kind = USDT_CONST, .size = 8, .value = -1}},
	{"-4@-20(%rbp)",
	 {.kind = USDT_MEMORY, .size = 4, .is_signed = true, .value = -20, .reg = "rbp"}},
	{"8@(%rsp)", {.kind = USDT_MEMORY, .size = 8, .reg = "rsp"}},
	{"8@8(%rdx,%rax,8)",
	 {.kind = USDT_MEMORY, .size = 8, .value = 8, .reg = "rdx", .index = "rax", .scale = 8}},
	{"4@(%rdx,%rax)",
	 {.kind = USDT_MEMORY, .size = 4, .reg = "rdx", .index = "rax", .scale = 1}},
	{"4@16(,%rax,4)",
	 {.kind = USDT_MEMORY, .size = 4, .value = 16, .index = "rax", .scale = 4}},
	{"8@sym(%rip)", {.kind = USDT_MEMORY, .size = 8, .reg = "rip", .symbol = "sym"}},
	{"8@sym+24(%rip)",
	 {.kind = USDT_MEMORY, .size = 8, .value = 24, .reg = "rip", .symbol = "sym"}},
	{"8@24+sym(%rip)",
	 {.kind = USDT_MEMORY, .size = 8, .value = 24, .reg = "rip", .symbol = "sym"}},
	{"8@sym-8(%rip)",
	 {.kind = USDT_MEMORY, .size = 8, .value = -8, .reg = "rip", .symbol = "sym"}},
	{"8@a.b_0$c", {.kind = USDT_MEMORY, .size = 8, .symbol = "a.b_0$c"}},
	{"4@table(,%rax,4)",
	 {.kind = USDT_MEMORY, .size = 4, .index = "rax", .scale = 4, .symbol = "table"}},
	{"8@%fs:16", {.kind = USDT_MEMORY, .size = 8, .unfetchable = true}},
	{"16@(%rax)", {.kind = USDT_MEMORY, .size = 8, .unfetchable = true, .reg = "rax"}},
	/* arm64 */
	{"8@x0", {.kind = USDT_REG, .size = 8, .reg = "x0"}},
	{"-4@w19", {.kind = USDT_REG, .size = 4, .is_signed = true, .reg = "x19"}},
	{"8@sp", {.kind = USDT_REG, .size = 8, .reg = "sp"}},
	{"8@xzr", {.kind = USDT_CONST, .size = 8}},
	{"8f@d1",
	 {.kind = USDT_REG, .size = 8, .is_float = true, .unfetchable = true, .reg = "d1"}},
	{"4@5", {.kind = USDT_CONST, .size = 4, .value = 5}},
	{"-4@-5", {.kind = USDT_CONST, .size = 4, .is_signed = true, .value = -5}},
	{"8@[sp]", {.kind = USDT_MEMORY, .size = 8, .reg = "sp"}},
	{"-4@[sp, 12]",
	 {.kind = USDT_MEMORY, .size = 4, .is_signed = true, .value = 12, .reg = "sp"}},
	{"8@[x29, #-16]", {.kind = USDT_MEMORY, .size = 8, .value = -16, .reg = "x29"}},
	{"8@[x1, x2]", {.kind = USDT_MEMORY, .size = 8, .reg = "x1", .index = "x2", .scale = 1}},
	{"8@[x1, x2, lsl 3]",
	 {.kind = USDT_MEMORY, .size = 8, .reg = "x1", .index = "x2", .scale = 8}},
	{"8@[x1, x2, lsl #2]",
	 {.kind = USDT_MEMORY, .size = 8, .reg = "x1", .index = "x2", .scale = 4}},
	{"8@[x1, w2, sxtw 3]",
	 {.kind = USDT_MEMORY,
	  .size = 8,
	  .unfetchable = true,
	  .reg = "x1",
	  .index = "x2",
	  .scale = 1}},
	{"8@[x0, #:lo12:sym]", {.kind = USDT_MEMORY, .size = 8, .unfetchable = true, .reg = "x0"}},
};

static void check_arg(const char *text, const struct usdt_arg *got, const struct usdt_arg *want)
{
	if (got->kind != want->kind || got->size != want->size ||
	    got->is_signed != want->is_signed || got->is_float != want->is_float ||
	    got->value != want->value || !streq(got->reg, want->reg) ||
	    !streq(got->index, want->index) || got->scale != want->scale ||
	    got->shift != want->shift || got->unfetchable != want->unfetchable ||
	    !streq(got->symbol, want->symbol))
		fail_msg(
			"%s: kind %d size %d signed %d float %d value %ld reg %s index %s scale %d "
			"shift %d unfetchable %d symbol %s",
			text, got->kind, got->size, got->is_signed, got->is_float, (long)got->value,
			got->reg, got->index, got->scale, got->shift, got->unfetchable,
			got->symbol);
}

static void every_form_of_an_operand(void **state)
{
	char all[2048] = "";
	struct error e;
	struct usdt u;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (usdt_args_parse(forms[i].text, &u, &e))
			fail_msg("%s: %s", forms[i].text, e.text);
		assert_int_equal(u.n_args, 1);
		check_arg(forms[i].text, &u.args[0], &forms[i].want);
	}
	for (size_t i = 0; i < USDT_ARGS_MAX; i++)
		sprintf(all + strlen(all), "%s%s", i ? " " : "", forms[i + 20].text);
	assert_int_equal(usdt_args_parse(all, &u, &e), 0);
	assert_int_equal(u.n_args, USDT_ARGS_MAX);
	for (size_t i = 0; i < USDT_ARGS_MAX; i++)
		check_arg(forms[i + 20].text, &u.args[i], &forms[i + 20].want);
	assert_int_equal(usdt_args_parse("", &u, &e), 0);
	assert_int_equal(u.n_args, 0);
}

static void what_is_no_operand(void **state)
{
	static const char *const bad[] = {
		"8@",
		"8@%",
		"8@%rzz",
		"8@%r16",
		"8@(%rax",
		"8@(%rax,",
		"8@(%rax,%rcx,3)",
		"8@(%rax)x",
		"8@$",
		"8@$5x",
		"0@%rax",
		"1000@%rax",
		"8@[x0",
		"8@[x0, ]",
		"8@[y0]",
		"8@[x0,x1,",
		"8@[x0, x1, lsl 9]",
		"8@x31x(",
		"8@a+b(%rip)",
		"8@5(%xmm0)",
		"99999999999999999999@%rax",
	};
	char many[256] = "";
	struct error e;
	struct usdt u;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e = (struct error){0};
		if (usdt_args_parse(bad[i], &u, &e) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(u.n_args, 0);
		assert_non_null(strstr(e.text, "argument 1 of"));
	}
	assert_int_equal(usdt_args_parse("8@%rax 4@nonsense( 8@%rbx", &u, &e), -EINVAL);
	assert_non_null(strstr(e.text, "argument 2 of the USDT probe, '4@nonsense('"));
	for (int i = 0; i <= USDT_ARGS_MAX; i++)
		strcat(many, "8@%rax ");
	assert_int_equal(usdt_args_parse(many, &u, &e), -E2BIG);
}

#ifdef __x86_64__
/* PROBE(name, format of the operands, operands...): a nop, and a note about it. */
static const char program[] =
	"#define PROBE(name, moved, args, ...) __asm__ volatile(\"990: nop\\n\"\\\n"
	"\".pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n.balign 4\\n\"\\\n"
	"\".4byte 992f-991f, 994f-993f, 3\\n991: .asciz \\\"stapsdt\\\"\\n992: .balign 4\\n\"\\\n"
	"\"993: .8byte 990b-\" moved \", _.stapsdt.base-\" moved \", gate-\" moved \"\\n\"\\\n"
	"\".asciz \\\"ax\\\"\\n.asciz \\\"\" name \"\\\"\\n.asciz \\\"\" args \"\\\"\\n\"\\\n"
	"\"994: .balign 4\\n.popsection\\n\" : : __VA_ARGS__)\n"
	"__asm__(\".pushsection "
	".stapsdt.base,\\\"aG\\\",\\\"progbits\\\",.stapsdt.base,comdat\\n\"\n"
	"\".weak _.stapsdt.base\\n.hidden _.stapsdt.base\\n_.stapsdt.base: .space 1\\n\"\n"
	"\".size _.stapsdt.base, 1\\n.popsection\\n\");\n"
	"#include <stdio.h>\n#include <stdlib.h>\n"
	"unsigned short gate __attribute__((section(\".probes\"), used)) = 0x1234;\n"
	"long global = 7777777777; int numbers[8] = {0, 10, 20, 30, 40, 50, 60, 70};\n"
	"static short small = -3;\n"
	"__attribute__((noinline)) void work(long a, int b, unsigned char c, long i, int *v) {\n"
	"	PROBE(\"nothing\", \"0\", \"\", \"r\"(a));\n"
	"	PROBE(\"registers\", \"0\", \"8@%0 -4@%k1 1@%b2\", \"r\"(a), \"r\"(b), \"q\"(c));\n"
	"	PROBE(\"anywhere\", \"0\", \"8@%0 -4@%1 -4@%2\", \"nor\"(a), \"nor\"(b), "
	"\"n\"(-42));\n"
	"	PROBE(\"memory\", \"0\", \"-4@%0 8@%1 -2@%2\", \"m\"(v[i]), \"m\"(global),"
	" \"m\"(small));\n"
	"	PROBE(\"moved\", \"0x1000\", \"8@%0\", \"r\"(a));\n"
	"	PROBE(\"strange\", \"0\", \"8@%0 8@?\", \"r\"(a));\n"
	"}\n"
	"int main(void) { volatile long i = 5; work(123456789012, -99, 200, i, numbers);\n"
	"	return 0; }\n";

struct probes {
	struct usdt v[16];
	size_t n;
};

static int add_usdt(void *arg, const struct usdt *u)
{
	struct probes *p = arg;

	assert_true(p->n < ARRAY_SIZE(p->v));
	p->v[p->n++] = *u;
	return 0;
}

static const struct usdt *usdt_of(const struct probes *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (streq(p->v[i].name, name))
			return &p->v[i];
	fail_msg("there is no probe %s", name);
	return NULL;
}

static uint64_t reg_value(const struct stopped *s, const char *name)
{
	const struct {
		const char *name;
		uint64_t value;
	} regs[] = {
		{"rax", s->regs.rax}, {"rbx", s->regs.rbx}, {"rcx", s->regs.rcx},
		{"rdx", s->regs.rdx}, {"rsi", s->regs.rsi}, {"rdi", s->regs.rdi},
		{"rbp", s->regs.rbp}, {"rsp", s->regs.rsp}, {"rip", s->regs.rip},
		{"r8", s->regs.r8},   {"r9", s->regs.r9},   {"r10", s->regs.r10},
		{"r11", s->regs.r11}, {"r12", s->regs.r12}, {"r13", s->regs.r13},
		{"r14", s->regs.r14}, {"r15", s->regs.r15}, {"", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(regs); i++)
		if (streq(regs[i].name, name))
			return regs[i].value;
	fail_msg("there is no register '%s'", name);
	return 0;
}

/* What the one who fetches is told to do. */
static int64_t fetch(const struct stopped *s, const struct usdt_arg *a)
{
	uint64_t v = (uint64_t)a->value;

	assert_false(a->unfetchable || a->is_float || *a->symbol);
	if (a->kind == USDT_REG)
		v = reg_value(s, a->reg) >> a->shift;
	if (a->kind == USDT_MEMORY)
		v = peek(s, v + reg_value(s, a->reg) + reg_value(s, a->index) * a->scale);
	v <<= 64 - 8 * a->size;
	return a->is_signed ? (int64_t)v >> (64 - 8 * a->size) : (int64_t)(v >> (64 - 8 * a->size));
}

static void check_values(struct binary *b, const struct usdt *u, size_t n, const int64_t *want)
{
	struct symbol work = symbol_of(b, "work");
	struct stopped s;

	assert_int_equal(u->n_args, n);
	s = stop_at(b, u->offset - work.offset + work.address, u->offset);
	for (size_t i = 0; i < n; i++) {
		int64_t got = fetch(&s, &u->args[i]);

		if (got != want[i])
			fail_msg("%s: argument %zu of '%s' is %ld, not %ld", u->name, i,
				 u->args_text, (long)got, (long)want[i]);
	}
	stopped_kill(&s);
}

/* gate is in .probes; its content is in the file. */
static void check_semaphore(struct binary *b, const struct usdt *u)
{
	uint8_t got[2];
	FILE *f = fopen(binary_path(b), "r");

	assert_non_null(f);
	assert_int_equal(fseek(f, (long)u->semaphore, SEEK_SET), 0);
	assert_int_equal(fread(got, 1, 2, f), 2);
	fclose(f);
	assert_int_equal(got[0] | got[1] << 8, 0x1234);
}

static void values_at_the_probes(void **state)
{
	static const char *const builds[] = {
		"gcc -O0",
		"gcc -O2",
		"gcc -O2 -static",
		"gcc -O2 -no-pie -fno-pie",
		"gcc -O0 -no-pie -fno-pie",
		"gcc -O2 -static-pie",
		"clang -O0",
		"clang -O2",
		"clang -O2 -no-pie -fno-pie",
	};
	const int64_t args[] = {123456789012, -99, 200}, any[] = {123456789012, -99, -42},
		      memory[] = {50, 7777777777, -3};

	(void)state;
	build_source("usdt.c", program);
	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		struct probes p = {0};
		struct error e = {0};
		struct binary *b;

		build_run("%s usdt.c -o usdt%zu", builds[i], i);
		b = open_built((char[]){'u', 's', 'd', 't', (char)('0' + i), 0});
		if (binary_usdts(b, "ax", NULL, add_usdt, &p, &e))
			fail_msg("%s: %s", builds[i], e.text);
		assert_int_equal(p.n, 6);
		check_values(b, usdt_of(&p, "nothing"), 0, NULL);
		check_values(b, usdt_of(&p, "registers"), 3, args);
		check_values(b, usdt_of(&p, "anywhere"), 3, any);
		check_values(b, usdt_of(&p, "memory"), 3, memory);
		check_values(b, usdt_of(&p, "moved"), 1, args);
		check_semaphore(b, usdt_of(&p, "registers"));
		check_semaphore(b, usdt_of(&p, "moved"));
		assert_int_equal(usdt_of(&p, "strange")->n_args, 0);
		assert_non_null(strstr(usdt_of(&p, "strange")->args_text, "8@?"));
		binary_close(b);
	}
}

/* Without symbols a probe is there all the same, but what names one is not to be had. */
static void stripped_programs(void **state)
{
	struct probes p = {0};
	struct error e = {0};
	struct binary *b;
	const struct usdt *memory;

	(void)state;
	build_source("usdt.c", program);
	build_run("gcc -O2 usdt.c -o stripped && strip stripped");
	b = open_built("stripped");
	assert_int_equal(binary_usdts(b, "a*", "m?m*", add_usdt, &p, &e), 0);
	assert_int_equal(p.n, 1);
	memory = &p.v[0];
	assert_string_equal(memory->name, "memory");
	assert_int_equal(memory->n_args, 3);
	assert_false(memory->args[0].unfetchable);
	assert_true(memory->args[1].unfetchable);
	assert_string_equal(memory->args[1].symbol, "global");
	assert_int_equal(binary_usdts(b, "ax", "none", add_usdt, &p, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no USDT probe ax:none"));
	binary_close(b);
	build_run("printf 'int main(void) { return 0; }' > plain.c && gcc plain.c -o plain");
	b = open_built("plain");
	assert_int_equal(binary_usdts(b, NULL, NULL, add_usdt, &p, &e), -ENOENT);
	assert_non_null(strstr(e.text, "has no USDT probes"));
	binary_close(b);
}
#endif

static int check_import(void *arg, const struct usdt *u)
{
	assert_string_equal(u->provider, "python");
	assert_string_equal(u->name, "import__find__load__done");
	assert_int_equal(u->n_args, 2);
	assert_true(u->args[1].is_signed && u->args[1].size == 4);
	assert_true(u->semaphore != 0 && u->offset != 0);
	++*(int *)arg;
	return 0;
}

static void probes_of_python(void **state)
{
	struct binary *b = NULL;
	struct error e = {0};
	int n = 0;

	(void)state;
	if (binary_open("/usr/bin/python3", 0, &b, &e) ||
	    binary_usdts(b, "python", "import__find__load__d*", check_import, &n, &e))
		fail_msg("%s", e.text);
	assert_true(n >= 1);
	binary_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_an_operand), cmocka_unit_test(what_is_no_operand),
#ifdef __x86_64__
		cmocka_unit_test(values_at_the_probes),	    cmocka_unit_test(stripped_programs),
#endif
		cmocka_unit_test(probes_of_python),
	};

	return cmocka_run_group_tests_name("probe_usdt", tests, build_dir_make, build_dir_remove);
}
