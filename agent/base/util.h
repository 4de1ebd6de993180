/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cleanup attributes and the few helpers that every file may use; nothing else belongs here. */
#ifndef AX_BASE_UTIL_H
#define AX_BASE_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CLEANUP(f)    __attribute__((cleanup(f)))
#define PRINTF(f, a)  __attribute__((format(printf, f, a)))

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
static inline void free_ptr(void *p)
{
	free(*(void **)p);
}
static inline void close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define autoclose CLEANUP(close_fd)   /* int fd, -1 when there is none */
#define autofree  CLEANUP(free_ptr)   /* any pointer from malloc */
#define autofile  CLEANUP(close_file) /* FILE * */

/* Hands ownership out of a variable with a cleanup attribute. */
static inline int take_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

/* Whether that many numbers above the fd's are below RLIMIT_NOFILE: as the kernel gives out the
 * lowest one that is free, at least so many descriptors are left. */
bool fd_leaves(int fd, unsigned more);
static inline void *take_ptr(void *pp)
{
	void *r = *(void **)pp;

	*(void **)pp = NULL;
	return r;
}

static inline bool streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}
static inline bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/*
 * An error for a person: one sentence that says what failed and what to do about it. Functions
 * that take one fill it on failure and return a negative errno.
 */
struct error {
	int code; /* negative errno, 0: none */
	char text[512];
};
int error_set(struct error *e, int code, const char *fmt, ...) PRINTF(3, 4);

/* Monotonic and boot time in nanoseconds. */
uint64_t time_mono_ns(void);
uint64_t time_boot_ns(void);
/* Seconds since the machine was started, and the UNIX time of such a moment by the clock as it is
 * now: a clock that is set makes nothing older. */
int64_t time_boot_s(void);
int64_t time_unix_of_boot(int64_t boot_s);
int64_t time_unix_of_boot_ns(uint64_t boot_ns); /* exact, where a second more or less matters */
uint64_t time_real_ns(void);			/* since 1970 */

/* Bytes that are no printable ASCII become '?': for what strangers wrote, and people are shown. */
void text_make_printable(char *text);

/* In one write, as files of /proc, /sys and cgroupfs want it; -EIO: not all of it was taken. */
int write_whole(int fd, const char *text, size_t len);
/* Reads a whole file (at most `max` bytes) as a NUL-terminated string into *ret (malloc).
 * -EFBIG when it is longer, -ESPIPE when it is a FIFO. */
int file_read(const char *path, size_t max, char **ret);
/* Writes a string to an existing file; to a sysctl one without a newline at its end: versions of
 * Linux (6.1.176) do not take that behind a number, and one byte less was written. Returns 0 or a
 * negative errno. */
int file_write(const char *path, const char *text);
/* A file of that mode with the text: written beside as PATH.new and renamed, so that a reader, and
 * whoever starts after a crash, sees all of the former text or all of this one. Nobody else may
 * write to the directory. Returns 0, or a negative errno; then the former file stands. */
int file_replace(const char *path, unsigned mode, const char *text);

/* mkdir -p with the given mode for what is missing. */
int mkdir_parents(const char *path, unsigned mode);

#endif
