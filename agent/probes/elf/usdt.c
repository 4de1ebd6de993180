// SPDX-License-Identifier: GPL-2.0-or-later
/* USDT probes: the notes that <sys/sdt.h> leaves in .note.stapsdt. */
#include <fnmatch.h>

#include "probes/elf/priv.h"
#include "probes/elf/usdt.h"
#include "base/near.h"

#define NOTE_TYPE 3

struct reader {
	struct binary *b;
	uint64_t base; /* of .stapsdt.base, where the section is now */
	bool has_base;
	struct values values;
	struct near near; /* of the names that were not asked for */
};

/* A symbol becomes a distance from the probe, or in a program with fixed addresses an address. */
static void resolve(struct reader *r, struct usdt_arg *a, uint64_t pc)
{
	uint64_t value;

	if (!*a->symbol)
		return;
	if (a->unfetchable || values_find(r->b, &r->values, a->symbol, &value) < 0 ||
	    (!streq(a->reg, "rip") && r->b->image.type != ET_EXEC)) {
		a->unfetchable = true;
		return;
	}
	a->value = (int64_t)((uint64_t)a->value + value);
	if (streq(a->reg, "rip"))
		a->value = (int64_t)((uint64_t)a->value - pc);
	*a->symbol = 0;
}

/* The next of the strings in a note; NULL: it has no end. */
static const char *next_text(const struct note *n, size_t *at)
{
	const char *p = (const char *)n->desc + *at;
	size_t len = strnlen(p, n->desc_len - *at);

	if (len == n->desc_len - *at)
		return NULL;
	*at += len + 1;
	return p;
}

static bool read_note(struct reader *r, const struct note *n, struct usdt *u, uint64_t *pc)
{
	uint64_t base, semaphore;
	size_t at = 24;

	if (n->type != NOTE_TYPE || n->name_len != 8 || memcmp(n->name, "stapsdt", 8) != 0 ||
	    n->desc_len < at)
		return false;
	*pc = get_u64(n->desc);
	base = get_u64(n->desc + 8);
	semaphore = get_u64(n->desc + 16);
	/* prelink and the like move code, but not what notes say */
	if (r->has_base && base) {
		*pc += r->base - base;
		semaphore += semaphore ? r->base - base : 0;
	}
	u->provider = next_text(n, &at);
	u->name = u->provider ? next_text(n, &at) : NULL;
	u->args_text = u->name ? next_text(n, &at) : NULL;
	if (!u->args_text || !image_offset(&r->b->image, *pc, true, &u->offset))
		return false;
	u->semaphore = 0;
	return !semaphore || image_offset(&r->b->image, semaphore, false, &u->semaphore);
}

static int walk(struct reader *r, const void *notes, size_t len, const char *provider,
		const char *name, int (*f)(void *arg, const struct usdt *u), void *arg, bool *found)
{
	struct note n;
	size_t at = 0;
	int ret = 0;

	while (!ret && note_next(notes, len, &at, &n)) {
		struct usdt u = {0};
		struct error ignored = {0};
		uint64_t pc;

		if (!read_note(r, &n, &u, &pc) || fnmatch(provider, u.provider, 0) != 0)
			continue;
		if (fnmatch(name, u.name, 0) != 0) {
			near_look(&r->near, u.name);
			continue;
		}
		/* with arguments of a form that is not known it can still be counted */
		usdt_args_parse(u.args_text, &u, &ignored);
		for (size_t i = 0; i < u.n_args; i++)
			resolve(r, &u.args[i], pc);
		*found = true;
		ret = f(arg, &u);
	}
	return ret;
}

int binary_usdts(struct binary *b, const char *provider_glob, const char *name_glob,
		 int (*f)(void *arg, const struct usdt *u), void *arg, struct error *e)
{
	const Elf64_Shdr *s = image_section(&b->image, ".note.stapsdt");
	const Elf64_Shdr *base = image_section(&b->image, ".stapsdt.base");
	struct reader reader = {.b = b, .has_base = base != NULL, .base = base ? base->sh_addr : 0};
	const char *provider = provider_glob && *provider_glob ? provider_glob : "*";
	const char *name = name_glob && *name_glob ? name_glob : "*";
	bool found = false;
	void *notes;
	size_t len;
	int r;

	if (!s || s->sh_type != SHT_NOTE)
		return error_set(e, -ENOENT, "%s has no USDT probes", b->path);
	r = image_section_load(&b->image, s, &notes, &len);
	if (!r)
		r = symbols_keep(b, notes); /* the names live as long as the file is open */
	if (r < 0)
		return error_set(e, r, "the USDT probes of %s cannot be read: %s", b->path,
				 strerror(-r));
	near_start(&reader.near, name);
	r = walk(&reader, notes, len, provider, name, f, arg, &found);
	values_free(&reader.values);
	if (!found && *reader.near.name)
		return error_set(e, -ENOENT,
				 "%s has no USDT probe %.100s:%.100s; did you mean '%s'?", b->path,
				 provider, name, reader.near.name);
	if (!found)
		return error_set(e, -ENOENT,
				 "%s has no USDT probe %.100s:%.100s (`ax trace list 'usdt:%s'` "
				 "shows what it has)",
				 b->path, provider, name, b->path);
	return r;
}
