/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_UNWIND_PRIV_H
#define AX_PROBES_UNWIND_PRIV_H

#include "probes/elf/image.h"
#include "probes/unwind/unwind.h"

/* Bytes that are read one after the other. What is behind their end is zero, and `bad` says so. */
struct reader {
	const uint8_t *at, *end;
	bool bad;
};
uint64_t reader_fixed(struct reader *r, size_t size);
uint64_t reader_uleb(struct reader *r);
int64_t reader_sleb(struct reader *r);
void reader_skip(struct reader *r, uint64_t len);

/* How pointers are encoded (DW_EH_PE_...): their form, and what they are relative to. */
#define ENCODED_ABSOLUTE 0x00
#define ENCODED_FORM	 0x0f
#define ENCODED_PCREL	 0x10
#define ENCODED_RELATION 0x70
#define ENCODED_INDIRECT 0x80
/* `place`: the address that the pointer itself has. */
uint64_t reader_pointer(struct reader *r, uint8_t encoding, uint64_t place);

/* What entries have in common (CIE). */
struct common {
	uint64_t code_align;
	int64_t data_align;
	uint8_t return_register;
	uint8_t encoding;
	bool augmented, is_signal;
	struct reader program;
	uint64_t program_at; /* in the file */
};
/* One entry: the code that it is about, and how its rows come to be. */
struct entry {
	uint64_t from, len;
	struct reader program;
	uint64_t program_at;
};
int rows_make(const struct common *c, const struct entry *e, uint64_t base, uint64_t address,
	      struct unwind_row *ret);

/* False: memory that is not in the copy; *cut: it is behind its end. */
bool stack_read(const struct unwind_stack *s, uint64_t address, uint64_t *ret, bool *cut);

/* The value of the expression that is at an offset of the file. `cfa`: NULL: there is none yet. */
bool expression_value(const struct image *im, uint64_t offset, const struct unwind_regs *regs,
		      const struct unwind_stack *s, const uint64_t *cfa, uint64_t *ret, bool *cut);

#endif
