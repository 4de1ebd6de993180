// SPDX-License-Identifier: GPL-2.0-or-later
/* What interpreter.bpf.h does with operations, for values of a thread that is stopped. */
#include "probes/fetch/evaluate.h"

struct machine {
	const struct fetch_thread *t;
	struct ax_probe_record *record;
	size_t size, used;
	uint64_t acc;
	uint64_t stack[AX_PROBE_STACK];
	bool faults[AX_PROBE_STACK];
	unsigned depth;
	bool fault;
};

static uint64_t extended(uint64_t v, uint8_t size, bool with_sign)
{
	unsigned shift = (64 - size * 8u) & 63;

	return with_sign ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static uint64_t number(struct machine *m, const struct ax_probe_op *op, const void *bytes)
{
	uint64_t v = 0;

	if (!bytes || !op->size || op->size > sizeof(v)) {
		m->fault = true;
		return 0;
	}
	memcpy(&v, bytes, op->size);
	return extended(v, op->size, op->flags & AX_OP_SIGNED);
}

static uint64_t of_register(struct machine *m, const struct ax_probe_op *op)
{
	bool known = op->value < m->t->n_registers && op->size <= m->t->n_registers - op->value;

	return number(m, op, known ? (const char *)m->t->registers + op->value : NULL);
}

static uint64_t of_memory(struct machine *m, const struct ax_probe_op *op)
{
	char bytes[sizeof(uint64_t)] = {0};
	bool known = op->size <= sizeof(bytes) &&
		     m->t->read(m->t->arg, m->acc + op->value, bytes, op->size) == 0;

	return number(m, op, known ? bytes : NULL);
}

/* --- strings and buffers --- */

#define PAGE 4096

static bool read_pieces(struct machine *m, char *to, size_t n, bool text, size_t *len)
{
	uint64_t at = m->acc;

	for (*len = 0; *len < n;) {
		size_t piece = PAGE - (at + *len) % PAGE;

		if (piece > n - *len)
			piece = n - *len;
		if (m->t->read(m->t->arg, at + *len, to + *len, piece) < 0)
			return false;
		if (text && memchr(to + *len, 0, piece)) {
			*len += strlen(to + *len) + 1;
			return true;
		}
		*len += piece;
	}
	return true;
}

/* $regs: what else is the kernel's is not for who looks from here. */
static uint64_t of_context(struct machine *m, const struct ax_probe_op *op)
{
	uint64_t where = (uint64_t)m->used << 32, len = op->value;

	if (m->fault || m->acc > m->t->n_registers || len > m->t->n_registers - m->acc ||
	    len > m->size - m->used) {
		m->fault = true;
		return where;
	}
	memcpy((char *)m->record + m->used, (const char *)m->t->registers + m->acc, len);
	m->used += len;
	return where | len;
}

static uint64_t of_bytes(struct machine *m, const struct ax_probe_op *op, bool text)
{
	char *to = (char *)m->record + m->used;
	uint64_t where = (uint64_t)m->used << 32;
	size_t room = m->size - m->used, len = 0;

	if (op->flags & AX_OP_KERNEL && !text)
		return of_context(m, op);
	if (op->value < room)
		room = op->value;
	if (m->fault || !room || op->flags & AX_OP_KERNEL ||
	    !read_pieces(m, to, room, text, &len)) {
		m->fault = true;
		return where;
	}
	if (text)
		to[len - 1] = 0;
	m->used += len;
	return where | (len - text);
}

/* The length is the last value on the stack. */
static uint64_t of_length(struct machine *m, const struct ax_probe_op *op)
{
	uint64_t where = (uint64_t)m->used << 32;
	size_t len, read = 0;

	m->depth = m->depth ? m->depth - 1 : 0;
	len = m->stack[m->depth % AX_PROBE_STACK];
	m->fault |= m->faults[m->depth % AX_PROBE_STACK];
	if (len > op->value)
		len = op->value;
	if (m->fault || len > m->size - m->used || op->flags & AX_OP_KERNEL ||
	    !read_pieces(m, (char *)m->record + m->used, len, false, &read)) {
		m->fault = true;
		return where;
	}
	m->used += len;
	return where | len;
}

/* The next bytes of a buffer that is put together. */
static uint64_t put(struct machine *m, const struct ax_probe_op *op)
{
	if (op->size > sizeof(m->acc) || op->size > m->size - m->used) {
		m->fault = true;
		return 0;
	}
	memcpy((char *)m->record + m->used, &m->acc, op->size);
	m->used += op->size;
	return (uint64_t)(uint32_t)(m->used - op->value) << 32 | (uint32_t)op->value;
}

static uint64_t swap(struct machine *m)
{
	unsigned at = (m->depth - 1) % AX_PROBE_STACK;
	uint64_t v = m->stack[at];
	bool fault = m->faults[at];

	m->stack[at] = m->acc;
	m->faults[at] = m->fault;
	m->fault = fault;
	return v;
}

/* --- operations --- */

/* What follows from one side alone does not need the other: p == 0 || *p == 3. */
static uint64_t logic(struct machine *m, bool any, bool a, bool a_fault, bool b, bool b_fault)
{
	bool decided = (!a_fault && a == any) || (!b_fault && b == any);

	m->fault = !decided && (a_fault || b_fault);
	return decided ? any : !any;
}

/* As the interpreter has it. */
static uint64_t divided(struct machine *m, int64_t a, int64_t b, bool rest)
{
	if (!b) {
		m->fault = true;
		return 0;
	}
	if (b == -1) /* what has no opposite is its own */
		return rest ? 0 : 0 - (uint64_t)a;
	return (uint64_t)(rest ? a % b : a / b);
}

static uint64_t binary(struct machine *m, const struct ax_probe_op *op)
{
	/* with it the order of signed numbers is that of unsigned ones */
	uint64_t flip = op->flags & AX_OP_UNSIGNED ? UINT64_C(1) << 63 : 0;
	uint64_t a = m->acc, b = op->value;
	bool a_fault = m->fault, b_fault = false;

	if (!(op->flags & AX_OP_IMMEDIATE)) {
		b = m->acc;
		b_fault = m->fault;
		m->depth = m->depth ? m->depth - 1 : 0;
		a = m->stack[m->depth % AX_PROBE_STACK];
		a_fault = m->faults[m->depth % AX_PROBE_STACK];
	}
	m->fault = a_fault || b_fault;
	switch (op->code) {
	case AX_CODE_ADD:
		return a + b;
	case AX_CODE_SUB:
		return a - b;
	case AX_CODE_MUL:
		return a * b;
	case AX_CODE_DIV:
	case AX_CODE_MOD:
		return divided(m, (int64_t)a, (int64_t)b, op->code == AX_CODE_MOD);
	case AX_CODE_AND:
		return a & b;
	case AX_CODE_OR:
		return a | b;
	case AX_CODE_XOR:
		return a ^ b;
	case AX_CODE_SHL:
		return b < 64 ? a << b : 0;
	case AX_CODE_SHR:
		return b < 64 ? a >> b : 0;
	case AX_CODE_EQ:
		return a == b;
	case AX_CODE_NE:
		return a != b;
	case AX_CODE_LT:
		return (int64_t)(a ^ flip) < (int64_t)(b ^ flip);
	case AX_CODE_LE:
		return (int64_t)(a ^ flip) <= (int64_t)(b ^ flip);
	case AX_CODE_GT:
		return (int64_t)(a ^ flip) > (int64_t)(b ^ flip);
	case AX_CODE_GE:
		return (int64_t)(a ^ flip) >= (int64_t)(b ^ flip);
	default: /* AX_CODE_LAND, AX_CODE_LOR */
		return logic(m, op->code == AX_CODE_LOR, a, a_fault, b, b_fault);
	}
}

static uint64_t result(struct machine *m, const struct ax_probe_op *op)
{
	if (op->code >= AX_CODE_ADD && op->code <= AX_CODE_LOR)
		return binary(m, op);
	switch (op->code) {
	case AX_CODE_CONST:
	case AX_CODE_ADDRESS: /* of what is in the context: told by where it is there */
		return op->value;
	case AX_CODE_CTX:
		return of_register(m, op);
	case AX_CODE_USER:
		return of_memory(m, op);
	case AX_CODE_PID:
		return m->t->pid;
	case AX_CODE_TID:
		return m->t->tid;
	case AX_CODE_NSECS:
		return time_mono_ns();
	case AX_CODE_EXTEND:
		return extended(m->acc, op->size, op->flags & AX_OP_SIGNED);
	case AX_CODE_NOT:
		return !m->acc;
	case AX_CODE_STRING:
		return of_bytes(m, op, true);
	case AX_CODE_BUFFER:
		return of_bytes(m, op, false);
	case AX_CODE_STRING_LONG:
		return of_length(m, op);
	case AX_CODE_PUT:
		return put(m, op);
	case AX_CODE_SWAP:
		return swap(m);
	default:
		m->fault = true;
		return 0;
	}
}

static void run(struct machine *m, const struct ax_probe_op *op)
{
	if (op->flags & AX_OP_PUSH) {
		m->stack[m->depth % AX_PROBE_STACK] = m->acc;
		m->faults[m->depth % AX_PROBE_STACK] = m->fault;
		m->fault = false;
		m->depth++;
	}
	m->acc = result(m, op);
	if (!(op->flags & AX_OP_STORE))
		return;
	if (op->to < m->record->n_values) {
		m->record->values[op->to] = m->acc;
		m->record->faults |= (uint32_t)m->fault << op->to;
	}
	m->fault = false;
	m->depth = 0;
}

size_t fetch_evaluate(const struct fetch *f, const struct fetch_thread *t,
		      struct ax_probe_record *ret, size_t size)
{
	size_t n = f->n_values + f->n_hidden;
	struct machine m = {.t = t,
			    .record = ret,
			    .size = size,
			    .used = sizeof(*ret) + n * sizeof(ret->values[0])};

	if (size < m.used)
		return 0;
	memset(ret, 0, m.used);
	ret->pid = t->pid;
	ret->tid = t->tid;
	ret->n_values = (uint16_t)n;
	for (size_t i = 0; i < f->n_ops; i++)
		run(&m, &f->ops[i]);
	return m.used;
}
