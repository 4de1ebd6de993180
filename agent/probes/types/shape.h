/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the bytes of a value are shown, by its type: a tree that lives by itself, long after what
 * knew the type has gone. It is as deep and as large as there is room for, and says where it ends.
 */
#ifndef AX_PROBES_TYPES_SHAPE_H
#define AX_PROBES_TYPES_SHAPE_H

#include "probes/types/types.h"

#define SHAPE_NODES_MAX	  512
#define SHAPE_DEPTH_MAX	  8	      /* of structs and arrays within each other */
#define SHAPE_BYTES_MAX	  2048	      /* of one value: what is behind is not fetched */
#define SHAPE_TEXT_BYTES  256	      /* of a text that a member points to */
#define SHAPE_ENUMS_MAX	  1024	      /* names of the values of all its enums */
#define SHAPE_NAMES_MAX	  (32u << 10) /* bytes of all names */
#define SHAPE_COUNT_BYTES UINT32_MAX  /* elements: as many as there are bytes of */

enum shape_kind {
	SHAPE_UNSIGNED,
	SHAPE_SIGNED,
	SHAPE_HEX, /* also what is of no type that is known */
	SHAPE_BOOL,
	SHAPE_CHAR,
	SHAPE_ENUM, /* first, count: of the enumerators */
	SHAPE_FLOAT,
	SHAPE_POINTER,
	SHAPE_TEXT,   /* char[]: up to its NUL */
	SHAPE_ARRAY,  /* first: the element; count of them */
	SHAPE_STRUCT, /* first, count: its members */
	SHAPE_UNION,
	SHAPE_CUT, /* there would be more, but there was no room */
	/* These are texts elsewhere, which are fetched besides: `followed`. */
	SHAPE_TEXT_AT,	     /* char *: up to its NUL */
	SHAPE_STRING,	     /* its address at ptr_at, its length at len_at */
	SHAPE_STRING_BEFORE, /* its length stands in memory len_at before it */
	SHAPE_SLICE,	     /* as SHAPE_STRING, of elements: first is one of them */
	SHAPE_STRING_SHORT,  /* as SHAPE_STRING, or within itself: see below */
	/* Two words: where its type is (count 1: of that what leads there), and its value or where
	 * that is. Three are `followed`: the type, SHAPE_TEXT_BYTES / 4 bytes of the value, and the
	 * text that it would begin with if it began with one. */
	SHAPE_INTERFACE,
};
struct shape_node {
	uint8_t kind;	   /* enum shape_kind */
	uint8_t bit, bits; /* of a bitfield: its lowest bit, from the first byte's on; 0: none */
	bool is_signed;
	uint8_t followed; /* 1 + which of the hidden values has what is there; 0: none does */
	uint8_t ptr_at, len_at;
	uint32_t offset; /* bytes from where what it is a part of begins */
	uint32_t size;
	uint32_t name;	/* of a member: where it is in the names; 0: "" */
	uint32_t first; /* behind this node: so there is no circle */
	uint32_t count;
	const char *absent; /* why it is nowhere; NULL: it is there */
};
struct shape_enumerator {
	int64_t value;
	uint32_t name;
};
struct shape {
	struct shape_node *v; /* the first is all of it */
	size_t n;
	struct shape_enumerator *enums;
	size_t n_enums;
	char *names; /* each with its NUL; the first one is empty */
	size_t names_len;
	size_t shared; /* by how many others */
};

/* -ENOTSUP: it is shown as what it is without. -ENOMEM. */
int shape_make(const struct ctype *t, struct shape **ret);
/* The same of all types, also numbers. */
int shape_make_any(const struct ctype *t, struct shape **ret);
#define SHAPE_DYNAMIC_BYTES (SHAPE_TEXT_BYTES / 4)
struct shape *shape_copy(const struct shape *s); /* NULL: out of memory */
struct shape *shape_share(struct shape *s);	 /* freed as often, too */
void shape_free(struct shape *s);
static inline void shape_freep(struct shape **s)
{
	if (*s)
		shape_free(*s);
}
/* Everything that it points to is there, and nothing goes round in a circle. */
bool shape_is_sound(const struct shape *s);
const char *shape_name(const struct shape *s, uint32_t name);
/* A struct of its own, of `size` bytes: for values that have no type in any language. */
struct shape_word {
	const char *name;
	uint32_t offset;
	bool two_floats; /* of 8 bytes each; else 8 bytes in hex */
};
int shape_of_words(const struct shape_word *words, size_t n, uint32_t size, struct shape **ret);

/* libc++'s strings: in the first byte the lowest bit says that the text is elsewhere; else the
 * other bits are its length, and it stands behind that byte. */
#define SHAPE_SHORT_BYTES 23
static inline bool shape_is_short(uint8_t first)
{
	return !(first & 1);
}

/* What stands for a text or for some elements, in the languages that are known. */
struct text_type {
	enum shape_kind kind; /* SHAPE_STRING, SHAPE_STRING_... or SHAPE_SLICE */
	uint8_t ptr_at, len_at;
	struct ctype element;
};
bool ctype_is_text(const struct ctype *t, struct text_type *ret);

#endif
