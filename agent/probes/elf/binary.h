/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and static probes of ELF files, and where exactly a probe goes. Reads files as hostile
 * input: everything is bounded and checked.
 */
#ifndef AX_PROBES_ELF_BINARY_H
#define AX_PROBES_ELF_BINARY_H

#include "base/util.h"

struct binary; /* an ELF file, with its separate debug file if there is one */

/* `name`: a path; or a program of $PATH, or a library's name as ld.so finds it ("libc.so.6", "c");
 * `pid` (0: none): as that process sees it (/proc/PID/root; a name without '/' is first looked for
 * among the files that it has mapped, "" is its program). */
int binary_open(const char *name, int pid, struct binary **ret, struct error *e);
void binary_close(struct binary *b);
static inline void binary_closep(struct binary **b)
{
	if (*b)
		binary_close(*b);
}
const char *binary_path(const struct binary *b); /* absolute, what the kernel is to open */
bool binary_is_go(const struct binary *b);
uint16_t binary_machine(const struct binary *b); /* EM_X86_64, EM_AARCH64 ... */

struct symbol {
	const char *name;      /* as in the file */
	const char *demangled; /* NULL: it is not mangled */
	uint64_t address;      /* as the file has it */
	uint64_t offset;       /* in the file: where a uprobe goes */
	uint64_t size;	       /* 0: unknown */
	bool ifunc; /* one of the implementations that the dynamic linker chooses from (IFUNC) */
};
/* Functions of .symtab (also of the debug file), .dynsym and .gnu_debugdata, each address once,
 * whose name (or demangled name, or it without arguments) matches the glob; sorted by address. f
 * returns non-zero to end. -ENOENT: no function matches (with "did you mean"). */
int binary_functions(struct binary *b, const char *glob,
		     int (*f)(void *arg, const struct symbol *s), void *arg, struct error *e);
/* The function that an offset of the file is in. -ENOENT. */
int binary_symbolise(struct binary *b, uint64_t offset, struct symbol *ret);

/* The function at a running program's address, when the place at offset `known` of the file is
 * known to be at `known_at` there; *address becomes the one that the file has. -ENOENT. */
int binary_symbolise_near(struct binary *b, uint64_t known, uint64_t known_at, uint64_t *address,
			  struct symbol *ret);

/* Exceptions may pass through its functions (C++): with a uretprobe on one of them they would not
 * find their handler, and the program would be terminated. */
bool binary_throws(const struct binary *b);
/* Functions like setjmp, whose return address must stay what it is. */
bool function_keeps_return(const char *name);

/* How far in memory a symbol, function or datum, plus `offset` is from the place at offset `from`
 * of the file; `symbol` NULL: what is at `offset` in the file. -ENOENT. */
int binary_distance(struct binary *b, uint64_t from, const char *symbol, int64_t offset,
		    int64_t *ret, struct error *e);

/* An operand of a USDT probe, in all forms that gcc and clang emit: "8@%rax", "-4@-20(%rbp)",
 * "8@8(%rdx,%rax,8)", "4@$5", "8@sym(%rip)", and arm64's. binary_usdts resolves symbols: then with
 * reg "rip" the value is the distance from the probe's own address, without it an address. */
enum usdt_arg_kind { USDT_CONST, USDT_REG, USDT_MEMORY };
struct usdt_arg {
	enum usdt_arg_kind kind;
	uint8_t size; /* 1, 2, 4, 8 */
	bool is_signed;
	bool is_float; /* cannot be fetched as an integer */
	int64_t value; /* constant, or displacement */
	char reg[8];   /* "rax": the register, or the base; "": none */
	char index[8]; /* "": none */
	uint8_t scale;
	uint8_t shift;	  /* the value's lowest bit in the register: 8 for %ah */
	bool unfetchable; /* see the text: 16 bytes, a symbol that the file does not have ... */
	char symbol[64];  /* that value is relative to; "": none, or resolved */
};
#define USDT_ARGS_MAX 16
struct usdt {
	const char *provider, *name;
	uint64_t offset;       /* in the file */
	uint64_t semaphore;    /* in the file, 0: none */
	const char *args_text; /* with n_args 0: usdt_args_parse says why */
	struct usdt_arg args[USDT_ARGS_MAX];
	size_t n_args;
};
int usdt_args_parse(const char *text, struct usdt *u, struct error *e);
int binary_usdts(struct binary *b, const char *provider_glob, const char *name_glob,
		 int (*f)(void *arg, const struct usdt *u), void *arg, struct error *e);

/* --- placement --- */
enum place_cost {
	PLACE_EMULATED, /* the kernel emulates the instruction: push, nop, short jumps ... */
	PLACE_NOP5,	/* at the function's entry: a call takes its place (Linux 6.18) */
	PLACE_STEPPED,	/* single-stepped: the slowest */
	PLACE_REFUSED,	/* the kernel takes no probe there, or it would not be safe; see why */
};
struct place {
	uint64_t offset; /* in the file: where the probe goes */
	uint32_t slid;	 /* bytes behind where it was asked for */
	enum place_cost cost;
	char instruction[64]; /* its text */
	char why[160];	      /* of the choice, or of the refusal */
};
/*
 * Where a probe on a function's entry is cheapest: slides past instructions that leave the argument
 * registers and the stack's arguments alone, are no jump target, and cannot fault, to one that the
 * kernel emulates; never onto a nop5 inside a function, whose replacement would overwrite the red
 * zone. Other registers than those of arguments, the stack and frame pointers may have changed when
 * it slid: who fetches such a one asks for the exact place. `exact`: the place is given and only
 * judged. A place that is refused is no error: ret->cost and ret->why say so.
 */
int binary_place(struct binary *b, const struct symbol *s, uint64_t offset, bool exact,
		 struct place *ret, struct error *e);
/* The returns of a function, as offsets in the file (Go: a uretprobe would break its stack).
 * -ENOENT: it has none (it never returns, or ends by jumping to another function). */
int binary_returns(struct binary *b, const struct symbol *s, uint64_t **offsets, size_t *n,
		   struct error *e);

#endif
