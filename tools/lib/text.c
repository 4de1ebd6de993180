/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/text.h"
#include "base/util.h"

struct char_range {
	uint32_t first, last;
};

/* Format characters that reorder or break a line (Unicode's bidi controls and separators), and
 * those that show nothing: a name must not look like another one. */
static const struct char_range unsafe_ranges[] = {
	{0x00ad, 0x00ad}, {0x061c, 0x061c}, {0x180e, 0x180e}, {0x200b, 0x200f},	  {0x2028, 0x202e},
	{0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
};

static const struct char_range zero_ranges[] = {
	{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},
	{0x064b, 0x065f}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff},
	{0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};

static const struct char_range wide_ranges[] = {
	{0x1100, 0x115f},   {0x2e80, 0x303e},	{0x3041, 0xa4cf},   {0xac00, 0xd7a3},
	{0xf900, 0xfaff},   {0xfe30, 0xfe6f},	{0xff00, 0xff60},   {0xffe0, 0xffe6},
	{0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

static bool in_ranges(uint32_t c, const struct char_range *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c >= r[i].first && c <= r[i].last)
			return true;
	return false;
}

/* Decodes one character of a NUL-terminated text; returns its length in bytes, 0 when the bytes
 * are not UTF-8 (overlong forms and surrogates included). */
static size_t decode(const char *s, uint32_t *ret)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *u = (const unsigned char *)s;
	size_t len = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	uint32_t c;

	if (len == 0 || u[0] > 0xf4)
		return 0;
	c = len == 1 ? u[0] : u[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (c < smallest[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return len;
}

/* Writes the escaped form of the character at s to out (at least 12 bytes, may be NULL); returns
 * how many bytes that takes, and in *used how many it stands for. */
static size_t escape_one(const char *s, char *out, size_t *used)
{
	static const char names[][3] = {"\\e", "\\n", "\\r", "\\t"};
	static const char codes[] = "\x1b\n\r\t";
	char buf[16];
	uint32_t c;
	size_t len = decode(s, &c);
	const char *named;

	*used = len ? len : 1;
	if (!len)
		snprintf(buf, sizeof(buf), "\\x%02x", (unsigned char)*s);
	else if (c && c < 0x20 && (named = strchr(codes, (int)c)))
		snprintf(buf, sizeof(buf), "%s", names[named - codes]);
	else if (c < 0x20 || c == 0x7f)
		snprintf(buf, sizeof(buf), "\\x%02x", c);
	else if ((c >= 0x80 && c < 0xa0) || in_ranges(c, unsafe_ranges, ARRAY_SIZE(unsafe_ranges)))
		snprintf(buf, sizeof(buf), "\\u{%x}", c);
	else
		snprintf(buf, sizeof(buf), "%.*s", (int)len, s);
	len = strlen(buf);
	if (out)
		memcpy(out, buf, len);
	return len;
}

char *text_escape(const char *s)
{
	size_t need = 1, used;
	char *r, *o;

	for (const char *p = s; *p; p += used)
		need += escape_one(p, NULL, &used);
	r = o = malloc(need);
	if (!r)
		return NULL;
	for (const char *p = s; *p; p += used)
		o += escape_one(p, o, &used);
	*o = 0;
	return r;
}

void text_put(const char *s, FILE *to)
{
	autofree char *safe = text_escape(s);

	fputs(safe ? safe : "?", to);
}

/* How many bytes at p (len > 0) are the beginning of a character that could be whole with more; 0:
 * it is whole, or none. */
static size_t unfinished(const char *p, size_t len)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t want = u[0] < 0xc2 || u[0] > 0xf4 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;

	if (len >= want)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/* Puts one character of p (NUL-terminated behind len). Returns how many bytes it took. */
static size_t put_one(const char *p, FILE *to)
{
	char out[16];
	size_t used, n;

	if (*p == '\n' || *p == '\t') {
		putc(*p, to);
		return 1;
	}
	n = *p ? escape_one(p, out, &used) : 0;
	if (!n) {
		fputs("\\x00", to);
		return 1;
	}
	fwrite(out, 1, n, to);
	return used;
}

void text_stream_put(struct text_stream *t, const char *p, size_t len, FILE *to)
{
	while (len) {
		char one[5] = {0};
		size_t have = t->n, take = len < 4 - have ? len : 4 - have, used;

		memcpy(one, t->part, have);
		memcpy(one + have, p, take);
		t->n = unfinished(one, have + take);
		if (t->n) {
			memcpy(t->part, one, t->n);
			return;
		}
		used = put_one(one, to);
		/* of several bytes that are no character after all, the first is done */
		if (used < have) {
			t->n = have - used;
			memmove(t->part, one + used, t->n);
			continue;
		}
		p += used - have;
		len -= used - have;
	}
}

void text_stream_end(struct text_stream *t, FILE *to)
{
	for (size_t i = 0; i < t->n; i++)
		fprintf(to, "\\x%02x", (unsigned char)t->part[i]);
	t->n = 0;
}

static size_t char_width(uint32_t c)
{
	if (in_ranges(c, zero_ranges, ARRAY_SIZE(zero_ranges)))
		return 0;
	return in_ranges(c, wide_ranges, ARRAY_SIZE(wide_ranges)) ? 2 : 1;
}

static size_t measure(const char *s, size_t max_width, size_t *width)
{
	const char *p = s;

	*width = 0;
	while (*p) {
		uint32_t c;
		size_t len = decode(p, &c), w = len ? char_width(c) : 1;

		if (*width + w > max_width)
			break;
		*width += w;
		p += len ? len : 1;
	}
	return (size_t)(p - s);
}

size_t text_width(const char *s)
{
	size_t width;

	measure(s, SIZE_MAX, &width);
	return width;
}

size_t text_fit(const char *s, size_t width)
{
	size_t used;

	return measure(s, width, &used);
}

char *text_age(double seconds, char *buf)
{
	unsigned long long s = seconds > 0 ? (unsigned long long)seconds : 0;

	if (s < 120)
		snprintf(buf, TEXT_SHORT, "%llus", s);
	else if (s < 2 * 3600)
		snprintf(buf, TEXT_SHORT, "%llum", s / 60);
	else if (s < 48 * 3600)
		snprintf(buf, TEXT_SHORT, "%lluh", s / 3600);
	else
		snprintf(buf, TEXT_SHORT, "%llud", s / 86400);
	return buf;
}

char *text_bytes(uint64_t bytes, char *buf)
{
	static const char units[] = "KMGTPE";
	double v = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(buf, TEXT_SHORT, "%u", (unsigned)bytes);
		return buf;
	}
	/* 1023.5 would be printed as 1024 of the smaller unit */
	for (v /= 1024; v >= 1023.5 && units[i + 1]; i++)
		v /= 1024;
	snprintf(buf, TEXT_SHORT, v < 9.95 ? "%.1f%c" : "%.0f%c", v, units[i]);
	return buf;
}

char *text_usec(uint64_t us, char *buf)
{
	if (us < 1000)
		snprintf(buf, TEXT_SHORT, "%uus", (unsigned)us);
	else if (us < 1000000)
		snprintf(buf, TEXT_SHORT, "%.1fms", (double)us / 1e3);
	else
		snprintf(buf, TEXT_SHORT, "%.1fs", (double)us / 1e6);
	return buf;
}
