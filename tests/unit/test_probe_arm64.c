// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes on programs for arm64, on any machine: what the kernel does with instructions, places in a
 * program that Debian's cross compiler has made (arm64/program.c), what its variables and operands
 * are for registers and memory that are given, and who called.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>

#include "probes/elf/image.h"
#include "probes/elf/usdt.h"
#include "probes/fetch/evaluate.h"
#include "probes/place/priv.h"
#include "probes/unwind/unwind.h"

#define PROGRAM "tests/fuzz/corpus/fuzz_dwarf/arm64"

#define E PLACE_EMULATED
#define S PLACE_STEPPED
#define X PLACE_REFUSED

/* --- instructions --- */

/* As GNU as 2.40 and clang 14 assemble them. */
static const struct {
	uint32_t insn;
	enum place_cost on_6_13, before;
	const char *text;
} instructions[] = {
	{0xd503201f, E, S, "nop"},	 {0xd503241f, S, S, "bti"},
	{0xd503245f, S, S, "bti c"},	 {0xd503249f, S, S, "bti j"},
	{0xd50324df, S, S, "bti jc"},	 {0xd503233f, S, S, "paciasp"},
	{0xd503237f, S, S, "pacibsp"},	 {0xd503231f, S, S, "paciaz"},
	{0xd503211f, S, S, "pacia1716"}, {0xd50320ff, S, S, "xpaclri"},
	{0xd50323bf, X, X, "autiasp"},	 {0xd50323ff, X, X, "autibsp"},
	{0xd503239f, X, X, "autiaz"},	 {0xd503219f, X, X, "autia1716"},
	{0xd503203f, X, X, "yield"},	 {0xd503205f, X, X, "wfe"},
	{0xd503209f, X, X, "sev"},	 {0xd503221f, X, X, ".inst 0xd503221f"}, /* esb */
	{0x14000000, E, E, NULL},						 /* b */
	{0x94000000, E, E, NULL},						 /* bl */
	{0x54000000, E, E, NULL},						 /* b.eq */
	{0x54000010, X, X, NULL},						 /* bc.eq */
	{0xb4000000, E, E, NULL},						 /* cbz x0 */
	{0x35000000, E, E, NULL},						 /* cbnz w0 */
	{0x36080000, E, E, NULL},						 /* tbz w0, #1 */
	{0x37080000, E, E, NULL},						 /* tbnz w0, #1 */
	{0xd61f0200, E, E, NULL},						 /* br x16 */
	{0xd63f0200, E, E, NULL},						 /* blr x16 */
	{0xd65f03c0, E, E, "ret"},	 {0xd65f0020, E, E, NULL},		 /* ret x1 */
	{0xd65f0bff, X, X, NULL},						 /* retaa */
	{0xd65f0fff, X, X, NULL},						 /* retab */
	{0xd61f0a1f, X, X, NULL},						 /* braaz x16 */
	{0xd63f0a1f, X, X, NULL},						 /* blraaz x16 */
	{0xd71f0a11, X, X, NULL},						 /* braa x16, x17 */
	{0x10000000, E, E, NULL},						 /* adr x0 */
	{0x90000000, E, E, NULL},						 /* adrp x0 */
	{0x18000000, X, X, NULL}, /* ldr w0, literal */
	{0x58000000, X, X, NULL}, /* ldr x0, literal */
	{0x98000000, X, X, NULL}, /* ldrsw x0, literal */
	{0xd8000000, X, X, NULL}, /* prfm literal */
	{0x1c000000, X, X, NULL}, /* ldr s0, literal */
	{0x5c000000, X, X, NULL}, /* ldr d0, literal */
	{0x9c000000, X, X, NULL}, /* ldr q0, literal */
	{0xd4000001, X, X, NULL}, /* svc #0 */
	{0xd4000002, X, X, NULL}, /* hvc #0 */
	{0xd4200000, X, X, NULL}, /* brk #0 */
	{0xd4400000, X, X, NULL}, /* hlt #0 */
	{0xd51bd040, X, X, NULL}, /* msr tpidr_el0, x0 */
	{0xd51b4400, X, X, NULL}, /* msr fpcr, x0 */
	{0xd51b4200, X, X, NULL}, /* msr nzcv, x0 */
	{0xd50341df, X, X, NULL}, /* msr daifset, #1 */
	{0xd53bd040, S, S, NULL}, /* mrs x0, tpidr_el0 */
	{0xd53b4220, X, X, NULL}, /* mrs x0, daif */
	{0xd53b4200, S, S, NULL}, /* mrs x0, nzcv */
	{0xd5033bbf, S, S, NULL}, /* dmb ish */
	{0xd5033fdf, S, S, NULL}, /* isb */
	{0xd50b7420, S, S, NULL}, /* dc zva, x0 */
	{0xc85f7c20, X, X, NULL}, /* ldxr x0, [x1] */
	{0xc8027c20, X, X, NULL}, /* stxr w2, x0, [x1] */
	{0x085ffc20, X, X, NULL}, /* ldaxrb w0, [x1] */
	{0x4802fc20, X, X, NULL}, /* stlxrh w2, w0, [x1] */
	{0xc87f0c20, X, X, NULL}, /* ldxp x0, x3, [x1] */
	{0xc8220c20, X, X, NULL}, /* stxp w2, x0, x3, [x1] */
	{0xc8dffc20, S, S, NULL}, /* ldar x0, [x1] */
	{0xc89ffc20, S, S, NULL}, /* stlr x0, [x1] */
	{0x08dffc20, S, S, NULL}, /* ldarb w0, [x1] */
	{0x489ffc20, S, S, NULL}, /* stlrh w0, [x1] */
	{0xc8a07c22, S, S, NULL}, /* cas x0, x2, [x1] */
	{0x88e0fc22, S, S, NULL}, /* casal w0, w2, [x1] */
	{0x48207c82, X, X, NULL}, /* casp x0, x1, x2, x3, [x4] */
	{0x0860fc82, X, X, NULL}, /* caspal w0, w1, w2, w3, [x4] */
	{0xf8200022, S, S, NULL}, /* ldadd x0, x2, [x1] */
	{0xf8208022, S, S, NULL}, /* swp x0, x2, [x1] */
	{0xf8bfc020, S, S, NULL}, /* ldapr x0, [x1] */
	{0x99404020, S, S, NULL}, /* ldapur w0, [x1, #4] */
	{0x19010440, X, X, NULL}, /* cpyfp [x0]!, [x1]!, x2! */
	{0x19410440, X, X, NULL}, /* cpyfm */
	{0x19810440, X, X, NULL}, /* cpyfe */
	{0x19c20420, X, X, NULL}, /* setp [x0]!, x1!, x2 */
	{0xd9200820, S, S, NULL}, /* stg x0, [x1] */
	{0xa9bf7bfd, S, S, NULL}, /* stp x29, x30, [sp, #-16]! */
	{0xa8c17bfd, S, S, NULL}, /* ldp x29, x30, [sp], #16 */
	{0x910003fd, S, S, NULL}, /* mov x29, sp */
	{0xf9400b90, S, S, NULL}, /* ldr x16, [x28, #16] */
	{0x9e670000, S, S, NULL}, /* fmov d0, x0 */
	{0x00000000, X, X, NULL}, /* udf #0 */
};

