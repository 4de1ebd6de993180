// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as a program, its stack and registers: callers are found or not, and there is an end.
 */
#include "probes/elf/image.h"
#include "probes/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_row(const struct unwind_row *row)
{
	check(row->cfa_computed || row->cfa_register < UNWIND_REGS);
	check(row->return_register < UNWIND_REGS);
	check(!row->cfa_computed || row->cfa_value >= 0);
	for (size_t i = 0; i < UNWIND_REGS; i++) {
		check(row->rules[i] <= UNWIND_IS_COMPUTED);
		check(row->rules[i] < UNWIND_AT_COMPUTED || row->values[i] >= 0);
	}
}

/* As many callers as the copy of a stack has room for. */
static void walk(const struct image *im, const struct unwind_stack *s, struct unwind_regs regs)
{
	struct unwind_row row;

	for (int i = 0; i < 64; i++) {
		int r = unwind_find(im, regs.pc, &row);

		check(r == 0 || r == -ENOENT || r == -ENOEXEC);
		if (r < 0) {
			if (unwind_by_frame_pointer(im->machine, s, &regs) != UNWIND_CALLER)
				return;
			continue;
		}
		check_row(&row);
		if (unwind_step(im, &row, s, &regs) != UNWIND_CALLER)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_stack s = {.from = 0x1000, .bytes = data, .len = size < 512 ? size : 512};
	uint8_t *copy = malloc(size + 1);
	struct error e = {0};
	struct image im;

	check(copy);
	memcpy(copy, data, size);
	if (image_open_memory(&im, copy, size, "program", &e) < 0) {
		image_close(&im);
		return 0;
	}
	for (uint64_t pc = 0; pc < 0x2000; pc += 61) {
		struct unwind_regs regs = {.pc = pc};

		for (size_t i = 0; i < UNWIND_REGS; i++)
			regs.v[i] = 0x1000 + (i < size ? data[i] : 0);
		walk(&im, &s, regs);
	}
	image_close(&im);
	return 0;
}
