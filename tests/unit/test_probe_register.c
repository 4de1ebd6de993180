// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of registers lead to where the kernel's own header says that they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <asm/ptrace.h>
#include <elf.h>

#include "probes/fetch/fetch.h"

struct known {
	const char *name;
	size_t offset;
	unsigned size, shift;
};

static void check(uint16_t machine, const struct known *k)
{
	struct fetch_register r = {0};

	if (fetch_register_find(machine, k->name, &r))
		fail_msg("%s is not known", k->name);
	if (r.offset != k->offset || r.size != k->size || r.shift != k->shift)
		fail_msg("%s: offset %u, size %u, shift %u", k->name, (unsigned)r.offset,
			 (unsigned)r.size, (unsigned)r.shift);
}

#ifdef __x86_64__
#define AT(reg) offsetof(struct pt_regs, reg)

static void registers_of_x86(void **state)
{
	static const struct known list[] = {
		{"rax", AT(rax), 8, 0},
		{"rbx", AT(rbx), 8, 0},
		{"rcx", AT(rcx), 8, 0},
		{"rdx", AT(rdx), 8, 0},
		{"rsi", AT(rsi), 8, 0},
		{"rdi", AT(rdi), 8, 0},
		{"rbp", AT(rbp), 8, 0},
		{"rsp", AT(rsp), 8, 0},
		{"rip", AT(rip), 8, 0},
		{"r8", AT(r8), 8, 0},
		{"r9", AT(r9), 8, 0},
		{"r10", AT(r10), 8, 0},
		{"r11", AT(r11), 8, 0},
		{"r12", AT(r12), 8, 0},
		{"r13", AT(r13), 8, 0},
		{"r14", AT(r14), 8, 0},
		{"r15", AT(r15), 8, 0},
		{"eflags", AT(eflags), 8, 0},
		{"flags", AT(eflags), 8, 0},
		/* as ftrace calls them */
		{"ax", AT(rax), 8, 0},
		{"di", AT(rdi), 8, 0},
		{"sp", AT(rsp), 8, 0},
		{"ip", AT(rip), 8, 0},
		{"bp", AT(rbp), 8, 0},
		/* parts */
		{"eax", AT(rax), 4, 0},
		{"esi", AT(rsi), 4, 0},
		{"al", AT(rax), 1, 0},
		{"dh", AT(rdx), 1, 8},
		{"sil", AT(rsi), 1, 0},
		{"bpl", AT(rbp), 1, 0},
		{"r8d", AT(r8), 4, 0},
		{"r15w", AT(r15), 2, 0},
		{"r10b", AT(r10), 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		check(EM_X86_64, &list[i]);
}
#endif

/* struct user_pt_regs: 31 registers, sp, pc, pstate. */
static void registers_of_arm64(void **state)
{
	static const struct known list[] = {
		{"x0", 0, 8, 0},   {"x7", 56, 8, 0},  {"x30", 240, 8, 0},
		{"w3", 24, 4, 0},  {"lr", 240, 8, 0}, {"fp", 232, 8, 0},
		{"sp", 248, 8, 0}, {"pc", 256, 8, 0}, {"pstate", 264, 8, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		check(EM_AARCH64, &list[i]);
}

static void what_is_no_register(void **state)
{
	static const char *const x86[] = {"",	  "r",	 "r7",	  "r16",   "r8x",   "r8dd", "xax",
					  "eip2", "ah2", "rsil",  "spx",   "x0",    "r-8",  "r 8",
					  "sih",  "xmm", "xmm16", "xmm00", "xmm1x", "ymm0"};
	static const char *const arm[] = {"", "x", "x31", "rax", "x1a", "w31", "x-1", "y0", "v32"};
	struct fetch_register r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(x86); i++)
		if (fetch_register_find(EM_X86_64, x86[i], &r) != -ENOENT)
			fail_msg("'%s' was taken", x86[i]);
	for (size_t i = 0; i < ARRAY_SIZE(arm); i++)
		if (fetch_register_find(EM_AARCH64, arm[i], &r) != -ENOENT)
			fail_msg("'%s' was taken", arm[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(registers_of_x86),
#endif
		cmocka_unit_test(registers_of_arm64),
		cmocka_unit_test(what_is_no_register),
	};

	return cmocka_run_group_tests_name("probe_register", tests, NULL, NULL);
}
