// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of C++ and Rust as they were written. */
#include <setjmp.h>
#include <ctype.h>
#include <libiberty/demangle.h>
#undef ARRAY_SIZE /* libiberty.h has one of its own */

#include "probes/elf/binary.h"

#define MANGLED_MAX   4096
#define DEMANGLED_MAX 4096

struct output {
	char text[DEMANGLED_MAX];
	size_t len;
	jmp_buf too_long;
};

/*
 * A mangled name of some hundred bytes can stand for terabytes of text, by back references to back
 * references. libiberty has no way to stop but to leave it; it keeps what it works with on the
 * stack.
 */
static void put(const char *s, size_t n, void *arg)
{
	struct output *o = arg;

	if (n >= sizeof(o->text) - o->len)
		longjmp(o->too_long, 1);
	if (n) /* of nothing, s may be NULL */
		memcpy(o->text + o->len, s, n);
	o->len += n;
}

static bool run(const char *name, bool arguments, struct output *o)
{
	int options = arguments ? DMGL_PARAMS | DMGL_ANSI : DMGL_ANSI;

	if (setjmp(o->too_long))
		return false;
	if (starts_with(name, "_R"))
		return rust_demangle_callback(name, 0, put, o) && o->len;
	return cplus_demangle_v3_callback(name, options, put, o) && o->len;
}

/* Rust's older names are those of C++, with a hash behind: "::h" and 16 digits. */
static void cut_rust_hash(struct output *o)
{
	const char *p = o->text + o->len - 19;

	if (o->len <= 19 || !starts_with(p, "::h"))
		return;
	for (size_t i = 3; i < 19; i++)
		if (!isxdigit((unsigned char)p[i]))
			return;
	o->len -= 19;
	o->text[o->len] = 0;
}

char *demangle(const char *name, bool arguments)
{
	autofree struct output *o = NULL;

	if (!starts_with(name, "_Z") && !starts_with(name, "_R"))
		return NULL;
	if (strnlen(name, MANGLED_MAX) == MANGLED_MAX)
		return NULL;
	o = calloc(1, sizeof(*o));
	if (!o || !run(name, arguments, o))
		return NULL;
	o->text[o->len] = 0;
	cut_rust_hash(o);
	return strdup(o->text);
}
