/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What `ax trace` writes. Records come by the hundred thousand a second, so they are put together
 * in one large buffer, without stdio, format strings or allocations.
 */
#ifndef AX_TOOLS_TRACE_SHOW_OUT_H
#define AX_TOOLS_TRACE_SHOW_OUT_H

#include "base/util.h"

#define TRACE_OUT_SIZE (1u << 20)

struct trace_out {
	int fd;
	char *buf;
	size_t n;
	int error; /* errno of a write that failed: nothing more is written */
};
/* Takes the descriptor over. */
int trace_out_open(struct trace_out *o, int fd);
/* The same with a new file, or standard output (path NULL). */
int trace_out_file(struct trace_out *o, const char *path, struct error *e);
/* The same with a file for secrets: only its owner can read it, also if it was there before. */
int trace_out_private(struct trace_out *o, const char *path, struct error *e);
/* The same with memory: trace_out_give() takes it. */
int trace_out_memory(struct trace_out *o, struct error *e);
/* Gives all that was written since the last time. Returns what `to` does, or a negative errno. */
int trace_out_give(struct trace_out *o, int (*to)(void *arg, const char *text, size_t len),
		   void *arg);
/* Also writes what is left. */
void trace_out_close(struct trace_out *o);
void trace_out_flush(struct trace_out *o);

/* Where at most `n` (some hundred) bytes may be written; trace_out_end() is told where they end. */
static inline char *trace_out_room(struct trace_out *o, size_t n)
{
	if (TRACE_OUT_SIZE - o->n < n)
		trace_out_flush(o);
	return o->buf + o->n;
}
static inline void trace_out_end(struct trace_out *o, const char *at)
{
	o->n = (size_t)(at - o->buf);
}
static inline void trace_out_char(struct trace_out *o, char c)
{
	*trace_out_room(o, 1) = c;
	o->n++;
}
void trace_out_put(struct trace_out *o, const char *s, size_t len);
void trace_out_text(struct trace_out *o, const char *s);
void trace_out_printf(struct trace_out *o, const char *fmt, ...) PRINTF(2, 3);

/* These write at least what they return: where it ends. */
#define TRACE_NUMBER_MAX 24
char *trace_write_u64(char *at, uint64_t v);
char *trace_write_s64(char *at, int64_t v);
char *trace_write_hex(char *at, uint64_t v); /* 0x1f */

void trace_out_u64(struct trace_out *o, uint64_t v);
/* A string as JSON, in plain ASCII; bytes that are no UTF-8 are taken for Latin-1. */
void trace_out_json(struct trace_out *o, const char *s, size_t len);
/* For people, made harmless for a terminal. */
void trace_out_safe(struct trace_out *o, const char *s, size_t len);
/* The same in double quotes; quotes and backslashes in it have a backslash before them, so that it
 * is seen where it ends. */
void trace_out_quoted(struct trace_out *o, const char *s, size_t len);
/* One in single quotes. */
void trace_out_quoted_char(struct trace_out *o, char c);
void trace_out_bytes(struct trace_out *o, const char *s, size_t len); /* as hexadecimal digits */

/* "1,234,567" */
#define TRACE_THOUSANDS_MAX 32
const char *trace_thousands(uint64_t v, char buf[TRACE_THOUSANDS_MAX]);

#endif
