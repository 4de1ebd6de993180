/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types as C has them, from DWARF (dwarf.h) or from the kernel's BTF (btf.h). Names for types
 * and qualifiers are looked through: a ctype is what is behind them. A ctype is a plain value that
 * lives as long as its source.
 */
#ifndef AX_PROBES_TYPES_TYPES_H
#define AX_PROBES_TYPES_TYPES_H

#include "base/util.h"

enum ctype_kind {
	CTYPE_VOID,
	CTYPE_INTEGER,
	CTYPE_BOOL,
	CTYPE_CHAR, /* what C calls char; signed char and unsigned char are integers */
	CTYPE_ENUM,
	CTYPE_FLOAT,
	CTYPE_POINTER, /* also C++'s references */
	CTYPE_ARRAY,
	CTYPE_STRUCT,
	CTYPE_UNION,
	CTYPE_FUNCTION,
	CTYPE_OTHER, /* of its size, and that is all: pointers to members, complex numbers ... */
};

struct type_source;
struct ctype {
	enum ctype_kind kind;
	bool is_signed;
	bool by_reference; /* C++: a value of it is passed as its address */
	uint8_t dimension; /* of an array: how many of its dimensions have been indexed */
	uint64_t size;	   /* bytes, 0: not known, as of a struct that is only declared */
	uint64_t count;	   /* elements of an array, 0: not known */
	struct type_source *source;
	uint64_t id; /* this and `unit` are the source's own */
	void *unit;
};

struct ctype_member {
	const char *name; /* NULL: an anonymous struct or union, or a base class */
	struct ctype type;
	uint64_t offset; /* bytes */
	uint8_t bit;	 /* of a bitfield: its lowest bit, from that byte's lowest on */
	uint8_t bits;	 /* 0: it is none */
};

/* Both return 0, -ENOENT when there is none, or another negative errno. */
struct type_source {
	/* what a pointer points to, or an array's elements */
	int (*target)(struct type_source *s, const struct ctype *t, struct ctype *ret);
	/* of a struct or union, as they are declared; f returns non-zero to end, which is returned
	 */
	int (*members)(struct type_source *s, const struct ctype *t,
		       int (*f)(void *arg, const struct ctype_member *m), void *arg);
	/* as it is declared, without what it points to; NULL: it has none */
	const char *(*name)(struct type_source *s, const struct ctype *t);
};

static inline bool ctype_is_aggregate(const struct ctype *t)
{
	return t->kind == CTYPE_ARRAY || t->kind == CTYPE_STRUCT || t->kind == CTYPE_UNION;
}
/* A number of at most 8 bytes. */
static inline bool ctype_is_number(const struct ctype *t)
{
	return (t->kind == CTYPE_INTEGER || t->kind == CTYPE_BOOL || t->kind == CTYPE_CHAR ||
		t->kind == CTYPE_ENUM || t->kind == CTYPE_POINTER) &&
	       (t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8);
}
int ctype_target(const struct ctype *t, struct ctype *ret);
/* Also those of anonymous structs and unions within; the offset counts from the outermost.
 * -ENOENT: `near` (NULL: not asked for) is the name that is most like it, or empty. */
int ctype_find_member(const struct ctype *t, const char *name, struct ctype_member *ret, char *near,
		      size_t near_size);
/* "struct task_struct", "int", "a pointer": for people. */
void ctype_describe(const struct ctype *t, char *buf, size_t size);

#endif
