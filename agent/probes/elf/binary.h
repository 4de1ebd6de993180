/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ELF files to put probes into: opening them, and what is at an address. Reads files as hostile
 * input: everything is bounded and checked. Functions by name and the places of probes:
 * probes/place/place.h; static probes: probes/elf/usdt.h.
 */
#ifndef AX_PROBES_ELF_BINARY_H
#define AX_PROBES_ELF_BINARY_H

#include "base/util.h"

struct binary; /* an ELF file, with its separate debug file if there is one */

/* `name`: a path; or a program of $PATH, or a library's name as ld.so finds it ("libc.so.6", "c");
 * `pid` (0: none): as that process sees it (/proc/PID/root; a name without '/' is first looked for
 * among the files that it has mapped, "" is its program). */
int binary_open(const char *name, int pid, struct binary **ret, struct error *e);
/* Before its functions are asked for: names are there, too, if that is a file of the same build. */
int binary_look_in(struct binary *b, const char *path);
void binary_close(struct binary *b);
static inline void binary_closep(struct binary **b)
{
	if (*b)
		binary_close(*b);
}
const char *binary_path(const struct binary *b); /* absolute, what the kernel is to open */
int binary_fd(const struct binary *b);		 /* as long as it is open */
bool binary_is_go(const struct binary *b);
uint16_t binary_machine(const struct binary *b); /* EM_X86_64, EM_AARCH64 ... */

struct symbol {
	const char *name;      /* as in the file */
	const char *demangled; /* NULL: it is not mangled */
	uint64_t address;      /* as the file has it */
	uint64_t offset;       /* in the file: where a uprobe goes */
	uint64_t size;	       /* 0: unknown */
	bool ifunc; /* one of the implementations that the dynamic linker chooses from (IFUNC) */
};
/* A file that is open already, which it takes over, also when it fails. `path` is for messages and,
 * behind `root` ("", "/proc/PID/root"), where its debug file is looked for. */
int binary_open_fd(int fd, const char *path, const char *root, struct binary **ret,
		   struct error *e);

/* The function that an offset of the file is in. -ENOENT. */
int binary_symbolise(struct binary *b, uint64_t offset, struct symbol *ret);

/* The function at a running program's address, when the place at offset `known` of the file is
 * known to be at `known_at` there; *address becomes the one that the file has. -ENOENT. */
int binary_symbolise_near(struct binary *b, uint64_t known, uint64_t known_at, uint64_t *address,
			  struct symbol *ret);

/* Exceptions may pass through its functions (C++): with a uretprobe on one of them they would not
 * find their handler, and the program would be terminated. */
bool binary_throws(const struct binary *b);
/* Functions like setjmp, whose return address must stay what it is. */
bool function_keeps_return(const char *name);

/* How far in memory a symbol, function or datum, plus `offset` is from the place at offset `from`
 * of the file; `symbol` NULL: what is at `offset` in the file. -ENOENT. */
int binary_distance(struct binary *b, uint64_t from, const char *symbol, int64_t offset,
		    int64_t *ret, struct error *e);

/* A name of C++ or Rust as it was written, with its arguments or without. malloc'ed; NULL: it is
 * not mangled. */
char *demangle(const char *name, bool arguments);

#endif
