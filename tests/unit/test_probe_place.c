// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where probes go: what the kernel does with single instructions (as measured on 6.18 and as 6.1
 * and 6.12 do), functions made to lead astray, and compiled programs that are stopped where a probe
 * would be, to see that the arguments and the return address are still what they were.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <limits.h>
#include <signal.h>

#include "probes/place/priv.h"
#include "tests/lib/probe_programs.h"

#define E PLACE_EMULATED
#define N PLACE_NOP5
#define S PLACE_STEPPED
#define X PLACE_REFUSED

/* Found out with a probe on each: refused by the kernel, or from what a hit takes. */
static const struct {
	const char *bytes;
	enum place_cost on_6_18, on_6_12;
	const char *text;
} instructions[] = {
	{"55", E, E, "push %rbp"},
	{"41 54", E, E, "push %r12"},
	{"48 55", S, S, "push %rbp"},
	{"66 55", S, S, "push %bp"},
	{"6a 00", S, S, "push $0x0"},
	{"90", E, E, "nop"},
	{"66 90", E, E, "nop"},
	{"48 90", E, E, "nop"},
	{"f3 90", E, E, "pause"},
	{"49 90", X, X, "xchg %r8,%rax"},
	{"0f 1f 00", E, S, "nopl (%rax)"},
	{"0f 1f 40 00", E, S, "nopl 0x0(%rax)"},
	{"0f 1f 40 08", S, S, "nopl 0x8(%rax)"},
	{"0f 1f 44 00 00", N, S, "nopl 0x0(%rax,%rax,1)"},
	{"0f 1f 44 00 08", N, S, "nopl 0x8(%rax,%rax,1)"},
	{"66 66 66 66 90", N, E, "nop"},
	{"66 0f 1f 44 00 00", E, S, "nopw 0x0(%rax,%rax,1)"},
	{"0f 1f 80 00 00 00 00", E, S, "nopl 0x0(%rax)"},
	{"0f 1f 84 00 00 00 00 00", E, S, "nopl 0x0(%rax,%rax,1)"},
	{"66 0f 1f 84 00 00 00 00 00", S, S, "nopw 0x0(%rax,%rax,1)"},
	{"66 2e 0f 1f 84 00 00 00 00 00", X, X, "nopw 0x0(%rax,%rax,1)"},
	{"f3 0f 1e fa", S, S, "endbr64"},
	{"48 89 fb", S, S, "mov %rdi,%rbx"},
	{"48 83 ec 08", S, S, "sub $0x8,%rsp"},
	{"48 8b 05 10 00 00 00", S, S, "mov 0x10(%rip),%rax # 0x17"},
	{"64 48 8b 04 25 28 00 00 00", S, S, "mov %fs:0x28,%rax"},
	{"e8 fb ff ff ff", E, E, "call 0x0"},
	{"f2 e8 fa ff ff ff", E, E, "call 0x0"},
	{"66 48 e8 00 00 00 00", X, X, "call 0x7"},
	{"eb fe", E, E, "jmp 0x0"},
	{"e9 00 00 00 00", E, E, "jmp 0x5"},
	{"74 10", E, E, "je 0x12"},
	{"66 74 10", X, X, "je 0x13"},
	{"0f 84 00 01 00 00", E, E, "je 0x106"},
	{"e3 00", S, S, NULL},
	{"c3", S, S, "ret"},
	{"f3 c3", S, S, "ret"},
	{"ff e0", S, S, "jmp *%rax"},
	{"3e ff e0", X, X, "jmp *%rax"},
	{"ff 25 10 00 00 00", S, S, "jmp *0x10(%rip) # 0x16"},
	{"0f 05", S, S, "syscall"},
	{"0f 0b", S, S, "ud2"},
	{"cc", X, X, "int3"},
	{"f4", X, X, "hlt"},
	{"cd 80", X, X, NULL},
	{"8e d0", X, X, NULL},
	{"f0 83 04 24 00", X, X, NULL},
	{"2e 89 c0", X, X, "mov %eax,%eax"},
	{"f2 0f 58 c0", S, S, "addsd %xmm0,%xmm0"},
	{"f2 44 0f 59 4f 08", S, S, "mulsd 0x8(%rdi),%xmm9"},
	{"f3 0f 11 44 24 0c", S, S, "movss %xmm0,0xc(%rsp)"},
	{"0f 28 d8", S, S, "movaps %xmm0,%xmm3"},
	{"66 41 0f 28 d0", S, S, "movapd %xmm8,%xmm2"},
	{"f3 0f 5a c9", S, S, "cvtss2sd %xmm1,%xmm1"},
	{"f2 48 0f 2c c3", S, S, "cvttsd2si %xmm3,%rax"},
	{"f2 0f 2a c7", S, S, "cvtsi2sd %edi,%xmm0"},
	{"f2 48 0f 2a 47 10", S, S, "cvtsi2sdq 0x10(%rdi),%xmm0"},
	{"66 48 0f 6e c8", S, S, "movq %rax,%xmm1"},
	{"66 0f 7e c0", S, S, "movd %xmm0,%eax"},
	{"f3 0f 7e 06", S, S, "movq (%rsi),%xmm0"},
	{"66 0f d6 00", S, S, "movq %xmm0,(%rax)"},
	{"66 0f 2f c1", S, S, "comisd %xmm1,%xmm0"},
	{"66 0f ef c0", S, S, "pxor %xmm0,%xmm0"},
	{"66 0f 70 c8 55", S, S, "pshufd $0x55,%xmm0,%xmm1"},
	{"f3 0f 6f 05 10 00 00 00", S, S, "movdqu 0x10(%rip),%xmm0 # 0x18"},
	{"48 69 d2 56 55 55 55", S, S, "imul $0x55555556,%rdx,%rdx"},
	{"6b c0 0a", S, S, "imul $0xa,%eax,%eax"},
	{"48 0f af 06", S, S, "imul (%rsi),%rax"},
	{"48 c1 ea 20", S, S, "shr $0x20,%rdx"},
	{"c1 65 fc 03", S, S, "shll $0x3,-0x4(%rbp)"},
	{"d1 f8", S, S, "sar %eax"},
	{"49 d3 e0", S, S, "shl %cl,%r8"},
	{"c0 e8 07", S, S, "shr $0x7,%al"},
	{"a8 03", S, S, "test $0x3,%al"},
	{"48 f7 d8", S, S, "neg %rax"},
	{"f6 16", S, S, "notb (%rsi)"},
	{"48 f7 7d f8", S, S, "idivq -0x8(%rbp)"},
	{"48 98", S, S, "cltq"},
	{"99", S, S, "cltd"},
	{"0f 94 c0", S, S, "sete %al"},
	{"48 0f 4e c1", S, S, "cmovle %rcx,%rax"},
	{"c5 f9 ef c0", X, X, NULL},	   /* vpxor */
	{"c5 f9 74 c1", X, X, NULL},	   /* vpcmpeqb: taken, and left out */
	{"c5 f9 eb c1", X, X, NULL},	   /* vpor, too */
	{"c5 f9 e8 c1", X, X, NULL},	   /* vpsubsb, too */
	{"c5 f8 90 c1", X, X, NULL},	   /* kmovw, too */
	{"c5 fa 6f c1", X, X, NULL},	   /* vmovdqu */
	{"c5 f8 50 c1", S, S, NULL},	   /* vmovmskps */
	{"62 f1 7d 08 ef c0", X, X, NULL}, /* vpxord */
	{"62 f1 fe 08 6f c1", X, X, NULL}, /* vmovdqu64 */
};

