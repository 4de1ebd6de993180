// SPDX-License-Identifier: GPL-2.0-or-later
/* Callers by .eh_frame: of this very program, out of a signal handler too, and of tables that are
 * not as they should be. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>
#include <cmocka.h>

#include "probes/elf/image.h"
#include "probes/process/process.h"
#include "probes/unwind/unwind.h"
#include "user_stack.h"

#define COPY 65536

/* --- this program --- */

static union {
	struct ax_user_stack stack;
	uint8_t room[sizeof(struct ax_user_stack) + COPY];
} taken;

#if defined(__x86_64__)
static void registers_of(const ucontext_t *c, struct ax_user_stack *r)
{
	static const int numbers[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				      REG_RBP, REG_RSP, REG_R8,	 REG_R9,  REG_R10, REG_R11,
				      REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		r->regs[i] = (uint64_t)c->uc_mcontext.gregs[numbers[i]];
	r->pc = r->regs[16];
}
#else
static void registers_of(const ucontext_t *c, struct ax_user_stack *r)
{
	memcpy(r->regs, c->uc_mcontext.regs, 31 * sizeof(uint64_t));
	r->regs[31] = c->uc_mcontext.sp;
	r->pc = r->regs[32] = c->uc_mcontext.pc;
}
#endif

/* What a sanitizer calls out of bounds is what this is about. */
__attribute__((no_sanitize("address", "undefined"))) static void copy_stack(uint64_t sp, size_t len)
{
	const volatile uint8_t *from = (const volatile uint8_t *)(uintptr_t)sp;

	for (size_t i = 0; i < len; i++)
		taken.stack.bytes[i] = from[i];
	taken.stack.len = (uint32_t)len;
}

/* NOLINTBEGIN(bugprone-signal-handler): the signal is raised where the program stands still */
/* Where this thread's stack ends. */
static uint64_t stack_end(void)
{
	autofile FILE *f = fopen("/proc/self/maps", "re");
	unsigned long long from, to;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "[stack]") && sscanf(line, "%llx-%llx", &from, &to) == 2)
			return to;
	fail_msg("there is no stack");
	return 0;
}

__attribute__((noinline)) static void take(void)
{
	uint64_t sp, len;
	ucontext_t c;

	assert_int_equal(getcontext(&c), 0);
	registers_of(&c, &taken.stack);
	sp = taken.stack.regs[unwind_stack_pointer(UNWIND_MACHINE)];
	len = stack_end() - sp;
	copy_stack(sp, len < COPY ? len : COPY);
}
/* NOLINTEND(bugprone-signal-handler) */

static volatile int sink;

__attribute__((noinline)) static void innermost(void)
{
	take();
	sink++;
}
__attribute__((noinline)) static void middle(int n)
{
	volatile char room[100];

	room[n] = 1;
	innermost();
	sink += room[n];
}
__attribute__((noinline)) static void outermost(int n)
{
	middle(n + 1);
	sink++;
}
static void on_signal(int sig)
{
	outermost(sig % 10);
}
__attribute__((noinline)) static void interrupted(void)
{
	raise(SIGUSR1);
	sink++;
}

/* The names of the functions, with blanks around. */
static void call_stack(char *text, size_t size, bool *cut)
{
	struct processes *p CLEANUP(processes_freep) = NULL;
	uint64_t addresses[64];
	size_t at = 0;
	int n;

	assert_int_equal(processes_new(&p), 0);
	n = processes_callers(p, getpid(), &taken.stack, addresses, ARRAY_SIZE(addresses), cut);
	assert_true(n > 0);
	text[0] = '\0';
	for (int i = 0; i < n; i++) {
		struct place_name name;
		bool found = processes_symbolise(p, getpid(), addresses[i], &name) == 0;

		at += (size_t)snprintf(text + at, size - at, " %s ",
				       found && name.function ? name.function : "?");
		assert_true(at < size);
	}
}

static void assert_in_order(const char *text, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *found = strstr(text, names[i]);

		if (!found) {
			fail_msg("'%s' is missing or not in its place: %s", names[i], text);
			return;
		}
		text = found + strlen(names[i]);
	}
}

static void test_callers(void **state)
{
	static const char *const names[] = {" innermost ", " middle ", " outermost ",
					    " test_callers ", " main "};
	char text[8192];
	bool cut;

	(void)state;
	outermost(3);
	call_stack(text, sizeof(text), &cut);
	assert_in_order(text, names, ARRAY_SIZE(names));
	assert_false(cut);
}

