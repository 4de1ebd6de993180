// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which probes are AX_PROBE_QUICK: few operations, of the kinds that most counts and pairs of
 * probes have, so that the interpreter does them where it finds the probe.
 */
#include "probes/engine/priv.h"

/* The program has their key on its stack. */
bool engine_keys_are_short(const struct engine_plan *p)
{
	return p->key_words <= AX_PROBE_KEY_SHORT;
}

static bool quick_source(const struct ax_probe_op *op)
{
	return (op->code == AX_CODE_NSECS || op->code == AX_CODE_CONST) && !op->flags;
}

static bool quick_set(const struct ax_probe_op *op, uint32_t n)
{
	return n == 2 && quick_source(op) &&
	       (op[1].code == AX_CODE_SET_THREAD || op[1].code == AX_CODE_SET_GLOBAL) &&
	       !(op[1].flags & ~AX_OP_IMMEDIATE);
}

static bool quick_register(const struct ax_probe_op *op)
{
	const uint64_t word = sizeof(uint64_t);

	return op->code == AX_CODE_CTX && (op->flags & ~AX_OP_SIGNED) == AX_OP_KEY && op->size &&
	       op->value % word == 0 && op->value / word < AX_PROBE_REGISTERS;
}

/* The key's words in their order, each a register. */
static bool quick_count(const struct ax_probe_op *op, uint32_t n)
{
	if (n == 0 || n > AX_PROBE_QUICK_OPS)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 && op[i].code == AX_CODE_TABLE && !op[i].flags)
			continue;
		if (!quick_register(&op[i]) || op[i].to != i)
			return false;
	}
	return true;
}

bool engine_is_quick(const struct engine_plan *p, const struct ax_probe *d)
{
	const struct ax_probe_op *op = p->ops + d->first_op;

	/* what has to be looked at before, or was kept */
	if (d->when || d->flags & (AX_PROBE_PAIRED | AX_PROBE_NESTED))
		return false;
	if (d->first_op + (size_t)d->n_ops > p->n_ops)
		return false;
	if (d->action == AX_ACTION_SET)
		return quick_set(op, d->n_ops);
	return d->action == AX_ACTION_COUNT && engine_keys_are_short(p) &&
	       quick_count(op, d->n_ops);
}