static size_t bytes_of(const char *text, uint8_t *to)
{
	size_t n = 0;
	char *end;

	for (; *text; text = end, n++) {
		to[n] = (uint8_t)strtoul(text, &end, 16);
		while (*end == ' ')
			end++;
	}
	return n;
}

static void costs_of_instructions(void **state)
{
	const struct place_kernel now = {.long_nops = true, .nop5 = true}, before = {0};
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(instructions); i++) {
		const char *what = instructions[i].bytes, *why;
		struct x86_insn insn;
		uint8_t bytes[X86_LEN_MAX] = {0};
		size_t n = bytes_of(what, bytes);

		if (!x86_decode(bytes, n, &insn) || insn.len != n)
			fail_msg("%s is not known", what);
		if (x86_cost(&insn, bytes, 0, now, &why) != instructions[i].on_6_18 || !*why)
			fail_msg("%s on 6.18: %s", what, why);
		if (x86_cost(&insn, bytes, 0, before, &why) != instructions[i].on_6_12 || !*why)
			fail_msg("%s on 6.12: %s", what, why);
		x86_text(&insn, bytes, 0, text, sizeof(text));
		if (instructions[i].text)
			assert_string_equal(text, instructions[i].text);
		else
			assert_true(starts_with(text, ".byte ") || strchr(text, ' ') || *text);
		/* what is cut off is nothing */
		for (size_t k = 0; k < n; k++)
			assert_false(x86_decode(bytes, k, &insn) && insn.len > k);
	}
}