static void test_signal(void **state)
{
	static const char *const names[] = {" innermost ",   " outermost ",   " on_signal ",
					    " interrupted ", " test_signal ", " main "};
	char text[8192];
	bool cut;

	(void)state;
	signal(SIGUSR1, on_signal);
	interrupted();
	call_stack(text, sizeof(text), &cut);
	assert_in_order(text, names, ARRAY_SIZE(names));
	assert_false(cut);
}

/* Of a copy that is too short the beginning is right, and it is said to be cut. */
static void test_cut(void **state)
{
	char whole[8192], text[8192];
	uint32_t all;
	bool cut;

	(void)state;
	outermost(3);
	all = taken.stack.len;
	call_stack(whole, sizeof(whole), &cut);
	for (taken.stack.len = 0; taken.stack.len < all; taken.stack.len += 200) {
		call_stack(text, sizeof(text), &cut);
		assert_true(starts_with(whole, text));
		assert_true(cut || streq(whole, text));
	}
	assert_string_equal(whole, text);
}

/* Whatever is on a stack, and in registers: there is an end. */
static void test_nonsense(void **state)
{
	char text[8192];
	bool cut;

	(void)state;
	outermost(3);
	srandom(1);
	for (int round = 0; round < 300; round++) {
		for (size_t i = 0; i < 64; i++)
			taken.stack.bytes[(size_t)random() % taken.stack.len] = (uint8_t)random();
		if (round % 3 == 0)
			taken.stack.regs[(size_t)random() % 17] = (uint64_t)random() << 20;
		call_stack(text, sizeof(text), &cut);
	}
}

/* --- tables --- */

#define CODE	  0x1000
#define HEADER	  0x2000
#define FRAMES	  0x2100
#define FILE_SIZE 0x3000

struct file {
	uint8_t *bytes;
	size_t at; /* the end of what is in .eh_frame */
};

static void put(struct file *f, const void *bytes, size_t len)
{
	memcpy(f->bytes + f->at, bytes, len);
	f->at += len;
}

static void put_u32(struct file *f, uint32_t v)
{
	put(f, &v, sizeof(v));
}

/* One function at CODE of 256 bytes, with this program. */
static void make_file(struct file *f, const uint8_t *common, size_t common_len,
		      const uint8_t *program, size_t len)
{
	static const uint8_t cie[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b};
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
			.e_type = ET_DYN,
			.e_machine = UNWIND_MACHINE,
			.e_phoff = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 2};
	Elf64_Phdr p[2] = {{.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_filesz = FILE_SIZE,
			    .p_memsz = FILE_SIZE},
			   {.p_type = PT_GNU_EH_FRAME,
			    .p_offset = HEADER,
			    .p_vaddr = HEADER,
			    .p_filesz = 20,
			    .p_memsz = 20}};
	size_t start = FRAMES, padded = (len + 3) & ~(size_t)3;

	f->bytes = calloc(1, FILE_SIZE);
	assert_non_null(f->bytes);
	memcpy(f->bytes, &h, sizeof(h));
	memcpy(f->bytes + sizeof(h), p, sizeof(p));
	f->at = FRAMES;
	put_u32(f, (uint32_t)(4 + sizeof(cie) + common_len));
	put_u32(f, 0);
	put(f, cie, sizeof(cie));
	put(f, common, common_len);
	start = f->at;
	put_u32(f, (uint32_t)(13 + padded));
	put_u32(f, (uint32_t)(f->at - FRAMES));
	put_u32(f, (uint32_t)(CODE - f->at));
	put_u32(f, 256);
	put(f, "", 1);
	put(f, program, len);
	f->at = HEADER;
	put(f, "\x01\x1b\x03\x3b", 4);
	put_u32(f, FRAMES - (HEADER + 4));
	put_u32(f, 1);
	put_u32(f, (uint32_t)(CODE - HEADER));
	put_u32(f, (uint32_t)(start - HEADER));
}

static const uint8_t plain[] = {0x0c, 7, 8, 0x90, 1}; /* CFA: sp + 8, the return address below */

static int find(const uint8_t *common, size_t common_len, const uint8_t *program, size_t len,
		uint64_t address, struct unwind_row *row)
{
	struct image im;
	struct error e = {0};
	struct file f;
	int r;

	make_file(&f, common, common_len, program, len);
	assert_int_equal(image_open_memory(&im, f.bytes, FILE_SIZE, "test", &e), 0);
	r = unwind_find(&im, address, row);
	image_close(&im);
	return r;
}

