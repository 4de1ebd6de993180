// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/probe_fetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#ifdef __x86_64__
static uint64_t run_extended(uint64_t v, unsigned size, bool with_sign)
{
	unsigned shift = 64 - size * 8;

	return with_sign ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static uint8_t run_byte(const struct fetch_run *r, uint64_t address)
{
	return (uint8_t)peek(r->s, address);
}

static uint64_t run_binary(enum ax_probe_code code, uint64_t a, uint64_t b)
{
	switch (code) {
	case AX_CODE_ADD:
		return a + b;
	case AX_CODE_SUB:
		return a - b;
	case AX_CODE_MUL:
		return a * b;
	case AX_CODE_LT:
		return (int64_t)a < (int64_t)b;
	case AX_CODE_LE:
		return (int64_t)a <= (int64_t)b;
	case AX_CODE_GT:
		return (int64_t)a > (int64_t)b;
	case AX_CODE_GE:
		return (int64_t)a >= (int64_t)b;
	case AX_CODE_EQ:
		return a == b;
	case AX_CODE_NE:
		return a != b;
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
	default:
		fail_msg("operation %d", code);
		return 0;
	}
}

static void run_one(struct fetch_run *r, const struct ax_probe_op *op)
{
	uint64_t a, v;

	if (op->flags & AX_OP_PUSH) {
		assert_true(r->depth < AX_PROBE_STACK);
		r->stack[r->depth++] = r->acc;
	}
	switch (op->code) {
	case AX_CODE_CONST:
		r->acc = op->value;
		return;
	case AX_CODE_CTX:
		assert_true(op->value + op->size <= sizeof(r->s->regs));
		v = 0;
		memcpy(&v, (const char *)&r->s->regs + op->value, op->size);
		r->acc = run_extended(v, op->size, op->flags & AX_OP_SIGNED);
		return;
	case AX_CODE_USER:
		v = r->acc + op->value ? peek(r->s, r->acc + op->value) : 0; /* a fault */
		r->acc = run_extended(v, op->size, op->flags & AX_OP_SIGNED);
		return;
	case AX_CODE_SAVED:
		r->acc = r->saved[op->value];
		return;
	case AX_CODE_EXTEND:
		r->acc = run_extended(r->acc, op->size, op->flags & AX_OP_SIGNED);
		return;
	case AX_CODE_NOT:
		r->acc = !r->acc;
		return;
	case AX_CODE_SWAP:
		assert_true(r->depth > 0);
		v = r->acc;
		r->acc = r->stack[r->depth - 1];
		r->stack[r->depth - 1] = v;
		return;
	case AX_CODE_PUT:
		assert_true(r->n_put + op->size <= sizeof(r->put));
		memcpy(r->put + r->n_put, &r->acc, op->size < 8 ? op->size : 8);
		r->n_put += op->size;
		return;
	case AX_CODE_STRING_LONG:
		assert_true(r->depth > 0);
		r->len = r->stack[--r->depth];
		if (r->len > op->value)
			r->len = op->value;
		return;
	case AX_CODE_STRING:
	case AX_CODE_BUFFER:
		return;
	default:
		if (op->flags & AX_OP_IMMEDIATE) {
			r->acc = run_binary(op->code, r->acc, op->value);
		} else {
			assert_true(r->depth > 0);
			a = r->stack[--r->depth];
			r->acc = run_binary(op->code, a, r->acc);
		}
	}
}

static void run_show(struct fetch_run *r, const struct fetch_shown *s, const struct ax_probe_op *op)
{
	size_t len = strlen(r->text), size = sizeof(r->text) - len;
	char *to = r->text + len;
	char bytes[600];
	size_t n;

	n = (size_t)snprintf(to, size, "%s%s=", len ? " " : "", s ? s->name : "hidden");
	to += n;
	size -= n;
	if (op->code == AX_CODE_STRING_LONG && (!s || s->type == VALUE_STRING)) {
		for (n = 0; n < r->len && n + 1 < sizeof(bytes); n++)
			bytes[n] = (char)run_byte(r, r->acc + n);
		snprintf(to, size, "\"%.*s\"", (int)n, bytes);
		return;
	}
	switch (s ? s->type : VALUE_STRING) {
	case VALUE_FLOAT:
		snprintf(to, size, "0x%llx", (unsigned long long)r->acc);
		break;
	case VALUE_SIGNED:
		snprintf(to, size, "%lld", (long long)r->acc);
		break;
	case VALUE_HEX:
		snprintf(to, size, "0x%llx", (unsigned long long)r->acc);
		break;
	case VALUE_CHAR:
		snprintf(to, size, "'%c'", (int)r->acc);
		break;
	case VALUE_STRING:
		for (n = 0; n + 1 < op->value && n + 1 < sizeof(bytes); n++)
			if (!(bytes[n] = (char)run_byte(r, r->acc + n)))
				break;
		snprintf(to, size, "\"%.*s\"", (int)n, bytes);
		break;
	case VALUE_BUFFER:
		for (n = 0; n < op->value && n < 64; n++)
			snprintf(to + 2 * n, size - 2 * n, "%02x",
				 op->code == AX_CODE_PUT ? r->put[n] : run_byte(r, r->acc + n));
		r->n_put = 0;
		break;
	default:
		snprintf(to, size, "%llu", (unsigned long long)r->acc);
	}
}

void run_ops(struct fetch_run *r, const struct fetch *f, const struct ax_probe_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		run_one(r, &ops[i]);
		if (ops[i].flags & AX_OP_KEEP)
			r->saved[ops[i].to] = r->acc;
		if (ops[i].flags & AX_OP_STORE)
			run_show(r, ops[i].to < f->n_values ? &f->values[ops[i].to] : NULL,
				 &ops[i]);
		if (ops[i].flags & (AX_OP_STORE | AX_OP_KEEP))
			r->depth = 0;
	}
}
#endif
