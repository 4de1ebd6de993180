/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A probe as text, and as a struct. Free of side effects: names of files, functions and fields are
 * only names until they are resolved (probes/place, probes/kernel).
 *
 *   TARGET ARG... [if CONDITION] [by ARG...]
 *
 * TARGET, one of
 *   uprobe:FILE:SYMBOL[+OFF]      uretprobe:FILE:SYMBOL     FILE: a path, or a library's name
 *   uprobe:FILE:0xOFFSET          uretprobe:FILE:0xOFFSET   OFFSET: in the file
 *   usdt:FILE[:[PROVIDER:]NAME]   line:FILE:SOURCE:LINE|FUNCTION
 *   kprobe:[MODULE:]SYMBOL[+OFF]  kretprobe:[MODULE:]SYMBOL kprobe:0xADDRESS
 *   tracepoint:CATEGORY:NAME      SYMBOL and NAME may be globs
 *   profile:HZ                    on each processor, so often in a second
 *   (also as bpftrace shortens them: u, ur, U, k, kr, t; a part with blanks or colons in "...")
 *   or a line of ftrace's uprobe_events or kprobe_events, as it is:
 *   p|r[:[GRP/]EVENT] FILE:0xOFFSET ARG...      p|r[:[GRP/]EVENT] SYMBOL[+OFF]|0xADDRESS ARG...
 *   (also MODULE:SYMBOL, FILE:0xOFFSET(0xSEMAPHORE), ...%return, rMAXACTIVE:...)
 *   with its fetch arguments: %ip %ax, $stackN, $stack, $retval, $argN, $comm, @ADDR, @SYM+OFF,
 *   +|-[u]OFFS(ARG), \IMM, each with NAME= before and :TYPE behind
 *
 * ARG: [NAME=]EXPRESSION[:TYPE]
 *   arg0..arg9, retval, retval1..retval8 (further words of it), %REG, a tracepoint's or line's
 * name, pid, tid, comm, cgroup, app, nsecs, cpu, elapsed, numbers, true, false; A@entry (the value
 * that A had at the function's entry); *E, E[N], E->MEMBER, E.MEMBER, E*N, E/N, E%N, E+N, E-N, E&N,
 * E|N, E^N, E>>N, E<<N, (E); args.NAME: a tracepoint's field whose name is one of those words;
 * $task: the kernel's struct of the thread; ustack, kstack, stack (of the side probed) TYPE:
 * u8..u64, s8..s64, x8..x64, f32, f64, bool, char, string, ustring, string[N], buf[N], string[E],
 * buf[E] (so many bytes, as a value says), symbol, errno, syscall, bWIDTH@OFFSET/SIZE (bits of a
 * number, as ftrace has them) CONDITION: E OP E with == != < <= > >= &, joined by && and
 * ||, (..), !; comm == "bash"
 *
 * Arguments are divided by blanks or commas. Within one, an operator has blanks on both sides or on
 * none, since "arg0 -8(%bp)" are two. Precedence is C's, but a comparison is no operand: what C
 * takes flags & 1 == 1 for, nobody means.
 *
 * ftrace's $argN counts from 1, and at a return means the value at the entry. A string or buffer
 * behind its fetches is at the address: +8(%si):string is the string at %si+8, as is
 * (%si+8):string, but *(%si+8):string is the one that a pointer there points to.
 */
#ifndef AX_PROBES_TEXT_SPEC_H
#define AX_PROBES_TEXT_SPEC_H

#include "base/strv.h"
#include "base/util.h"

#define PROBE_ARGS_MAX	12
#define PROBE_TEXT_MAX	4096
#define PROBE_BY_MAX	4
#define PROBE_EXPR_MAX	64 /* items of an expression */
#define PROBE_HZ_MAX	100000
#define PROBE_FETCH_MAX 4096 /* N of string[N] and buf[N] */

enum probe_kind {
	PROBE_UPROBE,
	PROBE_URETPROBE,
	PROBE_USDT,
	PROBE_LINE,
	PROBE_KPROBE,
	PROBE_KRETPROBE,
	PROBE_TRACEPOINT,
	PROBE_PROFILE, /* offset: how often in a second */
	PROBE_SELF,    /* only of scripts: BEGIN, END, every; the word is the symbol */
};

/* An expression in postfix order. */
enum expr_op {
	EXPR_NUMBER, /* value */
	EXPR_STRING, /* text: a constant, only in comparisons */
	EXPR_FLOAT,  /* the same; value: the bits of a double */
	EXPR_ARG,    /* value: which */
	EXPR_RETVAL, /* value: which word of it, in registers */
	EXPR_REG,    /* text: "ax", "rdi", "ip", "sp" ... */
	EXPR_REGS,   /* all of them */
	EXPR_STACK,  /* value: which word from the stack pointer on; -1: the pointer itself */
	EXPR_NAME,   /* text: a tracepoint's field, or a variable */
	EXPR_SYMBOL, /* text, value: an address in the probed file or kernel, plus an offset;
			without text (@+OFF): that offset in the probed file */
	EXPR_PID,
	EXPR_TID,
	EXPR_COMM,
	EXPR_CGROUP,
	EXPR_APP,
	EXPR_NSECS,
	EXPR_CPU,
	EXPR_ELAPSED,
	EXPR_TASK,   /* the kernel's struct of the thread */
	EXPR_GLOBAL, /* text, value: a script's variable, and its number */
	EXPR_THREAD,
	EXPR_MAP,    /* the same, by the operand before it */
	EXPR_ENTRY,  /* the expression before it, at the function's entry */
	EXPR_DEREF,  /* value: offset that is added first; size and user/kernel from the type */
	EXPR_UDEREF, /* the same, in user memory from a kernel probe */
	EXPR_MEMBER, /* text: of the struct that the address before it is of (-> or .) */
	EXPR_INDEX,  /* two operands: address, index */
	EXPR_ADD,
	EXPR_SUB,
	EXPR_MUL,
	EXPR_DIV,
	EXPR_MOD,
	EXPR_AND,
	EXPR_OR,
	EXPR_XOR,
	EXPR_SHL,
	EXPR_SHR,
	EXPR_EQ,
	EXPR_NE,
	EXPR_LT,
	EXPR_LE,
	EXPR_GT,
	EXPR_GE,
	EXPR_LAND,
	EXPR_LOR,
	EXPR_NOT,
};
struct expr_item {
	enum expr_op op;
	int64_t value;
	char *text;
};
struct expr {
	struct expr_item *v;
	size_t n; /* 0: there is none */
};

enum value_type {
	VALUE_NONE, /* not said: what the source says, else unsigned and 64 bits in decimal */
	VALUE_UNSIGNED,
	VALUE_SIGNED,
	VALUE_HEX,
	VALUE_CHAR,
	VALUE_STRING,  /* at the address; user memory for user probes */
	VALUE_USTRING, /* in user memory, from a kernel probe */
	VALUE_BUFFER,
	VALUE_SYMBOL, /* the address as function+offset */
	VALUE_USER_STACK,
	VALUE_KERNEL_STACK,
	VALUE_APP, /* of a cgroup, by its number; not to be asked for: what `app` is */
	VALUE_FLOAT,
	VALUE_ERRNO,   /* signed; errors by their names */
	VALUE_SYSCALL, /* a system call by its number */
	VALUE_BOOL,    /* 0 and 1 by their words */
};
struct probe_arg {
	char *name; /* NULL: its text */
	char *text; /* as it was written, without NAME= and :TYPE */
	struct expr expr;
	enum value_type type;
	uint32_t size; /* bytes: 1, 2, 4, 8; of strings and buffers the most that is fetched, 0:
			  default */
	struct expr length; /* of strings and buffers: how many bytes there are; n 0: not said */
	uint8_t bits, bit;  /* only so many bits of that number, and the lowest of them; 0: all */
};

struct probe_spec {
	enum probe_kind kind;
	char *name;	  /* p:NAME of ftrace's lines; NULL: none */
	char *name_group; /* p:GRP/NAME; NULL: none */
	char *file;	  /* of user probes; of PROBE_LINE the program */
	char *symbol;	  /* function, USDT name, tracepoint; NULL: by offset, by line */
	char *group;	  /* USDT provider, tracepoint category, module of kprobes; NULL: any */
	char *source;	  /* PROBE_LINE */
	uint32_t line;
	uint64_t offset; /* from the symbol; in the file (or address in the kernel) without one */
	uint64_t semaphore; /* FILE:0xOFF(0xSEMAPHORE), in the file; 0: none */
	struct probe_arg args[PROBE_ARGS_MAX];
	size_t n_args;
	struct probe_arg by[PROBE_BY_MAX];
	size_t n_by;
	struct expr condition;
};

void probe_spec_free(struct probe_spec *p);
/* TARGET alone or the whole text in one string. -EINVAL with a sentence that names the place. */
int probe_parse(const char *text, struct probe_spec *ret, struct error *e);
enum probe_variable_kind {
	VARIABLE_GLOBAL,
	VARIABLE_THREAD,
	VARIABLE_MAP, /* one for each number that it is asked for by */
	VARIABLE_KINDS,
};
/* Which of them hold texts: a bit for the number of each. */
struct probe_texts {
	uint64_t of[VARIABLE_KINDS];
};
static inline bool variable_is_text(const struct probe_texts *t, enum probe_variable_kind kind,
				    uint64_t number)
{
	return t->of[kind] >> (number & 63) & 1;
}
/* "global", "thread", "map" */
const char *probe_variable_word(enum probe_variable_kind kind);

/* What the probes of a script have in common. */
struct probe_scope {
	/* its variables' names: their numbers count from 1 */
	struct strv names[VARIABLE_KINDS];
	size_t max;   /* of each */
	size_t fault; /* where in the text the last mistake was */
};
void probe_scope_free(struct probe_scope *s);
/* The number of a variable, which is new if it has to be. -E2BIG, -ENOMEM. */
int probe_variable(struct strv *names, size_t max, const char *name, size_t len);
/* As probe_parse(), but of a script: values may be variables, the target BEGIN, END or every; the
 * sentence does not name the place, which is scope->fault. */
int probe_parse_in(const char *text, struct probe_scope *scope, struct probe_spec *ret,
		   struct error *e);
/* The words of a command line: TARGET first, then arguments, "if ...", "by". */
int probe_parse_words(const char *const *words, size_t n, struct probe_spec *p, struct error *e);
/* The canonical text, which parses into an equal probe. malloc'ed. */
char *probe_format(const struct probe_spec *p);
bool probe_spec_eq(const struct probe_spec *a, const struct probe_spec *b);
const char *probe_kind_name(enum probe_kind k);

#endif