/* push %rbx; sub; ...; as compilers write it */
static void test_rows(void **state)
{
	static const uint8_t program[] = {
		0x41, 0x0e, 16,	  0x83, 2,  /* 1: CFA: sp + 16, rbx at CFA - 16 */
		0x02, 0x10, 0x0a, 0x0e, 64, /* 17: sp + 64 */
		0x41, 0x0b, 0x0d, 6,	    /* 18: as before, by the frame pointer */
	};
	struct unwind_row row;

	(void)state;
	assert_int_equal(find(plain, sizeof(plain), program, sizeof(program), CODE, &row), 0);
	assert_int_equal(row.cfa_register, 7);
	assert_int_equal(row.cfa_value, 8);
	assert_int_equal(row.return_register, 16);
	assert_int_equal(row.rules[16], UNWIND_AT);
	assert_int_equal(row.values[16], -8);
	assert_int_equal(row.rules[3], UNWIND_SAME);
	assert_int_equal(find(plain, sizeof(plain), program, sizeof(program), CODE + 1, &row), 0);
	assert_int_equal(row.cfa_value, 16);
	assert_int_equal(row.rules[3], UNWIND_AT);
	assert_int_equal(row.values[3], -16);
	assert_int_equal(find(plain, sizeof(plain), program, sizeof(program), CODE + 17, &row), 0);
	assert_int_equal(row.cfa_value, 64);
	assert_int_equal(find(plain, sizeof(plain), program, sizeof(program), CODE + 255, &row), 0);
	assert_int_equal(row.cfa_value, 16);
	assert_int_equal(row.cfa_register, 6);
	assert_int_equal(find(plain, sizeof(plain), program, sizeof(program), CODE + 256, &row),
			 -ENOENT);
	assert_int_equal(find(plain, sizeof(plain), program, sizeof(program), CODE - 1, &row),
			 -ENOENT);
}

static void test_bad_programs(void **state)
{
	static const struct {
		const char *what;
		uint8_t program[12];
		size_t len;
	} bad[] = {
		{"an operation that is none", {0x3f}, 1},
		{"a number that goes on behind the end", {0, 0, 0x0e, 0xff}, 4},
		{"a number that never ends",
		 {0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		 12},
		{"a register for the CFA that no machine has", {0x0d, 0xff, 0xff, 0xff, 0x7f}, 5},
		{"an expression behind the end", {0x0f, 100}, 2},
		{"what was never remembered", {0x0b}, 1},
		{"too much that is remembered",
		 {0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a},
		 9},
		{"an offset of more than 32 bits", {0x0e, 0xff, 0xff, 0xff, 0xff, 0x7f}, 6},
	};
	static const uint8_t many[] = {0x07, 0xff, 0xff, 0xff, 0x7f, 0x0e, 24};
	struct unwind_row row;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (find(plain, sizeof(plain), bad[i].program, bad[i].len, CODE, &row) != -ENOEXEC)
			fail_msg("%s is taken", bad[i].what);
	/* of vectors, say: it is passed over, and costs nothing */
	assert_int_equal(find(plain, sizeof(plain), many, sizeof(many), CODE, &row), 0);
	assert_int_equal(row.cfa_value, 24);
}

/* As a procedure linkage table has it: sp + 8, and 8 more behind the first instruction. */
static void test_expression(void **state)
{
	static const uint8_t program[] = {0x0f, 11,   0x77, 8,	  0x80, 0,   0x3f,
					  0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
	struct unwind_regs regs = {0};
	uint64_t words[4] = {0x1111, 0x2222, 0x3333, 0x4444};
	struct unwind_stack s = {.from = 0x7000, .bytes = (uint8_t *)words, .len = sizeof(words)};
	struct unwind_row row;
	struct error e = {0};
	struct image im;
	struct file f;

	(void)state;
	make_file(&f, plain, sizeof(plain), program, sizeof(program));
	assert_int_equal(image_open_memory(&im, f.bytes, FILE_SIZE, "test", &e), 0);
	assert_int_equal(unwind_find(&im, CODE, &row), 0);
	assert_true(row.cfa_computed);
	for (uint64_t pc = CODE; pc < CODE + 32; pc++) {
		regs.v[7] = 0x7000;
		regs.pc = regs.v[16] = pc;
		assert_int_equal(unwind_step(&im, &row, &s, &regs), UNWIND_CALLER);
		assert_int_equal(regs.v[7], pc % 16 >= 11 ? 0x7010 : 0x7008);
		assert_int_equal(regs.pc, pc % 16 >= 11 ? 0x2222 : 0x1111);
	}
	image_close(&im);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers),	   cmocka_unit_test(test_signal),
		cmocka_unit_test(test_cut),	   cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_rows),	   cmocka_unit_test(test_bad_programs),
		cmocka_unit_test(test_expression),
	};

	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}