static void a_nop5_across_pages(void **state)
{
	const struct place_kernel k = {.long_nops = true, .nop5 = true};
	const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0, 0};
	struct x86_insn i;
	const char *why;

	(void)state;
	assert_true(x86_decode(nop5, 5, &i));
	assert_int_equal(x86_cost(&i, nop5, 4091, k, &why), PLACE_NOP5);
	assert_int_equal(x86_cost(&i, nop5, 4092, k, &why), PLACE_EMULATED);
}

/* objdump's lines: "  1234:\t55 48 \tpush ...". */
static void check_line(char *line, unsigned long *n)
{
	char *bytes = strchr(line, '\t'), *text = bytes ? strchr(bytes + 1, '\t') : NULL;
	uint8_t b[X86_LEN_MAX + 1];
	struct x86_insn i;
	size_t len;

	if (!text || strstr(text, "(bad)"))
		return;
	*text++ = 0;
	if (strlen(bytes + 1) > 3 * X86_LEN_MAX + 8)
		return;
	len = bytes_of(bytes + 1 + strspn(bytes + 1, " "), b);
	if (!x86_decode(b, len, &i) || i.len != len)
		fail_msg("%s\t%s", line, text);
	if ((i.flow == FLOW_RETURN) != (starts_with(text, "ret") || starts_with(text, "repz ret") ||
					starts_with(text, "bnd ret")))
		fail_msg("%s\t%s", line, text);
	if (starts_with(text, "call") && i.flow != FLOW_CALL)
		fail_msg("%s\t%s", line, text);
	if (*text == 'j' && i.flow != FLOW_JUMP && i.flow != FLOW_BRANCH &&
	    i.flow != FLOW_JUMP_ANY && i.flow != FLOW_JUMP_POINTER)
		fail_msg("%s\t%s", line, text);
	(*n)++;
}

/* glibc has what compilers emit, and by hand what few use: AVX-512, TSX, string instructions. */
static void lengths_of_all_instructions_of_libc(void **state)
{
	struct binary *b = NULL;
	struct error e = {0};
	char cmd[PATH_MAX + 64], line[1024];
	unsigned long n = 0;
	FILE *f;

	(void)state;
	if (binary_open("c", 0, &b, &e))
		fail_msg("%s", e.text);
	snprintf(cmd, sizeof(cmd), "objdump -d -w --insn-width=15 -j .text %s", binary_path(b));
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		check_line(line, &n);
	}
	assert_int_equal(pclose(f), 0);
	assert_true(n > 100000);
	binary_close(b);
}

