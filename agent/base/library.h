/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared libraries that few commands need and each `ax run` would pay for: opened by who needs one.
 * A static ax cannot open any. */
#ifndef AX_BASE_LIBRARY_H
#define AX_BASE_LIBRARY_H

#include "base/util.h"

struct library {
	const char *file;    /* "libcurl.so.4" */
	const char *name;    /* "libcurl" */
	const char *package; /* Debian's that has it */
	const char *does;    /* begins the sentence of who has none: "... by the library NAME" */
};

struct library_function {
	const char *name;
	size_t at; /* of the pointer to it in the caller's struct of pointers */
};

/* Opens the library for as long as the process lives and puts the n functions' addresses where the
 * struct at 'pointers' has them. -ENOTSUP with a sentence: there is none, it lacks a function (then
 * nothing of it stays, but what was put into 'pointers' is not to be used), or ax is static. */
int library_open(const struct library *l, const struct library_function *functions, size_t n,
		 void *pointers, struct error *e);

#endif
