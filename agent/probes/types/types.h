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
	uint64_t written_id; /* the same of how it is written, with names and qualifiers */
	void *written_unit;
};

/* One step into a type as it is written. */
enum written_kind {
	WRITTEN_NAME, /* that is all of it */
	WRITTEN_CONST,
	WRITTEN_VOLATILE,
	WRITTEN_POINTER,
	WRITTEN_REFERENCE,
	WRITTEN_RVALUE,
	WRITTEN_ARRAY,
	WRITTEN_FUNCTION,
	WRITTEN_NOTHING, /* what is not shown, as restrict */
};
struct written {
	enum written_kind kind;
	const char *prefix, *name; /* "struct ", and its name or what stands for it */
	uint64_t count;		   /* of an array, 0: not known */
	uint8_t dimension;	   /* of `next`: as of ctype */
	uint64_t id;		   /* what is behind it; 0: void */
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
	/* one step of how it is written; *w has the id and unit of where to begin, and then where
	 * it goes on */
	int (*written)(struct type_source *s, struct written *w);
	/* of a function type, also one as it is written (t->written_id): its parameters */
	int (*parameter)(struct type_source *s, const struct ctype *t, size_t which,
			 struct ctype *ret);
	/* the names of an enum's values, as they are declared; f as above */
	int (*enumerators)(struct type_source *s, const struct ctype *t,
			   int (*f)(void *arg, const char *name, int64_t value), void *arg);
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
/* The value that an enum has for that name. -ENOENT. */
int ctype_enumerator(const struct ctype *t, const char *name, int64_t *ret);
/* Also those of anonymous structs and unions within; the offset counts from the outermost.
 * -ENOENT: `near` (NULL: not asked for) is the name that is most like it, or empty. */
int ctype_find_member(const struct ctype *t, const char *name, struct ctype_member *ret, char *near,
		      size_t near_size);
/* "struct task_struct", "int", "a pointer": for people. */
void ctype_describe(const struct ctype *t, char *buf, size_t size);
/* As C declares it: "const char *why", "int (*f)(int)"; `name` may be empty. What does not fit is
 * cut off. */
void ctype_write(const struct ctype *t, const char *name, char *buf, size_t size);

/* What a function takes and returns, as it is declared. */
#define PROTOTYPE_PARAMETERS 32
struct prototype {
	const char *name;   /* NULL: only known by where it is */
	const char *source; /* where it is declared: the file's whole path; NULL: not known */
	uint32_t line;	    /* 0: not known */
	bool go, cxx;	    /* it is written as Go does, as C++ */
	bool variadic;	    /* more arguments may come, or it has more than there is room for */
	struct ctype returns;
	struct prototype_parameter {
		const char *name; /* NULL: it has none */
		struct ctype type;
		bool is_result; /* of Go, which has several */
	} parameters[PROTOTYPE_PARAMETERS];
	size_t n;
};
/* "long add(int n, const char *why)", "func main.add(n int) (int, error)". `name` NULL: its own. */
void prototype_write(const struct prototype *p, const char *name, char *buf, size_t size);

#endif