/* Functions in assembly, a line each; what is not to have a size has a '?' before its name. */
static const struct {
	const char *name, *code;
} cases[] = {
	{"pushes", "push %rbx; pop %rbx; ret"},
	/* past endbr64, and past what takes arguments somewhere */
	{"endbr", "endbr64; push %rbx; pop %rbx; ret"},
	{"moves", "endbr64; mov %rdi,%rax; test %esi,%esi; lea 8(%rsp),%r10;"
		  "cmpl $1,datum(%rip); je 1f; ret; 1: ud2"},
	{"?no_size", "endbr64; push %rbx; pop %rbx; ret"},
	/* not past what changes an argument, the stack or frame pointer, or may fault */
	{"argument", "endbr64; mov %rsi,%rdi; push %rbx; pop %rbx; ret"},
	{"half", "movb $1,%dh; push %rbx; pop %rbx; ret"},
	{"stack", "sub $8,%rsp; push %rbx; pop %rbx; add $8,%rsp; ret"},
	{"frame", "mov %rsp,%rbp; push %rbx; ret"},
	{"reads", "mov (%rdi),%rax; push %rbx; pop %rbx; ret"},
	{"far", "mov 0x40000000(%rip),%rax; push %rbx; pop %rbx; ret"},
	{"writes", "mov %rax,datum(%rip); push %rbx; pop %rbx; ret"},
	{"locked_nop", "mov %edi,%eax; .byte 0xf0,0x0f,0x1f,0; push %rbx; ret"},
	/* not to where a jump leads */
	{"loop_head", "endbr64; 1: nop; dec %edi; jnz 1b; ret"},
	{"loop_behind", "endbr64; mov %edi,%eax; 1: nop; dec %edi; jnz 1b; ret"},
	{"loop_entry", "1: mov %edi,%eax; nop; dec %edi; jnz 1b; ret"},
	/* the jump back is in a part that is elsewhere */
	{"cold_jump", "endbr64; warm: nop; test %edi,%edi; jz away; ret"},
	{"cold_jump.cold", "away: dec %edi; jmp warm"},
	/* as memcpy and mempcpy of glibc */
	{"shared", "mov %rdi,%rax; shared_body: push %rbx; pop %rbx; ret"},
	{"sharer", "mov %rdi,%rax; add %rdx,%rax; jmp shared_body"},
	/* a tail call does not come back */
	{"tail_call", "endbr64; nop; jmp pushes"},
	/* jumps whose targets are not known: only what saves a register */
	{"table_push", "mov %edi,%eax; push %rbx; pop %rbx; jmp *%rax"},
	{"table_nop", "mov %edi,%eax; nop; jmp *%rax"},
	{"pointer_jump", "mov %edi,%eax; nop; jmp *datum(%rip)"},
	/* data in the code */
	{"unknown", "mov %edi,%eax; nop; ret; .byte 6,6,6"},
	{"nop5", ".byte 0x0f,0x1f,0x44,0,0; mov %edi,%eax; ret"},
	{"nop5_endbr", "endbr64; .byte 0x0f,0x1f,0x44,0,0; push %rbx; pop %rbx; ret"},
	{"nop5_behind", "mov %edi,%eax; .byte 0x0f,0x1f,0x44,0,0; push %rbx; pop %rbx; ret"},
	{"nop5_loop", "1: .byte 0x0f,0x1f,0x44,0,0; mov %edi,-8(%rsp); dec %edi; jnz 1b; ret"},
	/* the kernel refuses the entry */
	{"refused", ".byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0; mov %edi,%eax; ret"},
	{"no_way", "lock incl (%rdi); ret"},
	{"returns", "test %edi,%edi; jz 1f; ret; 1: rep ret; nop; ret $8; mov $0xc3,%eax; ud2"},
	{"for_ever", "1: jmp 1b"},
	{"main", "xor %eax,%eax; ret"},
};

static struct binary *open_cases(const char *options)
{
	char text[16384] = ".data\n.balign 8\ndatum: .quad 1\n"
			   ".section .note.GNU-stack,\"\",@progbits\n.text\n";

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *name = cases[i].name;
		bool sized = *name != '?';
		size_t n = strlen(text);

		name += !sized;
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      ".globl %s\n.type %s,@function\n.p2align 6\n%s: %s\n", name,
				      name, name, cases[i].code);
		if (sized)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ".size %s,.-%s\n", name,
					      name);
		assert_true(n < sizeof(text));
	}
	build_source("cases.s", text);
	build_run("gcc %s cases.s -o cases", options);
	return open_built("cases");
}

static struct place placed(struct binary *b, const char *name)
{
	struct symbol s = symbol_of(b, name);
	struct place p;
	struct error e = {0};

	if (binary_place(b, &s, s.offset, false, &p, &e))
		fail_msg("%s: %s", name, e.text);
	assert_int_equal(p.offset, s.offset + p.slid);
	assert_true(*p.why);
	return p;
}

