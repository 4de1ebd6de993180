/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a fetch program with texts instead of numbers. */
#include <linux/bpf.h>
#include <stdarg.h>

#include "tools/trace/fetch_text.h"

#define TEXT_MAX 1024

struct machine {
	const struct fetch_text_context *c;
	char acc[TEXT_MAX];
	char stack[AX_PROBE_STACK][TEXT_MAX];
	size_t depth;
	char put[TEXT_MAX / 2]; /* what a buffer is put together of so far */
};

/* In two steps, since what is made mostly contains what was there. Too long texts are cut off. */
static void set(struct machine *m, const char *fmt, ...) PRINTF(2, 3);
static void set(struct machine *m, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(m->acc, text, sizeof(text));
}

static const char *type_name(const struct ax_probe_op *op, char buf[8])
{
	snprintf(buf, 8, "%c%u", op->flags & AX_OP_SIGNED ? 's' : 'u', op->size * 8u);
	return buf;
}

static const char *const registers[] = {
	"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8",  "r9",  "r10", "r11", "r12",
	"r13", "r14", "r15", "rip", "x0",  "x1",  "x2",	 "x3",	"x4",  "x5",  "x6",  "x7",  "x8",
	"x9",  "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "pc",
};

static void set_register(struct machine *m, const struct ax_probe_op *op)
{
	struct fetch_register r;
	char type[8];

	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		if (fetch_register_find(m->c->machine, registers[i], &r) < 0 ||
		    op->value < r.offset || op->value >= r.offset + 8)
			continue;
		if (op->size == 8)
			set(m, "%s", registers[i]);
		else if (op->value == r.offset)
			set(m, "%s of %s", type_name(op, type), registers[i]);
		else
			set(m, "%s of %s>>%llu", type_name(op, type), registers[i],
			    (unsigned long long)(op->value - r.offset) * 8);
		return;
	}
	set(m, "pt_regs+%llu", (unsigned long long)op->value);
}

static void set_field(struct machine *m, const struct ax_probe_op *op)
{
	const struct format *f = m->c->format;
	char type[8];

	for (size_t i = 0; i < f->n; i++)
		if (op->value >= f->v[i].offset && op->value < f->v[i].offset + f->v[i].size) {
			set(m, "field %s (%s)", f->v[i].name, f->v[i].type);
			return;
		}
	set(m, "%s at record+%llu", type_name(op, type), (unsigned long long)op->value);
}

static void set_memory(struct machine *m, const struct ax_probe_op *op, const char *whose)
{
	long long off = (long long)op->value;
	char type[8];

	if (off)
		set(m, "%s at %s(%s%+lld)", type_name(op, type), whose, m->acc, off);
	else
		set(m, "%s at %s(%s)", type_name(op, type), whose, m->acc);
}

static void set_binary(struct machine *m, const struct ax_probe_op *op)
{
	static const char *const signs[] = {
		"+",  "-",  "*",  "/", "%",  "&", "|",	"^",  "<<",
		">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||",
	};
	const char *sign = signs[op->code - AX_CODE_ADD];
	long long v = (long long)op->value;

	if (!(op->flags & AX_OP_IMMEDIATE)) {
		if (m->depth)
			m->depth--;
		set(m, "(%s %s %s)", m->stack[m->depth], sign, m->acc);
	} else if (v > 0xffff || v < -0xffff) {
		set(m, "(%s %s 0x%llx)", m->acc, sign, (unsigned long long)op->value);
	} else {
		set(m, "(%s %s %lld)", m->acc, sign, v);
	}
}

static void put_part(struct machine *m, const struct ax_probe_op *op)
{
	size_t len = strlen(m->put);

	snprintf(m->put + len, sizeof(m->put) - len, "%s%.200s", len ? ", " : "", m->acc);
	if (!(op->flags & AX_OP_STORE))
		return;
	set(m, "%llu bytes of %s", (unsigned long long)op->value, m->put);
	*m->put = '\0';
}

/* Its length was pushed before its address. */
static void set_long_text(struct machine *m, const struct ax_probe_op *op, const char *text)
{
	const char *whose = op->flags & AX_OP_KERNEL ? "kernel " : "";
	const char *len = m->depth ? m->stack[--m->depth] : "?";

	if (op->code == AX_CODE_TEXT_EQ_LONG)
		set(m, "(%.300s bytes at %s(%.300s) == \"%s\")", len, whose, m->acc, text);
	else
		set(m, "%.300s bytes, at most %llu, at %s(%.300s)", len,
		    op->code == AX_CODE_STRING_LONG ? (unsigned long long)op->value
						    : AX_PROBE_KEY_TEXT - 1ull,
		    whose, m->acc);
}