static void costs_of_instructions(void **state)
{
	const struct place_kernel now = {.arm64_nop = true}, before = {0};
	const char *why;
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(instructions); i++) {
		uint32_t insn = instructions[i].insn;

		if (arm64_cost(insn, now, &why) != instructions[i].on_6_13 || !*why)
			fail_msg("%08x: %s", insn, why);
		if (arm64_cost(insn, before, &why) != instructions[i].before || !*why)
			fail_msg("%08x before 6.13: %s", insn, why);
		arm64_text(insn, text, sizeof(text));
		if (instructions[i].text)
			assert_string_equal(text, instructions[i].text);
		assert_true(*text);
	}
	assert_true(arm64_is_return(0xd65f03c0) && arm64_is_return(0xd65f0bff));
	assert_true(arm64_is_return(0xd65f0fff) && !arm64_is_return(0xd61f03c0));
}

/* What stops between the two takes away what the load has reserved, each time. */
static void nothing_stops_an_exclusive_store(void **state)
{
	static const struct {
		uint32_t insn;
		bool inside;
	} code[] = {
		{0xc8dffc20, false}, /* ldar: no reservation */
		{0xc85ffc01, false}, /* ldaxr x1, [x0] */
		{0xeb03003f, true},  /* cmp x1, x3 */
		{0x54000061, true},  /* b.ne, to behind the store */
		{0xc803fc02, true},  /* stlxr w3, x2, [x0] */
		{0x35ffff83, false}, /* cbnz w3, the load */
		{0xaa0103e0, false}, /* mov x0, x1 */
		{0x885f7c20, false}, /* ldxr w0, [x1] */
		{0x48207c82, true},  /* casp: it reserves nothing, and keeps nothing from it */
		{0xd5033f5f, true},  /* clrex */
		{0xaa0103e0, false}, /* mov x0, x1 */
		{0x885f7c20, false}, /* ldxr w0, [x1] */
		{0xd65f03c0, true},  /* ret */
		{0xaa0103e0, false}, /* of what comes behind it */
	};
	uint8_t bytes[sizeof(uint32_t) * ARRAY_SIZE(code)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(code); i++) {
		memcpy(bytes + 4 * i, &code[i].insn, 4);
		if (arm64_in_exclusive(bytes, 4 * i) != code[i].inside)
			fail_msg("%zu: %08x", i, code[i].insn);
	}
}