static void check_place(struct binary *b, const char *name, unsigned slid, enum place_cost cost,
			const char *why)
{
	struct place p = placed(b, name);

	if (p.slid != slid || p.cost != cost || (why && !strstr(p.why, why)))
		fail_msg("%s: +%u, cost %d: %s (%s)", name, p.slid, p.cost, p.instruction, p.why);
}

static void functions_that_slide(void **state)
{
	struct binary *b = open_cases("");

	(void)state;
	check_place(b, "pushes", 0, E, "emulates this push");
	check_place(b, "endbr", 4, E, "emulates this push");
	check_place(b, "moves", 4 + 3 + 2 + 5 + 7, E, "leaves the arguments alone");
	check_place(b, "tail_call", 4, E, NULL);
	check_place(b, "table_push", 2, E, NULL);
	check_place(b, "pointer_jump", 2, E, NULL);
	check_place(b, "no_size", 4, E, NULL);
	check_place(b, "refused", 10, S, "refused");
	binary_close(b);
}

static void functions_that_do_not(void **state)
{
	static const char *const stay[] = {"argument",	"half",	       "stack",	    "frame",
					   "reads",	"far",	       "writes",    "locked_nop",
					   "loop_head", "loop_behind", "cold_jump", "shared",
					   "table_nop", "unknown"};
	struct binary *b = open_cases("");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stay); i++)
		check_place(b, stay[i], 0, S, NULL);
	check_place(b, "loop_head", 0, S, "a jump leads to");
	check_place(b, "cold_jump", 0, S, "a jump leads to");
	check_place(b, "shared", 0, S, "a jump leads to");
	check_place(b, "table_nop", 0, S, "through registers");
	/* a loop to the entry passes it as often as what is behind */
	check_place(b, "loop_entry", 2, E, NULL);
	check_place(b, "no_way", 0, X, "LOCK");
	binary_close(b);
	/* without the name of the cold part */
	b = open_cases("-nostartfiles -shared -Wl,-Bsymbolic");
	binary_close(b);
	build_run("strip --strip-symbol=cold_jump.cold cases");
	b = open_built("cases");
	check_place(b, "cold_jump", 0, S, "a jump leads to");
	check_place(b, "endbr", 4, E, NULL);
	binary_close(b);
}

static void nop5(void **state)
{
	struct place_kernel k = place_kernel_now();
	struct binary *b = open_cases("");
	struct symbol s;
	struct place p;
	struct error e = {0};

	(void)state;
	check_place(b, "nop5", 0, k.nop5 ? N : k.long_nops ? E : S, NULL);
	check_place(b, "nop5_endbr", k.nop5 || k.long_nops ? 4 : 9, k.nop5 ? N : E, NULL);
	check_place(b, "nop5_behind", k.long_nops && !k.nop5 ? 2 : 7, E, NULL);
	if (k.nop5)
		check_place(b, "nop5_loop", 5, S, NULL);
	s = symbol_of(b, "nop5_behind");
	assert_int_equal(binary_place(b, &s, s.offset + 2, true, &p, &e), 0);
	assert_int_equal(p.cost, k.nop5 ? X : k.long_nops ? E : S);
	if (k.nop5)
		assert_non_null(strstr(p.why, "probe the next instruction"));
	binary_close(b);
}

static void exact_places(void **state)
{
	struct binary *b = open_cases("");
	struct symbol s = symbol_of(b, "endbr");
	struct error e = {0};
	struct place p;

	(void)state;
	assert_int_equal(binary_place(b, &s, s.offset, true, &p, &e), 0);
	assert_true(p.cost == S && p.slid == 0 && p.offset == s.offset);
	assert_string_equal(p.instruction, "endbr64");
	assert_int_equal(binary_place(b, &s, s.offset + 4, true, &p, &e), 0);
	assert_true(p.cost == E && p.slid == 0 && p.offset == s.offset + 4);
	/* inside of endbr64 */
	assert_int_equal(binary_place(b, &s, s.offset + 2, true, &p, &e), 0);
	assert_int_equal(p.cost, X);
	assert_non_null(strstr(p.why, "endbr+0x2 is inside of an instruction"));
	/* an offset alone */
	assert_int_equal(binary_place(b, NULL, s.offset + 4, true, &p, &e), 0);
	assert_int_equal(p.cost, E);
	/* the header of the file, and behind its end */
	assert_int_equal(binary_place(b, NULL, 0, true, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "no code at 0x0"));
	assert_int_equal(binary_place(b, NULL, 1ull << 40, true, &p, &e), -EINVAL);
	binary_close(b);
}

