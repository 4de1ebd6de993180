/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of ax trace list. */
#ifndef AX_TOOLS_TRACE_LIST_H
#define AX_TOOLS_TRACE_LIST_H

#include "tools/trace/run/run.h"
#include "probes/elf/binary.h"
#include "probes/types/btf.h"
#include "probes/types/dwarf.h"
#include "probes/types/given.h"

struct lister {
	struct cmd *c;
	struct probe_spec spec;
	struct trace_out out;
	struct error *e;
	const char *path;  /* of the file that is being listed */
	const char *types; /* --types, NULL: none */
	int output;
	uint32_t pid;
	bool json, verbose;
	bool sources; /* of lines nothing but the file was said */
	int tracefs;
	size_t n;
	int failed; /* in a callback */
	struct binary *binary;
	struct dwarf *dwarf;	   /* of the file; NULL: it has none */
	struct btf_types *btf;	   /* of the kernel; NULL: not asked for yet */
	struct given_types *given; /* of --types */
};

/* --- list.c --- */
/* The beginning of an object, with the probe as a text that can be given to the others. */
void list_begin_json(struct lister *l, const char *a, const char *b);
void list_put_probe(struct lister *l, const char *a, const char *b);
void list_put_member(struct trace_out *o, const char *name, const char *text);

/* --- list_prototype.c: behind a function what it takes and returns, and where its source is --- */
void list_put_function(struct lister *l, const struct symbol *s);
void list_put_kernel_function(struct lister *l, const char *name, const char *module);

/* --- list_lines.c --- */
int list_lines(struct lister *l);

#endif