/* As Go 1.19 starts functions with small, big and very big frames, and those without a check. */
static void checks_of_go_stacks(void **state)
{
	static const struct {
		uint32_t code[9];
		size_t len;
	} list[] = {
		{{0xf9400b90, 0xeb3063ff, 0x54000449, 0xf81a0ffe, 0xf81f83fd}, 12},
		{{0xf9400b90, 0xd10f43f1, 0xeb10023f, 0x54000729, 0xd11143f4}, 16},
		{{0xf9400b90, 0xd29ffa1b, 0xf2a0003b, 0xeb3b63f1, 0x540008c3, 0xeb10023f,
		  0x54000889, 0xd10143f4},
		 28},
		{{0xf81e0ffe, 0xf9400b90, 0xeb3063ff, 0x54000449, 0xf81f83fd}, 0},
		{{0xf9400b90, 0x91000400, 0xeb3063ff, 0x54000449, 0xf81f83fd}, 0}, /* add x0 */
		{{0xf9400b90, 0x9100029f, 0xeb3063ff, 0x54000449, 0xf81f83fd}, 0}, /* mov sp */
		{{0xf9400b90, 0xeb3063ff, 0x94000000, 0x54000449, 0xf81f83fd}, 0}, /* bl */
		{{0xf9400b90, 0xeb3063ff, 0xeb3063ff, 0xeb3063ff, 0xeb3063ff, 0xeb3063ff,
		  0xeb3063ff, 0xeb3063ff, 0x54000449},
		 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		const uint8_t *code = (const uint8_t *)list[i].code;

		assert_int_equal(arm64_go_prologue(code, sizeof(list[i].code)), list[i].len);
		/* what is cut off has none, or its end would be the function's */
		for (size_t len = 0; len <= list[i].len; len++)
			assert_int_equal(arm64_go_prologue(code, len), 0);
	}
}

/* --- a program --- */

static struct binary *program;

static int open_program(void **state)
{
	struct error e = {0};

	(void)state;
	if (binary_open(PROGRAM, 0, &program, &e) < 0)
		fail_msg("%s", e.text);
	return 0;
}

static int close_program(void **state)
{
	(void)state;
	binary_close(program);
	return 0;
}

static int remember_symbol(void *arg, const struct symbol *s)
{
	*(struct symbol *)arg = *s;
	return 1;
}

static struct symbol function(const char *name)
{
	struct symbol s = {0};
	struct error e = {0};

	if (binary_functions(program, name, remember_symbol, &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

static void places_in_a_program(void **state)
{
	static const struct {
		const char *function;
		uint32_t at;
		enum place_cost cost;
		const char *instruction, *why;
	} list[] = {
		{"leaf", 0, S, "bti c", "steps over"},
		{"leaf", 12, E, "ret", "simulates"},
		{"work", 0, S, "paciasp", "steps over"},
		{"work", 4, S, ".inst 0xa9bf7bfd", "steps over"},
		{"work", 0x5c, X, "autiasp", "no probe on this hint"},
		{"work", 2, X, "", "multiples of four"},
		{"atomic", 4, X, NULL, "exclusive loads and stores"},
		{"atomic", 8, X, NULL, "try again for ever"},
		{"atomic", 12, X, NULL, "exclusive loads and stores"},
		{"atomic", 16, E, NULL, "simulates"},
		{"atomic", 20, S, NULL, "steps over"},
	};
	struct error e = {0};
	struct place p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		struct symbol s = function(list[i].function);
		uint64_t offset = s.offset + list[i].at;

		if (binary_place(program, &s, offset, list[i].at, &p, &e) < 0)
			fail_msg("%s", e.text);
		if (p.cost != list[i].cost || !strstr(p.why, list[i].why))
			fail_msg("%s+%u: %s", list[i].function, list[i].at, p.why);
		if (list[i].instruction)
			assert_string_equal(p.instruction, list[i].instruction);
		assert_int_equal(p.offset, offset);
		assert_int_equal(p.slid, 0);
	}
	/* behind the end of its code */
	assert_true(binary_place(program, NULL, 0x100000, true, &p, &e) < 0);
}

static void returns_of_a_function(void **state)
{
	autofree uint64_t *offsets = NULL;
	struct symbol s = function("work");
	struct error e = {0};
	size_t n = 0;

	(void)state;
	assert_int_equal(binary_returns(program, &s, &offsets, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_int_equal(offsets[0], s.offset + 0x64);
	assert_int_equal(offsets[1], s.offset + 0x7c);
	s = function("_start");
	assert_int_equal(binary_returns(program, &s, &offsets, &n, &e), -ENOENT);
}

/* --- values --- */

#define NODE  0x5000
#define BIG   0x6000
#define STACK 0x7000

/* As struct pt_regs has them: x0 to x30, sp, pc, pstate. */
static uint64_t registers[34];
/* name, number, bits, next; four numbers; what the caller put onto the stack */
static uint64_t memory[3][4] = {
	{NODE + 8, 5 | (uint64_t)(1 | 2 << 3) << 32, 0x401ff0, 0},
	{1, 2, 3, 4},
	{99, 0, 0, 0},
};

/* Those three, and what the program begins with. */
static int read_memory(void *arg, uint64_t address, void *to, size_t len)
{
	const struct image *im = arg;
	uint64_t offset;

	for (size_t i = 0; i < 3; i++) {
		uint64_t at = address - (NODE + 0x1000 * i);

		if (at < sizeof(memory[i]) && len <= sizeof(memory[i]) - at) {
			memcpy(to, (const char *)memory[i] + at, len);
			return 0;
		}
	}
	return image_offset(im, address, false, &offset) ? image_read(im, offset, to, len)
							 : -EFAULT;
}

static union {
	struct ax_probe_record record;
	char bytes[4096];
} room;

static void evaluate(const char *text, const struct fetch_place *place, struct fetch *f)
{
	struct fetch_thread t = {
		.registers = registers, .n_registers = sizeof(registers), .read = read_memory};
	struct fetch_texts texts = {0};
	struct probe_spec p = {0};
	struct error e = {0};
	struct image im;

	assert_int_equal(image_open(&im, open(PROGRAM, O_RDONLY | O_CLOEXEC), PROGRAM, &e), 0);
	t.arg = &im;
	if (probe_parse(text, &p, &e) < 0 ||
	    fetch_compile(&p, TRACE_WATCH, place, &texts, f, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	assert_true(fetch_evaluate(f, &t, &room.record, sizeof(room)) > 0);
	if (room.record.faults)
		fail_msg("%s: faults %x", text, room.record.faults);
	fetch_texts_free(&texts);
	probe_spec_free(&p);
	image_close(&im);
}

/* Every register has a value of its own; those that the caller of work() has set, what it says. */
static void at_entry_of_work(void)
{
	static const uint64_t arguments[] = {4, NODE, (uint8_t)-5, BIG, 5, 6, 7, 8};

	for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
		registers[i] = 0x1000000 + i;
	memcpy(registers, arguments, sizeof(arguments));
	registers[0] |= 0xffffffff00000000; /* the upper half of an int is anything */
	registers[30] = 0x400300;
	registers[31] = STACK;
}

/* Up to four values, and their names. */
static void expect(const char *text, const struct fetch_place *place, const uint64_t *want)
{
	struct fetch f = {0};

	evaluate(text, place, &f);
	for (size_t i = 0; i < f.n_values; i++)
		if (room.record.values[i] != want[i])
			fail_msg("%s: %s is 0x%llx, not 0x%llx", text, f.values[i].name,
				 (unsigned long long)room.record.values[i],
				 (unsigned long long)want[i]);
	fetch_free(&f);
}

static void values_of_registers(void **state)
{
	const struct fetch_place place = {.machine = EM_AARCH64};
	static const uint64_t args[] = {0xffffffff00000004, NODE, 8, 99},
			      names[] = {0x1000000 + 29, 0x400300, STACK, 0x1000000 + 32},
			      halves[] = {4, 0x1000000 + 19, 0x1000000 + 29, 0x400300},
			      results[] = {0xffffffff00000004};

	(void)state;
	at_entry_of_work();
	expect("uprobe:/x:f arg0 arg1 arg7 arg8", &place, args);
	expect("uprobe:/x:f %fp %lr %sp %pc", &place, names);
	expect("uprobe:/x:f %w0 %x19 %x29 %x30", &place, halves);
	expect("uretprobe:/x:f retval", &place, results);
}

static void values_of_variables(void **state)
{
	struct dwarf *d CLEANUP(dwarf_freep) = NULL;
	struct symbol work = function("work");
	struct fetch_place place = {.machine = EM_AARCH64, .offset = work.offset};
	static const uint64_t plain[] = {4, (uint64_t)-5, 8, 99}, parts[] = {5, 1, 2, 7},
			      others[] = {3, 41, 0x401ff0, 9}, later[] = {4, 8, 7777, 5};

	(void)state;
	assert_int_equal(dwarf_new(binary_path(program), &d), 0);
	place.dwarf = d;
	at_entry_of_work();
	expect("uprobe:/x:work n c h on_stack", &place, plain);
	expect("uprobe:/x:work p->number p->low p->mid p->next->number", &place, parts);
	expect("uprobe:/x:work b.v[2] counter p->next second.mid", &place, others);
	/* at the static probe: n is in x8, p in x3, the stack is 16 bytes down */
	registers[8] = 4;
	registers[3] = NODE;
	registers[0] = 7777;
	registers[31] = registers[29] = STACK - 16;
	place.offset = work.offset + 0x38;
	expect("uprobe:/x:work+0x38 n h sum p->number", &place, later);
}

static int remember_usdt(void *arg, const struct usdt *u)
{
	*(struct usdt *)arg = *u;
	return 0;
}

static void operands_of_static_probes(void **state)
{
	struct fetch_place place = {.machine = EM_AARCH64};
	static const uint64_t want[] = {(uint64_t)-9, NODE, 7777, 0x401ff0};
	struct error e = {0};
	struct usdt u = {0};

	(void)state;
	assert_int_equal(binary_usdts(program, "prov", "at", remember_usdt, &u, &e), 0);
	assert_int_equal(u.offset, function("work").offset + 0x38);
	assert_string_equal(u.args_text, "-4@w8 8@x3 -8@x0 8@[x3, 16]");
	at_entry_of_work();
	registers[8] = 0x12345678fffffff7;
	registers[3] = NODE;
	registers[0] = 7777;
	place.usdt = &u;
	expect("usdt:/x:prov:at arg0 arg1 arg2 arg3", &place, want);
}

/* It is in a register, and on no stack, before the function's first instruction. */
static void the_caller_of_a_stack(void **state)
{
	const struct fetch_place place = {
		.machine = EM_AARCH64, .function = "work", .at_entry = true};
	struct probe_spec p = {0};
	struct fetch_texts texts = {0};
	struct error e = {0};
	struct fetch f = {0};
	struct fetch_register lr;
	const struct ax_probe_op *last;

	(void)state;
	assert_int_equal(probe_parse("uprobe:/x:work ustack", &p, &e), 0);
	if (fetch_compile(&p, TRACE_WATCH, &place, &texts, &f, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(fetch_register_find(EM_AARCH64, "lr", &lr), 0);
	assert_true(f.values[0].has_caller);
	assert_int_equal(f.n_hidden, 1);
	last = &f.ops[f.n_ops - 1];
	assert_int_equal(last->code, AX_CODE_CTX);
	assert_int_equal(last->value, lr.offset);
	assert_int_equal(last->to, 1);
	fetch_free(&f);
	fetch_texts_free(&texts);
	probe_spec_free(&p);
}

/* --- callers --- */

#define SIGNED 0x2b00000000000000ull /* what paciasp puts above an address */

/* Behind the call of work() in _start. */
#define CALLER 0x400300

static void callers_of_instructions(void **state)
{
	static const struct {
		uint64_t pc;
		uint64_t up; /* from the stack pointer to that of the caller */
		bool saved;  /* the return address is on the stack, not in x30 */
	} list[] = {
		{0x4001f0, 0, false},			    /* leaf */
		{0x4001fc, 0, false},			    /* its ret */
		{0x400200, 0, false},			    /* work, unsigned */
		{0x400204, 0, false},			    /* signed */
		{0x400208, 16, true},			    /* behind stp */
		{0x400238, 16, true}, {0x40025c, 0, false}, /* behind ldp */
		{0x400264, 0, false},			    /* ret */
		{0x400268, 16, true},
	};
	uint64_t words[8] = {0x7777, CALLER | SIGNED};
	const struct unwind_stack s = {
		.from = STACK, .bytes = (const uint8_t *)words, .len = sizeof(words)};
	struct error e = {0};
	struct image im;

	(void)state;
	assert_int_equal(image_open(&im, open(PROGRAM, O_RDONLY | O_CLOEXEC), PROGRAM, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		struct unwind_regs r = {.pc = list[i].pc};
		struct unwind_row row;

		for (size_t k = 0; k < UNWIND_REGS; k++)
			r.v[k] = 100 + k;
		r.v[29] = 0x8888;
		r.v[30] = list[i].saved ? 0x400224 : CALLER | SIGNED;
		r.v[31] = STACK;
		assert_int_equal(unwind_find(&im, list[i].pc, &row), 0);
		assert_int_equal(row.return_register, 30);
		assert_int_equal(unwind_step(&im, &row, &s, &r), UNWIND_CALLER);
		if (r.pc != CALLER || r.v[31] != STACK + list[i].up ||
		    r.v[29] != (list[i].saved ? 0x7777 : 0x8888) || r.v[19] != 119)
			fail_msg("at 0x%llx: pc 0x%llx sp 0x%llx fp 0x%llx",
				 (unsigned long long)list[i].pc, (unsigned long long)r.pc,
				 (unsigned long long)r.v[31], (unsigned long long)r.v[29]);
	}
	image_close(&im);
}

static void callers_by_the_frame_pointer(void **state)
{
	uint64_t words[8] = {1, 2, STACK + 48, CALLER | SIGNED, 5, 6, 0, 0};
	const struct unwind_stack s = {
		.from = STACK, .bytes = (const uint8_t *)words, .len = sizeof(words)};
	struct unwind_regs r = {.pc = 0x400238};

	(void)state;
	r.v[29] = STACK + 16;
	r.v[31] = STACK;
	assert_int_equal(unwind_by_frame_pointer(EM_AARCH64, &s, &r), UNWIND_CALLER);
	assert_true(r.pc == CALLER && r.v[30] == CALLER);
	assert_true(r.v[29] == STACK + 48 && r.v[31] == STACK + 32);
	/* the thread's first function */
	assert_int_equal(unwind_by_frame_pointer(EM_AARCH64, &s, &r), UNWIND_END);
	r.v[29] = STACK; /* below the stack pointer */
	assert_int_equal(unwind_by_frame_pointer(EM_AARCH64, &s, &r), UNWIND_LOST);
	r.v[29] = STACK + 72;
	assert_int_equal(unwind_by_frame_pointer(EM_AARCH64, &s, &r), UNWIND_CUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_of_instructions),
		cmocka_unit_test(nothing_stops_an_exclusive_store),
		cmocka_unit_test(checks_of_go_stacks),
		cmocka_unit_test(places_in_a_program),
		cmocka_unit_test(returns_of_a_function),
		cmocka_unit_test(values_of_registers),
		cmocka_unit_test(values_of_variables),
		cmocka_unit_test(operands_of_static_probes),
		cmocka_unit_test(the_caller_of_a_stack),
		cmocka_unit_test(callers_of_instructions),
		cmocka_unit_test(callers_by_the_frame_pointer),
	};

	return cmocka_run_group_tests_name("probe_arm64", tests, open_program, close_program);
}
