// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/frame_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "packet/text.h"

void put_in(struct frame_bytes *f, size_t at, const uint8_t *hex, size_t n, bool insert)
{
	if (at > f->len || (!insert && at + n > f->len) || f->len + n > FRAME_MAX)
		fail_msg("offset %zu is not in the frame", at);
	if (insert) {
		memmove(f->b + at + n, f->b + at, f->len - at);
		f->len += n;
	}
	memcpy(f->b + at, hex, n);
}

static void put_be16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

void fix_length(struct frame_bytes *f)
{
	if (f->b[14] >> 4 == 4)
		put_be16(f->b + 16, f->len - 14);
	else
		put_be16(f->b + 18, f->len - 54);
}

static void fix_sum(struct frame_bytes *f)
{
	size_t header = (size_t)(f->b[14] & 15) * 4;
	uint32_t sum = 0;

	put_be16(f->b + 24, 0);
	for (size_t i = 14; i < 14 + header; i += 2)
		sum += (uint32_t)f->b[i] << 8 | f->b[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(f->b + 24, ~((sum & 0xffff) + (sum >> 16)) & 0xffff);
}

void change_frame(struct frame_bytes *f, const char *word)
{
	struct error e = {0};
	char *rest;

	if (streq(word, "len")) {
		fix_length(f);
	} else if (streq(word, "sum")) {
		fix_sum(f);
	} else if (starts_with(word, "cut")) {
		size_t n = strtoul(word + 3, NULL, 10);

		assert_true(n <= f->len);
		f->len = n;
	} else if (starts_with(word, "pad")) {
		size_t n = strtoul(word + 3, NULL, 10);

		assert_true(f->len + n <= FRAME_MAX);
		memset(f->b + f->len, 0, n);
		f->len += n;
	} else {
		size_t at = strtoul(word, &rest, 10), n = 0;
		autofree uint8_t *hex = NULL;

		if ((*rest != '=' && *rest != '+') || packet_parse_hex(rest + 1, &hex, &n, &e) < 0)
			fail_msg("change '%s' of a frame: %s", word, e.text);
		put_in(f, at, hex, n, *rest == '+');
	}
}

void read_frame(const char *spec, struct frame_bytes *f)
{
	autofree char *text = strdup(spec);
	autofree uint8_t *frame = NULL;
	struct error e = {0};
	char *changes, *word, *save;
	size_t len;
	int r;

	assert_non_null(text);
	changes = strchr(text, '|');
	if (changes)
		*changes++ = '\0';
	r = starts_with(text, "hex ") ? packet_parse_hex(text + 4, &frame, &len, &e)
				      : packet_text_parse(text, &frame, &len, &e);
	if (r < 0)
		fail_msg("%s: %s", spec, e.text);
	assert_true(len <= FRAME_MAX);
	memcpy(f->b, frame, len);
	f->len = len;
	for (word = changes ? strtok_r(changes, " ", &save) : NULL; word;
	     word = strtok_r(NULL, " ", &save))
		change_frame(f, word);
}

void assert_same_frame(const char *spec, const struct frame_bytes *f,
		       const struct frame_bytes *expected)
{
	size_t at = 0;

	while (at < f->len && at < expected->len && f->b[at] == expected->b[at])
		at++;
	if (at == f->len && at == expected->len)
		return;
	for (size_t i = 0; i < f->len && i < 160; i++)
		print_error("%02x%s", f->b[i], i % 16 == 15 ? "\n" : " ");
	fail_msg("%s: %zu bytes, not %zu, byte %zu is %02x, not %02x", spec, f->len, expected->len,
		 at, at < f->len ? f->b[at] : 0, at < expected->len ? expected->b[at] : 0);
}
