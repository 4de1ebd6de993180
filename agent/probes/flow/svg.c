// SPDX-License-Identifier: GPL-2.0-or-later
/* The tree of calls as a picture: each call as wide as it took long, below the one that made it; of
 * samples, above it, as flame graphs are. */
#include <inttypes.h>

#include "probes/flow/graph.h"

#define WIDTH	 1200.0
#define MARGIN	 10.0
#define ROW	 18.0
#define TOP	 56.0
#define LEAST	 0.2 /* what is narrower is left out */
#define LETTER	 6.6 /* of the monospaced font at 11 pixels */
#define ROWS_MAX 512

struct drawing {
	const struct flow_tree *t;
	const struct flow_picture *p;
	const struct flow_names *names;
	FILE *f;
	double *x;    /* where each node begins, in nanoseconds */
	uint64_t all; /* of the root */
	uint64_t n_left_out;
	uint32_t rows;
};

static void put_xml(FILE *f, const char *c, size_t len)
{
	switch (*c) {
	case '<':
		fputs("&lt;", f);
		break;
	case '>':
		fputs("&gt;", f);
		break;
	case '&':
		fputs("&amp;", f);
		break;
	case '"':
		fputs("&quot;", f);
		break;
	default:
		/* no XML document may have these two, even escaped */
		if (len == 3 && !memcmp(c, "\xef\xbf", 2) && (unsigned char)c[2] >= 0xbe)
			putc('?', f);
		else
			fwrite(c, 1, len, f);
	}
}

/* A name has the same colour in each picture; those of the kernel are of another kind. */
static void put_colour(const char *name, FILE *f)
{
	size_t len = strlen(name);
	bool kernel = len > 4 && streq(name + len - 4, "_[k]");
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	if (kernel)
		fprintf(f, "rgb(%u,%u,%u)", 110 + (h & 0xff) % 50, 150 + (h >> 8 & 0xff) % 60,
			200 + (h >> 16 & 0xff) % 50);
	else
		fprintf(f, "rgb(%u,%u,%u)", 205 + (h & 0xff) % 50, 120 + (h >> 8 & 0xff) % 100,
			40 + (h >> 16 & 0xff) % 50);
}

/* As many characters as there is room for; ".." stands for the others. */
static void put_clipped(FILE *f, const char *name, double width)
{
	size_t room = (size_t)(width / LETTER), n = 0, end = 0;
	char buf[256];

	for (const char *c = name; *c; c++)
		n += ((unsigned char)*c & 0xc0) != 0x80;
	if (n <= room) {
		flow_put_name(name, put_xml, f);
		return;
	}
	if (room < 4)
		return;
	for (n = room - 2; name[end] && end < sizeof(buf) - 1; end++) {
		if (((unsigned char)name[end] & 0xc0) != 0x80 && !n--)
			break;
		buf[end] = name[end];
	}
	buf[end] = '\0';
	flow_put_name(buf, put_xml, f);
	fputs("..", f);
}

static void put_box(struct drawing *d, const char *name, double at, double width, double y)
{
	FILE *f = d->f;

	fprintf(f, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"2\" fill=\"",
		at, y, width, ROW - 1);
	put_colour(name, f);
	fputs("\"/>", f);
	if (width < 4 * LETTER)
		return;
	fprintf(f, "<text x=\"%.2f\" y=\"%.1f\">", at + 3, y + ROW - 5.5);
	put_clipped(f, name, width - 6);
	fputs("</text>", f);
}

static void put_us(FILE *f, uint64_t ns)
{
	fprintf(f, "%" PRIu64 ".%" PRIu64 " us", ns / 1000, ns % 1000 / 100);
}

static void put_amount(const struct drawing *d, uint64_t v)
{
	if (d->p->amount == FLOW_SAMPLES)
		fprintf(d->f, "%" PRIu64 " sample%s", v, v == 1 ? "" : "s");
	else
		put_us(d->f, v);
}

static double row_of(const struct drawing *d, const struct flow_node *n)
{
	bool downward = d->p->amount == FLOW_CALLS;

	return TOP + ROW * (downward ? n->depth - 1 : d->rows - n->depth);
}

