/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files about processes share with each other. */
#ifndef AX_PROBES_PROCESS_PRIV_H
#define AX_PROBES_PROCESS_PRIV_H

#include <sys/stat.h>
#include <time.h>

#include "probes/process/process.h"
#include "probes/elf/symbols.h"
#include "probes/unwind/unwind.h"

/* Each string once; they live as long as the struct processes. */
struct name {
	char *text;
	char *shown; /* demangled; NULL: it is not mangled, or was not yet asked for */
	bool tried;
};
struct names {
	struct name *v; /* a hash table with open addressing; a power of two */
	size_t n, max;
	size_t bytes; /* of all texts: processes choose how long theirs are, and how many */
};
/* NULL: out of memory. "[...]", when there are too many. */
const char *names_intern(struct names *n, const char *text);
/* As it was written in C++ or Rust, without arguments. */
const char *names_demangled(struct names *n, const char *text);
void names_free(struct names *n);

/* A file that some process has mapped. */
struct mapped {
	struct mapped *next, *next_alike; /* of all, and of those with the same hash */
	char *path;			  /* as maps says it */
	uint64_t number;		  /* no other one had it, nor will have it; not 0 */
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
	unsigned refs; /* processes that have it mapped */
	int fd;	       /* until the binary has it; -1: none */
	bool counted;  /* among those that are open */
	bool tried;
	struct binary *binary; /* once a name was asked for */
	uint64_t cost;	       /* bytes that its tables take, about */
};
#define FILES_BUCKETS 4096 /* a power of two: a process may have mapped 65530 */
struct files {
	struct mapped *first;
	struct mapped *buckets[FILES_BUCKETS];
	size_t n, n_fds;
	size_t looked_at; /* n when it was last looked at what no process has any more */
	uint64_t last_number;
	uint64_t cost; /* of all binaries that are open */
};
/* The file that a process has mapped at an address: one that is known, or a new one with one
 * reference more. NULL: it is none that can be read. */
struct mapped *files_get(struct files *f, int pid, uint64_t from, uint64_t to, const char *path);
/* The [vdso], which is the same in all processes. */
struct mapped *files_vdso(struct files *f);
void files_put(struct files *f, struct mapped *m);
void files_free(struct files *f);
/* -ENOENT: no function is there. */
int mapped_symbolise(struct files *f, struct mapped *m, uint64_t offset, struct symbol *ret);

/* NULL: it cannot be read, or is no program. */
const struct image *mapped_image(struct files *f, struct mapped *m);

/* Code at an address of a process. */
struct code_place {
	struct mapped *file; /* NULL: in none */
	uint64_t offset;     /* in the file */
};
/* -ENOENT: there is no code. */
int process_code(struct processes *p, int pid, uint64_t address, struct code_place *ret);

/* stack.c: what files say of instructions that were asked about. */
struct rows;
struct rows **processes_rows(struct processes *p);
struct files *processes_files(struct processes *p);
void rows_free(struct rows *r);

/* What a just-in-time compiler writes about its code: /tmp/perf-PID.map. */
struct jit {
	int fd; /* -1: there is none */
	off_t at;
	struct jit_code *v; /* sorted by address */
	size_t n, max;
	char *names;
	size_t names_len, names_max;
};
#define JIT_NONE ((struct jit){.fd = -1})
void jit_open(struct jit *j, int pid);
void jit_free(struct jit *j);
/* What was written since the last time. */
void jit_read(struct jit *j);
/* Bytes that were read, and those that it takes. */
uint64_t jit_cost(const struct jit *j);
/* NULL: none. */
const char *jit_find(const struct jit *j, uint64_t address, uint64_t *offset);

/* The kernel's functions, sorted. */
struct kernel_names {
	bool loaded;
	uint64_t loaded_at;
	uint64_t base; /* of the addresses */
	struct kernel_name *v;
	size_t n, max;
	char *names;
	size_t names_len, names_max;
	char (*modules)[56];
	size_t n_modules;
};
int kernel_names_find(struct kernel_names *k, uint64_t address, const char **name,
		      const char **module, uint64_t *offset);
void kernel_names_free(struct kernel_names *k);

#endif