static void set_text(struct machine *m, const struct ax_probe_op *op)
{
	const char *whose = op->flags & AX_OP_KERNEL ? "kernel " : "";
	char text[AX_PROBE_TEXT + 1] = "";

	if (op->value < m->c->n_texts)
		memcpy(text, m->c->texts[op->value].w, AX_PROBE_TEXT);
	switch (op->code) {
	case AX_CODE_TEXT_EQ:
		set(m, "(string at %s(%s) == \"%s\")", whose, m->acc, text);
		break;
	case AX_CODE_COMM_EQ:
		set(m, "(name of the process == \"%s\")", text);
		break;
	case AX_CODE_STRING:
		set(m, "string of at most %llu bytes at %s(%s)", (unsigned long long)op->value - 1,
		    whose, m->acc);
		break;
	case AX_CODE_KEY_STRING:
		set(m, "string of at most %d bytes at %s(%s)", AX_PROBE_KEY_TEXT, whose, m->acc);
		break;
	case AX_CODE_BUFFER:
		set(m, "%llu bytes at %s(%s)", (unsigned long long)op->value, whose, m->acc);
		break;
	case AX_CODE_COMM:
	case AX_CODE_KEY_COMM:
		set(m, "name of the process");
		break;
	case AX_CODE_PUT:
		put_part(m, op);
		break;
	case AX_CODE_TEXT_EQ_LONG:
	case AX_CODE_STRING_LONG:
	case AX_CODE_KEY_STRING_LONG:
		set_long_text(m, op, text);
		break;
	default:
		break;
	}
}

static void set_source(struct machine *m, const struct ax_probe_op *op)
{
	static const struct {
		uint8_t code;
		const char *text;
	} plain[] = {
		{AX_CODE_PID, "number of the process"},
		{AX_CODE_TID, "number of the thread"},
		{AX_CODE_NSECS, "monotonic time in nanoseconds"},
		{AX_CODE_CPU, "number of the CPU"},
		{AX_CODE_TASK, "the kernel's struct of the thread"},
		{AX_CODE_CGROUP, "number of the cgroup"},
		{AX_CODE_ELAPSED, "nanoseconds since the entry"},
		{AX_CODE_FIND, "time of the other probe"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (plain[i].code == op->code)
			set(m, "%s", plain[i].text);
}

static void swap(struct machine *m)
{
	char text[TEXT_MAX];

	if (!m->depth)
		return;
	memcpy(text, m->acc, sizeof(text));
	memcpy(m->acc, m->stack[m->depth - 1], sizeof(text));
	memcpy(m->stack[m->depth - 1], text, sizeof(text));
}

/* Nothing but another copy of the accumulator. */
static bool is_double(const struct ax_probe_op *op)
{
	return op->code == AX_CODE_ADD && op->flags & AX_OP_PUSH && op->flags & AX_OP_IMMEDIATE &&
	       !op->value;
}

static void run_op(struct machine *m, const struct ax_probe_op *op)
{
	char type[8];

	if (op->flags & AX_OP_PUSH && m->depth < AX_PROBE_STACK)
		memcpy(m->stack[m->depth++], m->acc, sizeof(m->acc));
	if (is_double(op))
		return;
	if (op->code == AX_CODE_SWAP)
		swap(m);
	else if (op->code == AX_CODE_ORDER)
		set(m, "order of the f%u with the bits %s", op->size * 8u, m->acc);
	else if (op->code >= AX_CODE_TEXT_EQ)
		set_text(m, op);
	else if (op->code >= AX_CODE_ADD)
		set_binary(m, op);
	else if (op->code == AX_CODE_CONST)
		set(m, "%lld", (long long)op->value);
	else if (op->code == AX_CODE_ADDRESS && !m->c->format)
		set(m, "all registers");
	else if ((op->code == AX_CODE_CTX && m->c->format) || op->code == AX_CODE_ADDRESS)
		set_field(m, op);
	else if (op->code == AX_CODE_CTX)
		set_register(m, op);
	else if (op->code == AX_CODE_USER)
		set_memory(m, op, "");
	else if (op->code == AX_CODE_KERNEL)
		set_memory(m, op, "kernel ");
	else if (op->code == AX_CODE_SAVED)
		set(m, "kept at the entry, %llu", (unsigned long long)op->value);
	else if (op->code == AX_CODE_DATA_LOC)
		set(m, "address in the record that %s tells", m->acc);
	else if (op->code == AX_CODE_STACK)
		set(m, "%s call stack", op->value & BPF_F_USER_STACK ? "user" : "kernel");
	else if (op->code == AX_CODE_EXTEND)
		set(m, "%s of %s", type_name(op, type), m->acc);
	else if (op->code == AX_CODE_NOT)
		set(m, "!%s", m->acc);
	else
		set_source(m, op);
}

char *fetch_text(const struct ax_probe_op *ops, size_t n, const struct fetch_text_context *c,
		 enum fetch_text_what what, uint32_t index)
{
	static const uint8_t flags[] = {AX_OP_STORE, AX_OP_KEY, AX_OP_KEEP, 0};
	autofree struct machine *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->c = c;
	for (size_t i = 0; i < n; i++) {
		const struct ax_probe_op *op = &ops[i];
		bool text_key = op->code == AX_CODE_KEY_STRING ||
				op->code == AX_CODE_KEY_STRING_LONG || op->code == AX_CODE_KEY_COMM;

		if (op->code == AX_CODE_FILTER) {
			if (what == FETCH_TEXT_FILTER)
				return strdup(m->acc);
			m->depth = 0;
			continue;
		}
		run_op(m, op);
		if (what != FETCH_TEXT_FILTER && op->to == index &&
		    (op->flags & flags[what] || (what == FETCH_TEXT_KEY && text_key)))
			return strdup(m->acc);
		if (op->flags & (AX_OP_STORE | AX_OP_KEY | AX_OP_KEEP))
			m->depth = 0;
	}
	return NULL;
}
