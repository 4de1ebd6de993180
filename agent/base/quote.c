// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/quote.h"

#define QUOTE_MAX 60 /* bytes of the text */

/* The length in bytes of the character at s, or 0 when it is not to be printed: control
 * characters, also the two-byte ones that some terminals obey. */
static size_t printable(const char *s, size_t len)
{
	unsigned char c = (unsigned char)s[0];
	size_t width = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xc2) || width > len)
		return 0;
	/* the text of sets and of command lines need not be UTF-8 */
	for (size_t i = 1; i < width; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return 0;
	if (c > 0xf4 || (c == 0xc2 && (unsigned char)s[1] < 0xa0))
		return 0;
	return width;
}

char *quote_text(const char *text, size_t len)
{
	char buf[QUOTE_MAX * 4 + 8], *p = buf; /* \xNN takes four bytes for one */
	size_t i = 0;

	*p++ = '"';
	while (i < len && i < QUOTE_MAX) {
		size_t width = printable(text + i, len - i);

		if (width)
			p = mempcpy(p, text + i, width);
		else
			p += sprintf(p, "\\x%02x", (unsigned char)text[i]);
		i += width ? width : 1;
	}
	strcpy(p, i < len ? "...\"" : "\"");
	return strdup(buf);
}
