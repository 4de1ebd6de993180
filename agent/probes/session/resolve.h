/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files share that find places: one part of a session, name by name. */
#ifndef AX_PROBES_SESSION_RESOLVE_H
#define AX_PROBES_SESSION_RESOLVE_H

#include <elf.h>

#include "probes/session/priv.h"

#if defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#define NATIVE_MACHINE EM_X86_64
#endif

struct resolver {
	struct session *s;
	struct error *e;
	const struct session_part *part;
	const struct probe_spec *spec;
	uint32_t index;		   /* of the part */
	struct session_file *file; /* NULL: the kernel */
	int r;			   /* an error in a callback */
	bool many;		   /* the name is a glob: what cannot be probed is left out */
	bool files;		   /* so is the file's */
};

/* --- resolve.c --- */

bool resolve_is_glob(const char *s);
int resolve_no_memory(struct resolver *r);
/* A copy that lives as long as the session. */
const char *resolve_keep(struct resolver *r, const char *text);
int resolve_add(struct resolver *r, const char *name, struct session_probe **ret,
		struct engine_site **site);
/* What the part wants of a place; the caller adds what it knows of it. */
struct fetch_place resolve_place(const struct resolver *r, const struct session_probe *p);
int resolve_compile(struct resolver *r, struct session_probe *p, const struct fetch_place *place);

/* --- resolve_kernel.c --- */

int resolve_kernel(struct resolver *r);
int resolve_tracepoints(struct resolver *r);

#endif
