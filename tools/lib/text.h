/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text for a terminal: what comes from apps is made harmless, widths are counted in columns. */
#ifndef AX_TOOLS_LIB_TEXT_H
#define AX_TOOLS_LIB_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A copy (malloc) in which every byte or character that could move the cursor, change colours or
 * reorder the line stands as \n, \t, \e, \xNN or \u{NNNN}: control characters, invalid UTF-8, and
 * Unicode's direction and line marks. NULL only when memory is out.
 */
char *text_escape(const char *s);
/* Writes the escaped form. */
void text_put(const char *s, FILE *to);

/* A stream of bytes that comes in pieces: escaped but for its newlines and tabs. Zero at first. */
struct text_stream {
	char part[4]; /* of a character whose rest is still to come */
	size_t n;
};
void text_stream_put(struct text_stream *t, const char *p, size_t len, FILE *to);
/* Nothing comes any more (or not soon): what is left of a character stands for itself. */
void text_stream_end(struct text_stream *t, FILE *to);

/* The number of terminal columns that a text takes. */
size_t text_width(const char *s);
/* The number of bytes of the longest beginning that takes at most `width` columns. */
size_t text_fit(const char *s, size_t width);

#define TEXT_SHORT 32
/* "42s", "7m", "5h", "3d" into buf (TEXT_SHORT); negative ones count as 0. Returns buf. */
char *text_age(double seconds, char *buf);
/* "512", "1.5K", "20M" (powers of 1024). */
char *text_bytes(uint64_t bytes, char *buf);
/* "850us", "1.2ms", "3.4s". */
char *text_usec(uint64_t us, char *buf);

#endif
