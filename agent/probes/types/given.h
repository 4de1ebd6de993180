/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and their types from a file that is given for programs without debug data: DWARF, of
 * another build or of declarations only, or BTF. It knows functions by name, not by place.
 */
#ifndef AX_PROBES_TYPES_GIVEN_H
#define AX_PROBES_TYPES_GIVEN_H

#include "probes/types/dwarf.h"

struct given_types;

/* It is read now. -ENODATA: it has neither; -EINVAL: it is the text of a header. */
int given_types_open(const char *path, struct given_types **ret, struct error *e);
void given_types_free(struct given_types *g);
static inline void given_types_freep(struct given_types **g)
{
	if (*g)
		given_types_free(*g);
}
const char *given_types_path(const struct given_types *g);
/* `name`: as the program's symbols have it. -ENOENT. */
int given_types_prototype(struct given_types *g, const char *name, struct prototype *ret,
			  struct error *e);
/* Its parameters where callers put them; those without a name are arg0 and so on. */
int given_types_parameters(struct given_types *g, uint16_t machine, const char *function,
			   int (*f)(void *arg, const struct dwarf_variable *v), void *arg,
			   struct error *e);
/* As dwarf_return_value(). */
int given_types_return(struct given_types *g, uint16_t machine, const char *function,
		       struct dwarf_variable *ret, struct error *e);

#endif