static void all_returns(void **state)
{
	struct binary *b = open_cases("");
	struct symbol s = symbol_of(b, "returns");
	autofree uint64_t *offsets = NULL;
	struct error e = {0};
	size_t n = 0;

	(void)state;
	assert_int_equal(binary_returns(b, &s, &offsets, &n, &e), 0);
	assert_int_equal(n, 3); /* and not the c3 of a constant */
	assert_int_equal(offsets[0], s.offset + 4);
	assert_int_equal(offsets[1], s.offset + 5);
	assert_int_equal(offsets[2], s.offset + 8);
	s = symbol_of(b, "for_ever");
	assert_int_equal(binary_returns(b, &s, &offsets, &n, &e), -ENOENT);
	assert_non_null(strstr(e.text, "for_ever in"));
	s = symbol_of(b, "unknown");
	assert_int_equal(binary_returns(b, &s, &offsets, &n, &e), -EILSEQ);
	binary_close(b);
}

#ifdef __x86_64__
static const char compiled[] =
	"#include <stdio.h>\n#include <stdlib.h>\n"
	"#define F __attribute__((noinline)) long\n"
	"volatile long sink; int table[8]; struct node { struct node *next; long v; };\n"
	"F f_plain(long a, long b, long c, long d, long e, long f) { return a+b*c-d+e*f; }\n"
	"F f_early(long a, long b, long c, long d, long e, long f)\n"
	"{ if (!sink) return a; printf(\"%ld\", b); return c+d+e+f; }\n"
	"F f_loop(long a, long b, long c, long d, long e, long f)\n"
	"{ while (a--) { sink += b; if (sink > 900) { puts(\"\"); continue; } } return c+d+e+f; }\n"
	"F f_switch(long a, long b, long c, long d, long e, long f)\n"
	"{ for (;;) switch (a) { case 1: a = 5; break; case 2: return b; case 3: a = 2; break;\n"
	"  case 4: sink++; a = 3; break; case 5: puts(\"\"); a = 4; break; default: return "
	"c+d+e+f; } }\n"
	"F f_recursive(long a, long b, long c, long d, long e, long f)\n"
	"{ return a > 3 ? sink : b == 2 ? f_recursive(a+1,7,c,d,e,f) + 1 : c+d+e+f; }\n"
	"F f_frame(long a, long b, long c, long d, long e, long f)\n"
	"{ char big[256]; snprintf(big, 256, \"%ld\", a+b+c+d+e+f); return big[a]; }\n"
	"F f_table(long a, long b, long c, long d, long e, long f)\n"
	"{ table[a & 7] += (int)b; return table[c & 7] + d + e + f; }\n"
	"int main(void) { long r = 0;\n"
	" r += f_plain(1,2,3,4,5,6); r += f_early(1,2,3,4,5,6); r += f_loop(1,2,3,4,5,6);\n"
	" r += f_switch(1,2,3,4,5,6); r += f_recursive(1,2,3,4,5,6); r += f_frame(1,2,3,4,5,6);\n"
	" r += f_table(1,2,3,4,5,6); sink = r; return 0; }\n";

struct function_list {
	struct symbol v[16];
	size_t n;
};

static int add_function(void *arg, const struct symbol *s)
{
	struct function_list *l = arg;

	assert_true(l->n < ARRAY_SIZE(l->v));
	l->v[l->n++] = *s;
	return 0;
}

