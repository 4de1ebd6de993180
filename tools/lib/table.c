/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <sys/ioctl.h>

#include "tools/lib/table.h"
#include "tools/lib/text.h"
#include "base/util.h"

#define GAP 2 /* spaces between two columns */

struct table_cell {
	char *text; /* escaped */
	size_t width;
	enum table_colour colour;
};

void table_init(struct table *t, const struct table_column *columns, size_t n_columns)
{
	*t = (struct table){.columns = columns, .n_columns = n_columns};
}

void table_free(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i].text);
	free(t->cells);
	t->cells = NULL;
	t->n = t->size = 0;
}

void table_add(struct table *t, const char *text)
{
	struct table_cell cell = {.text = text_escape(text && *text ? text : "-")};

	if (t->n == t->size) {
		size_t size = t->size ? t->size * 2 : 64;
		struct table_cell *more = reallocarray(t->cells, size, sizeof(*more));

		if (more) {
			t->cells = more;
			t->size = size;
		}
	}
	if (!cell.text || t->n == t->size || t->failed) {
		free(cell.text);
		t->failed = true;
		return;
	}
	cell.width = text_width(cell.text);
	t->cells[t->n++] = cell;
}

void table_addf(struct table *t, const char *fmt, ...)
{
	autofree char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		t->failed = true;
		return;
	}
	table_add(t, text);
}

void table_colour(struct table *t, enum table_colour colour)
{
	if (t->n && !t->failed)
		t->cells[t->n - 1].colour = colour;
}

const char *table_colour_on(enum table_colour colour)
{
	static const char *const on[] = {
		[COLOUR_NONE] = "",	     [COLOUR_BOLD] = "\033[1m",
		[COLOUR_DIM] = "\033[2m",    [COLOUR_RED] = "\033[31m",
		[COLOUR_GREEN] = "\033[32m", [COLOUR_YELLOW] = "\033[33m",
	};

	return on[colour];
}

const char *table_colour_off(void)
{
	return "\033[0m";
}

/* --- widths --- */

struct layout {
	size_t width[64]; /* 0: the column is not shown */
	size_t n;
};

static size_t least_width(const struct table_column *c, size_t natural)
{
	size_t least = strlen(c->title);

	if (!c->min)
		return natural;
	if (c->min > least)
		least = c->min;
	return least < natural ? least : natural;
}

static void natural_widths(const struct table *t, const struct table_style *s, struct layout *l)
{
	for (size_t c = 0; c < l->n; c++)
		l->width[c] = !t->columns[c].wide || s->wide
				      ? (s->headers ? strlen(t->columns[c].title) : 1)
				      : 0;
	for (size_t i = 0; i < t->n; i++) {
		size_t c = i % t->n_columns;

		if (l->width[c] && t->cells[i].width > l->width[c])
			l->width[c] = t->cells[i].width;
	}
}

static size_t total_width(const struct layout *l)
{
	size_t total = 0;

	for (size_t c = 0; c < l->n; c++)
		if (l->width[c])
			total += l->width[c] + (total ? GAP : 0);
	return total;
}

/* The shown column that matters least among those that `shown` still names; l->n: none. */
static size_t least_kept(const struct table *t, const struct layout *l, const bool *done)
{
	size_t found = l->n;

	for (size_t c = 0; c < l->n; c++) {
		if (!l->width[c] || done[c])
			continue;
		/* of two equal ones the right one goes first */
		if (found == l->n || t->columns[c].keep <= t->columns[found].keep)
			found = c;
	}
	return found;
}

/* Cuts columns, the least important first, as far as they may be. True: it fits. */
static bool shrink(const struct table *t, struct layout *l, size_t limit)
{
	bool done[ARRAY_SIZE(l->width)] = {false};

	for (;;) {
		size_t total = total_width(l), c, room, over;

		if (total <= limit)
			return true;
		c = least_kept(t, l, done);
		if (c == l->n)
			return false;
		done[c] = true;
		over = total - limit;
		room = l->width[c] - least_width(&t->columns[c], l->width[c]);
		l->width[c] -= room < over ? room : over;
	}
}

static void fit(const struct table *t, const struct table_style *s, struct layout *l)
{
	static const bool none[ARRAY_SIZE(l->width)];
	struct layout tried = *l;
	size_t shown = 0;

	if (!s->width)
		return;
	for (size_t c = 0; c < l->n; c++)
		shown += l->width[c] != 0;
	while (!shrink(t, &tried, s->width)) {
		if (s->wide || shown == 1)
			break;
		/* with one column less there may be no need to cut the others */
		l->width[least_kept(t, l, none)] = 0;
		tried = *l;
		shown--;
	}
	*l = tried;
	if (shown == 1 && total_width(l) > s->width)
		l->width[least_kept(t, l, none)] = s->width;
}

/* --- printing --- */

static void put_spaces(size_t n, FILE *to)
{
	while (n--)
		putc(' ', to);
}

static void put_cell(const char *text, size_t width, const char *colour, FILE *to)
{
	if (colour && *colour)
		fputs(colour, to);
	if (text_width(text) <= width)
		fputs(text, to);
	else
		fprintf(to, "%.*s…", (int)text_fit(text, width - 1), text);
	if (colour && *colour)
		fputs(table_colour_off(), to);
}

static void put_row(const struct table *t, const struct layout *l, const struct table_cell *row,
		    const struct table_style *s, FILE *to)
{
	size_t gap =
		0; /* spaces that the next cell needs before it, so that no line ends in some */

	for (size_t c = 0; c < l->n; c++) {
		const char *text = row ? row[c].text : t->columns[c].title;
		enum table_colour colour = row ? row[c].colour : COLOUR_BOLD;
		size_t width = l->width[c], used, pad;

		if (!width)
			continue;
		used = text_width(text);
		if (used > width) /* a wide character may leave one column of it free */
			used = text_width(text) - text_width(text + text_fit(text, width - 1)) + 1;
		pad = width - used;
		put_spaces(gap + (t->columns[c].right ? pad : 0), to);
		put_cell(text, width, s->colour ? table_colour_on(colour) : NULL, to);
		gap = GAP + (t->columns[c].right ? 0 : pad);
	}
	putc('\n', to);
}

int table_print(const struct table *t, const struct table_style *style, FILE *to)
{
	struct layout l = {.n = t->n_columns};

	if (t->failed || t->n_columns > ARRAY_SIZE(l.width))
		return -ENOMEM;
	natural_widths(t, style, &l);
	fit(t, style, &l);
	if (style->headers)
		put_row(t, &l, NULL, style, to);
	for (size_t i = 0; i + t->n_columns <= t->n; i += t->n_columns)
		put_row(t, &l, t->cells + i, style, to);
	return 0;
}

struct table_style table_style_for(FILE *to)
{
	struct table_style s = {.headers = true};
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize ws;

	if (!isatty(fileno(to)))
		return s;
	s.width = ioctl(fileno(to), TIOCGWINSZ, &ws) == 0 && ws.ws_col ? ws.ws_col : 80;
	/* https://no-color.org: set and not empty */
	s.colour = !(no_color && *no_color) && term && !streq(term, "dumb");
	return s;
}
