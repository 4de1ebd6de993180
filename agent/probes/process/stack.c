// SPDX-License-Identifier: GPL-2.0-or-later
/* Callers of a thread that was interrupted, by a copy of its stack. */
#include "probes/process/priv.h"
#include "user_stack.h"

#define ROWS_KNOWN   2048 /* a power of two */
#define COMPUTED_MAX 256  /* registers that expressions give; a frame of a signal has 18 */

/* The same instructions come again and again: what the file says of each is kept. */
struct known_row {
	uint64_t file, offset;
	int found; /* as unwind_find() returned it */
	struct unwind_row row;
};
struct rows {
	struct known_row v[ROWS_KNOWN];
};

void rows_free(struct rows *r)
{
	free(r);
}

static const struct known_row *row_of(struct rows *rows, const struct code_place *at,
				      const struct image *im)
{
	uint64_t h = (at->offset ^ at->file->number << 40) * UINT64_C(0x9e3779b97f4a7c15);
	struct known_row *k = &rows->v[h >> 32 & (ROWS_KNOWN - 1)];
	uint64_t address;

	if (k->file == at->file->number && k->offset == at->offset)
		return k;
	k->file = at->file->number;
	k->offset = at->offset;
	k->found = image_address(im, at->offset, &address) ? unwind_find(im, address, &k->row)
							   : -ENOENT;
	return k;
}

struct walker {
	struct processes *p;
	int pid;
	struct rows *rows;
	const struct unwind_stack *stack;
	struct unwind_regs regs;
	bool interrupted; /* here: the instruction at pc is the one that was next */
	unsigned computed;
};

/* Of a hundred frames that no compiler makes each could take a millisecond. */
static bool takes_too_long(struct walker *w, const struct unwind_row *row)
{
	w->computed += row->cfa_computed;
	for (size_t i = 0; i < UNWIND_REGS; i++)
		w->computed +=
			row->rules[i] == UNWIND_AT_COMPUTED || row->rules[i] == UNWIND_IS_COMPUTED;
	return w->computed > COMPUTED_MAX;
}

/* The frame pointer is all there is to go by in code of a just-in-time compiler, and where a file
 * says nothing. */
static enum unwind_result step(struct walker *w)
{
	struct code_place at = {0};
	uint64_t look = w->regs.pc - !w->interrupted;
	const struct known_row *k;
	const struct image *im;

	if (process_code(w->p, w->pid, look, &at) < 0)
		return UNWIND_LOST;
	w->interrupted = false;
	im = at.file ? mapped_image(processes_files(w->p), at.file) : NULL;
	if (!im)
		return unwind_by_frame_pointer(UNWIND_MACHINE, w->stack, &w->regs);
	k = row_of(w->rows, &at, im);
	if (k->found < 0)
		return unwind_by_frame_pointer(im->machine, w->stack, &w->regs);
	if (takes_too_long(w, &k->row))
		return UNWIND_LOST;
	w->interrupted = k->row.is_signal;
	return unwind_step(im, &k->row, w->stack, &w->regs);
}

/* A caller's stack is above that of what it called; but a signal may have one of its own, and who
 * has called nobody (the first, and who was interrupted) may have put nothing onto it. */
static bool goes_up(const struct walker *w, uint64_t sp, uint64_t pc, bool first)
{
	uint64_t now = w->regs.v[unwind_stack_pointer(UNWIND_MACHINE)];

	return now > sp || w->interrupted || (first && now == sp && w->regs.pc != pc);
}

int processes_callers(struct processes *p, int pid, const struct ax_user_stack *stack,
		      uint64_t *addresses, size_t max, bool *cut)
{
	struct unwind_stack copy = {.bytes = stack->bytes, .len = stack->len};
	struct walker w = {.p = p, .pid = pid, .stack = &copy, .interrupted = true};
	struct rows **rows = processes_rows(p);
	enum unwind_result r = UNWIND_CALLER;
	size_t n = 0;

	_Static_assert(sizeof(w.regs.v) == sizeof(stack->regs), "both have DWARF's registers");
	memcpy(w.regs.v, stack->regs, sizeof(w.regs.v));
	w.regs.pc = stack->pc;
	copy.from = w.regs.v[unwind_stack_pointer(UNWIND_MACHINE)];
	*cut = false;
	if (!*rows)
		*rows = calloc(1, sizeof(**rows));
	w.rows = *rows;
	if (!w.rows)
		return -ENOMEM;
	while (n < max) {
		uint64_t sp = w.regs.v[unwind_stack_pointer(UNWIND_MACHINE)], pc = w.regs.pc;

		bool first = w.interrupted;

		addresses[n++] = pc - !first;
		r = step(&w);
		if (r != UNWIND_CALLER || !w.regs.pc || !goes_up(&w, sp, pc, first))
			break;
	}
	*cut = r == UNWIND_CUT || (r == UNWIND_CALLER && n == max);
	return (int)n;
}
