// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's keys expose:, of apps and of services: no two of a file may have the same port. */
#include "config/expose.h"
#include "config/read.h"

struct expose_line {
	struct expose x;
	unsigned line;
	const void *list; /* whose */
};

struct expose_lines {
	struct expose_line *v;
	size_t n;
};

void expose_lines_free(struct expose_lines *l)
{
	if (l)
		free(l->v);
	free(l);
}

/* NULL: nobody before has it. */
static const struct expose_line *find_clash(const struct expose_lines *l, const struct expose *x,
					    const void *list)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].list != list && expose_clashes(&l->v[i].x, x))
			return &l->v[i];
	return NULL;
}

static int note(struct expose_lines *l, const struct expose *x, unsigned line, const void *list)
{
	struct expose_line *more = reallocarray(l->v, l->n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->v = more;
	l->v[l->n++] = (struct expose_line){*x, line, list};
	return 0;
}

static void read_item(struct reader *r, const struct node *n, void *to)
{
	struct config_reading *reading = r->context;
	const char *text = scalar_text(r, n, "HOSTPORT:PORT"), *want;
	struct expose_list *l = to;
	size_t before = l->n;
	int err = 0;

	if (!text)
		return;
	want = want_expose(text, l, &err);
	if (want) {
		reject(r, n, "%s", want);
		return;
	}
	if (!done(r, err) || !have(r, reading->exposed))
		return;
	for (size_t i = before; i < l->n; i++) {
		const struct expose_line *other = find_clash(reading->exposed, &l->v[i], l);

		if (other) {
			report_taken(r, n, "which another one exposes", other->line,
				     "a port of the host that nobody else has");
			return;
		}
		if (!done(r, note(reading->exposed, &l->v[i], n->line, l)))
			return;
	}
}

void read_expose(struct reader *r, const struct node *n, void *to)
{
	struct config_reading *reading = r->context;

	if (!reading->exposed)
		reading->exposed = calloc(1, sizeof(*reading->exposed));
	read_list(r, n, "ports such as \"8080:80\"", CONFIG_EXPOSE_MAX, read_item, to);
}