static void put_node(struct drawing *d, uint32_t i, double at, double width)
{
	const struct flow_node *n = &d->t->v[i];
	const char *name = flow_name(d->names, n->function);

	fputs("<g><title>", d->f);
	flow_put_name(name, put_xml, d->f);
	fputs(" (", d->f);
	if (d->p->amount == FLOW_CALLS)
		fprintf(d->f, "%" PRIu64 " call%s, ", n->calls, n->calls == 1 ? "" : "s");
	fputs("total ", d->f);
	put_amount(d, n->total_ns);
	fputs(", self ", d->f);
	put_amount(d, n->self_ns);
	fprintf(d->f, ", %.2f%% of all)</title>",
		d->all ? 100.0 * (double)n->total_ns / (double)d->all : 0);
	put_box(d, name, at, width, row_of(d, n));
	fputs("</g>\n", d->f);
}

/* Children begin where the node begins, one after the other, the oldest first, which is the last of
 * the list. Parents come before their children. */
static void place_children(struct drawing *d, uint32_t i)
{
	double x = d->x[i];

	for (uint32_t c = d->t->v[i].child; c; c = d->t->v[c].next)
		x += (double)d->t->v[c].total_ns;
	for (uint32_t c = d->t->v[i].child; c; c = d->t->v[c].next) {
		x -= (double)d->t->v[c].total_ns;
		d->x[c] = x;
	}
}

static void draw(struct drawing *d)
{
	double scale = d->all ? (WIDTH - 2 * MARGIN) / (double)d->all : 0;

	place_children(d, 0);
	for (uint32_t i = 1; i < d->t->n; i++) {
		const struct flow_node *n = &d->t->v[i];
		double width = (double)n->total_ns * scale;

		place_children(d, i);
		if (width < LEAST || n->depth > ROWS_MAX)
			d->n_left_out++;
		else
			put_node(d, i, MARGIN + d->x[i] * scale, width);
	}
}

static void put_head(struct drawing *d)
{
	static const char *const about[] = {
		[FLOW_CALLS] = "; a call's width is its time, with what it calls below it",
		[FLOW_SAMPLES] = "; a function's width is how often it was on a call stack, with "
				 "what it called above it",
		[FLOW_WAITS] = "; a function's width is how long was waited in it, with what it "
			       "called above it",
	};
	double height = TOP + ROW * d->rows + 28;
	FILE *f = d->f;

	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
		"xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 "
		"%.0f %.0f\">\n",
		WIDTH, height, WIDTH, height);
	fputs("<style>text{font:11px monospace;fill:#000}.t{font:16px "
	      "sans-serif}.s{font:11px sans-serif;fill:#555}g:hover "
	      "rect{stroke:#000;stroke-width:1}</style>\n<rect width=\"100%\" height=\"100%\" "
	      "fill=\"#fff\"/>\n<text class=\"t\" x=\"10\" y=\"24\">",
	      f);
	flow_put_name(d->p->title, put_xml, f);
	fputs("</text>\n<text class=\"s\" x=\"10\" y=\"42\">total ", f);
	put_amount(d, d->all);
	fputs(about[d->p->amount], f);
	fputs("</text>\n", f);
}

int flow_write_svg(const struct flow_tree *t, const struct flow_names *names,
		   const struct flow_picture *p, FILE *f)
{
	struct drawing d = {.t = t, .p = p, .names = names, .f = f};
	autofree double *x = calloc(t->n, sizeof(*x));

	if (!x)
		return -ENOMEM;
	d.x = x;
	for (size_t i = 1; i < t->n; i++) {
		if (t->v[i].depth == 1)
			d.all += t->v[i].total_ns;
		if (t->v[i].depth > d.rows)
			d.rows = t->v[i].depth;
	}
	d.rows = d.rows < ROWS_MAX ? d.rows : ROWS_MAX;
	put_head(&d);
	draw(&d);
	fprintf(f, "<text class=\"s\" x=\"10\" y=\"%.0f\">", TOP + ROW * d.rows + 18);
	if (d.n_left_out)
		fprintf(f, "%" PRIu64 " ways of calling are too short to be seen", d.n_left_out);
	fputs("</text>\n</svg>\n", f);
	return ferror(f) ? -EIO : 0;
}