/* As the caller left them, at the place of the probe. */
static unsigned check_arguments(struct binary *b, const struct symbol *s,
				const struct symbol *caller)
{
	struct error e = {0};
	struct place p;
	struct stopped at;
	uint64_t back;

	assert_int_equal(binary_place(b, s, s->offset, false, &p, &e), 0);
	assert_int_not_equal(p.cost, X);
	at = stop_at(b, s->address + p.slid, p.offset);
	back = peek(&at, at.regs.rsp) - at.bias;
	if (at.regs.rdi != 1 || at.regs.rsi != 2 || at.regs.rdx != 3 || at.regs.rcx != 4 ||
	    at.regs.r8 != 5 || at.regs.r9 != 6 || back <= caller->address ||
	    back > caller->address + caller->size)
		fail_msg("%s+%u: %llu %llu %llu %llu %llu %llu, back to 0x%lx", s->name, p.slid,
			 at.regs.rdi, at.regs.rsi, at.regs.rdx, at.regs.rcx, at.regs.r8, at.regs.r9,
			 (unsigned long)back);
	stopped_kill(&at);
	return p.slid;
}

static void arguments_in_compiled_programs(void **state)
{
	static const char *const builds[] = {
		"gcc -O0",
		"gcc -O2",
		"gcc -O2 -fcf-protection",
		"gcc -O0 -fcf-protection -no-pie",
		"gcc -Os -static",
		"gcc -O3 -fcf-protection",
		"clang -O0 -fcf-protection",
		"clang -O2 -fcf-protection",
		"clang -O2",
		"gcc -O2 -fno-omit-frame-pointer -fcf-protection",
	};
	unsigned slid = 0;

	(void)state;
	build_source("args.c", compiled);
	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		struct function_list l = {0};
		struct error e = {0};
		struct symbol caller;
		struct binary *b;

		build_run("%s args.c -o args%zu", builds[i], i);
		b = open_built((char[]){'a', 'r', 'g', 's', (char)('0' + i), 0});
		caller = symbol_of(b, "main");
		assert_int_equal(binary_functions(b, "f_[pelsrft]*", add_function, &l, &e), 0);
		assert_true(l.n >= 7);
		for (size_t k = 0; k < l.n; k++)
			if (!strchr(l.v[k].name, '.')) /* f.isra.0 takes other arguments */
				slid += check_arguments(b, &l.v[k], &caller) > 0;
		binary_close(b);
	}
	assert_true(slid > 10);
}
#endif

/* The Go toolchain is a Go program. */
static void functions_of_go(void **state)
{
	char root[PATH_MAX], path[PATH_MAX + 16];
	struct error e = {0};
	struct binary *b = NULL;
	FILE *f = popen("go env GOROOT", "r");
	autofree uint64_t *offsets = NULL;
	struct symbol s;
	struct place p;
	size_t n = 0;

	(void)state;
	assert_non_null(f);
	assert_non_null(fgets(root, sizeof(root), f));
	assert_int_equal(pclose(f), 0);
	root[strcspn(root, "\n")] = 0;
	snprintf(path, sizeof(path), "%s/bin/go", root);
	if (binary_open(path, 0, &b, &e))
		fail_msg("%s", e.text);
	assert_true(binary_is_go(b));
	s = symbol_of(b, "fmt.Sprintf");
	assert_int_equal(binary_returns(b, &s, &offsets, &n, &e), 0);
	assert_true(n >= 1);
	if (binary_machine(b) == EM_X86_64) {
		p = placed(b, "fmt.Sprintf");
		assert_true(p.slid >= 6);
		assert_non_null(strstr(p.why, "check of Go's stack"));
	}
	binary_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_of_instructions),
		cmocka_unit_test(a_nop5_across_pages),
		cmocka_unit_test(functions_of_go),
#ifdef __x86_64__
		cmocka_unit_test(lengths_of_all_instructions_of_libc),
		cmocka_unit_test(functions_that_slide),
		cmocka_unit_test(functions_that_do_not),
		cmocka_unit_test(nop5),
		cmocka_unit_test(exact_places),
		cmocka_unit_test(all_returns),
		cmocka_unit_test(arguments_in_compiled_programs),
#endif
	};

	return cmocka_run_group_tests_name("probe_place", tests, build_dir_make, build_dir_remove);
}
