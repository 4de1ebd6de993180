// SPDX-License-Identifier: GPL-2.0-or-later
/* Payloads as text: "at 0 0x17 0x03 at 5 0x01/0x0f". */
#include "rules/field.h"
#include "rules/priv.h"

#include <ctype.h>

bool payload_goes_on(const char *word)
{
	return isdigit((unsigned char)word[0]) || streq(word, "at");
}

/* Payloads that have names. */
static const struct {
	const char *name;
	struct rule_payload p;
} named[] = {
	/* the form of the header and the fixed bit, RFC 9000, 17.2; without the latter it may be
	 * RTP, see RFC 9443 */
	{"quic-long", {.n = 1, .piece = {{.len = 1, .value = {0xc0}, .mask = {0xc0}}}}},
};

static const struct rule_payload *find_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if (streq(named[i].name, name))
			return &named[i].p;
	return NULL;
}

static const char *name_of(const struct rule_payload *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if (!memcmp(&named[i].p, p, sizeof(*p)))
			return named[i].name;
	return NULL;
}

/* "0x" and one or two digits, up to `end`. */
static int parse_hex(const char *s, const char *end, uint8_t *ret)
{
	unsigned n = 0;

	if (end - s < 3 || end - s > 4 || s[0] != '0' || s[1] != 'x')
		return -EINVAL;
	for (s += 2; s < end; s++) {
		char c = (char)tolower((unsigned char)*s);

		if (!isxdigit((unsigned char)c))
			return -EINVAL;
		n = n * 16 + (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret = (uint8_t)n;
	return 0;
}

/* "0x17" or "0x10/0xf0" */
static int parse_byte(const char *word, uint8_t *value, uint8_t *mask, struct rule_fault *f)
{
	const char *end = word + strlen(word), *slash = strchr(word, '/');

	*mask = 0xff;
	if (parse_hex(word, slash ? slash : end, value) < 0 ||
	    (slash && parse_hex(slash + 1, end, mask) < 0))
		return -EINVAL;
	if (*value & ~*mask)
		return fault_set(f, NULL, "a byte within its mask: 0x%02x/0x%02x", *value & *mask,
				 *mask);
	return 0;
}

static int begin_piece(struct rule_payload *p, const char *at, struct rule_fault *f)
{
	uint64_t offset;

	if (!at || value_number(at, UINT32_MAX, &offset) < 0)
		return -EINVAL;
	if (offset >= AX_PAYLOAD_REACH)
		return fault_set(f, NULL, "an offset of 0 to %d", AX_PAYLOAD_REACH - 1);
	if (p->n == AX_PAYLOAD_PIECES)
		return fault_set(f, NULL, "at most %d times at; a further rule takes more",
				 AX_PAYLOAD_PIECES);
	p->piece[p->n++].at = (uint8_t)offset;
	return 0;
}

static int add_byte(struct rule_payload *p, const char *word, struct rule_fault *f)
{
	struct payload_piece *last = p->n ? &p->piece[p->n - 1] : NULL;
	uint8_t value, mask;
	int r = last ? parse_byte(word, &value, &mask, f) : -EINVAL;

	if (r < 0)
		return r;
	if (last->len == AX_PAYLOAD_BYTES)
		return fault_set(f, NULL, "at most %d bytes behind each at", AX_PAYLOAD_BYTES);
	if (last->at + last->len == AX_PAYLOAD_REACH)
		return fault_set(f, NULL, "bytes of the first %d of the payload", AX_PAYLOAD_REACH);
	last->value[last->len] = value;
	last->mask[last->len++] = mask;
	return 0;
}

static int read_words(char *rest, struct rule_payload *p, struct rule_fault *f)
{
	const char *word;
	int r = 0;

	while (r == 0 && (word = strsep(&rest, " "))) {
		if (!streq(word, "at"))
			r = add_byte(p, word, f);
		else if (p->n && !p->piece[p->n - 1].len)
			r = -EINVAL;
		else
			r = begin_piece(p, strsep(&rest, " "), f);
	}
	if (r == 0 && (!p->n || !p->piece[p->n - 1].len))
		r = -EINVAL;
	return r;
}

int payload_add(const struct rule_field *row, struct condition *c, const char *item,
		struct rule_fault *f)
{
	autofree char *copy = strdup(item + strspn(item, " "));
	struct rule_payload p = {0};
	const struct rule_payload *known = copy ? find_named(copy) : NULL;
	int r = known ? 0 : copy ? read_words(copy, &p, f) : -ENOMEM;

	(void)row;
	if (known)
		p = *known;
	if (r == 0)
		r = array_grow(&c->items, c->n, sizeof(p));
	if (r == 0)
		c->payloads[c->n++] = p;
	return r;
}

static void write_piece(FILE *f, const struct payload_piece *p)
{
	fprintf(f, "at %u", p->at);
	for (unsigned i = 0; i < p->len; i++) {
		fprintf(f, " 0x%02x", p->value[i]);
		if (p->mask[i] != 0xff)
			fprintf(f, "/0x%02x", p->mask[i]);
	}
}

/* Behind a comma "at" begins no word of its own. */
void payload_write(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct rule_payload *p = item;
	const char *name = name_of(p);

	(void)row;
	if (to->n++)
		putc(',', to->f);
	if (name) {
		fputs(name, to->f);
		return;
	}
	for (unsigned i = 0; i < p->n; i++) {
		if (i)
			putc(' ', to->f);
		write_piece(to->f, &p->piece[i]);
	}
}
