// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/process/priv.h"

#define BYTES_MAX (256u << 20)

static uint64_t hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3ull;
	return h ^ h >> 32;
}

/* Where it is, or where it would be. */
static struct name *place_of(const struct names *n, const char *text)
{
	size_t i = hash(text) & (n->max - 1);

	while (n->v[i].text && !streq(n->v[i].text, text))
		i = (i + 1) & (n->max - 1);
	return &n->v[i];
}

static bool grow(struct names *n)
{
	struct names more = {.n = n->n, .max = n->max ? n->max * 2 : 256};

	if (n->n * 2 < n->max)
		return true;
	more.v = calloc(more.max, sizeof(*more.v));
	if (!more.v)
		return false;
	for (size_t i = 0; i < n->max; i++)
		if (n->v[i].text)
			*place_of(&more, n->v[i].text) = n->v[i];
	free(n->v);
	*n = more;
	return true;
}

static struct name *intern(struct names *n, const char *text)
{
	size_t len = strlen(text) + 1;
	struct name *p;

	if (!grow(n))
		return NULL;
	p = place_of(n, text);
	if (p->text)
		return p;
	if (n->bytes > BYTES_MAX && !streq(text, "[...]"))
		return intern(n, "[...]");
	p->text = strdup(text);
	if (!p->text)
		return NULL;
	n->n++;
	n->bytes += len + sizeof(*p);
	return p;
}

const char *names_intern(struct names *n, const char *text)
{
	struct name *p = intern(n, text);

	return p ? p->text : NULL;
}

const char *names_demangled(struct names *n, const char *text)
{
	struct name *p = intern(n, text);

	if (!p)
		return NULL;
	if (!p->tried)
		p->shown = demangle(p->text, false);
	if (!p->tried && p->shown)
		n->bytes += strlen(p->shown) + 1;
	p->tried = true;
	return p->shown ? p->shown : p->text;
}

void names_free(struct names *n)
{
	for (size_t i = 0; i < n->max; i++) {
		free(n->v[i].text);
		free(n->v[i].shown);
	}
	free(n->v);
	*n = (struct names){0};
}
