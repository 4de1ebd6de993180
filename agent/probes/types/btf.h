/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Types of the kernel's functions and structs, by the BTF that it has of itself and its modules. */
#ifndef AX_PROBES_TYPES_BTF_H
#define AX_PROBES_TYPES_BTF_H

#include "probes/types/types.h"

struct btf_types;

/* Nothing is read yet: the first of the functions below does, and they return -ENODATA, with a
 * sentence, when the kernel has no BTF. -ENOMEM. */
int btf_types_new(struct btf_types **ret);
/* Those of a file, raw or in an ELF file's section .BTF, in place of the kernel's. -ENODATA. */
int btf_types_open(const char *path, struct btf_types **ret);
void btf_types_free(struct btf_types *b);
static inline void btf_types_freep(struct btf_types **b)
{
	if (*b)
		btf_types_free(*b);
}

#define BTF_PARAMETERS_MAX 16
struct btf_function {
	struct {
		const char *name; /* NULL: it has none */
		struct ctype type;
	} parameters[BTF_PARAMETERS_MAX];
	size_t n_parameters;
	struct ctype returns;
};
/* `module`: NULL: the kernel itself, or any of its modules; "vmlinux": only itself. -ENOENT. */
int btf_types_function(struct btf_types *b, const char *module, const char *name,
		       struct btf_function *ret, struct error *e);
/* The same, as it is declared. */
int btf_types_prototype(struct btf_types *b, const char *module, const char *name,
			struct prototype *ret, struct error *e);
/* "task_struct": a struct or union of the kernel itself. -ENOENT. */
int btf_types_struct(struct btf_types *b, const char *name, struct ctype *ret, struct error *e);
int btf_types_enum(struct btf_types *b, const char *name, struct ctype *ret, struct error *e);

#endif
