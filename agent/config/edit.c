// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Why the result is that of the whole text. The scanner's state at the beginning of a line that is
 * a service's name depends on what stands before it, and is then "in this block mapping, outside of
 * quotes, flow and block scalars": the old text was read so. The lines that differ begin with such
 * a name, and are read with another key behind them in its column; if that key is found there as
 * one of the same mapping, then it is the same state again in which the old end was read. What
 * lines say to each other otherwise (anchors, names, addresses, rules) is asked for below, and
 * where the answer is not simple, the whole text is read.
 */
#include "config/edit.h"
#include "config/parse.h"
#include "config/read.h"

#include <ctype.h>

#define EDIT_SERVICES_MAX 256 /* each is compared with all others */

struct config_source {
	char *text;
	size_t len;
	size_t column; /* spaces before each name */
	bool balances; /* it has the section whose balancers name services, and nothing else of them
			*/
	size_t n;
	size_t at[]; /* lines of the services, and behind the last one */
};

void config_source_free(struct config_source *s)
{
	if (s)
		free(s->text);
	free(s);
}

/* --- where services stand --- */

/* Line breaks of YAML that are no '\n': lines could not be counted. */
static bool has_odd_breaks(const char *text, size_t len)
{
	return memchr(text, '\r', len) || memmem(text, len, "\xc2\x85", 2) ||
	       memmem(text, len, "\xe2\x80\xa8", 3) || memmem(text, len, "\xe2\x80\xa9", 3);
}

/* Lines are asked for in order. */
struct lines {
	const char *text;
	size_t len, at;
	unsigned line; /* of `at` */
};

static bool go_to(struct lines *l, unsigned line)
{
	while (l->line < line) {
		const char *nl = memchr(l->text + l->at, '\n', l->len - l->at);

		if (!nl)
			return false;
		l->at = (size_t)(nl + 1 - l->text);
		l->line++;
	}
	return l->line == line;
}

/* A plain word behind so many spaces. */
static bool is_name_at(const char *text, size_t len, size_t at, size_t column)
{
	return len - at > column && strspn(text + at, " ") == column &&
	       isalnum((unsigned char)text[at + column]);
}

static bool find_key(struct lines *l, const struct node *key, size_t column)
{
	return go_to(l, key->line) && key->column == column + 1 &&
	       is_name_at(l->text, l->len, l->at, column);
}

static struct config_source *source_new(const char *text, size_t len, size_t n)
{
	struct config_source *s = calloc(1, sizeof(*s) + (n + 1) * sizeof(s->at[0]));

	if (!s)
		return NULL;
	s->text = malloc(len + 1);
	if (!s->text) {
		free(s);
		return NULL;
	}
	memcpy(s->text, text, len);
	s->text[len] = '\0';
	s->len = len;
	s->n = n;
	return s;
}

/* The pair `i` of the root. */
static bool find_services(struct config_source *s, const struct node *root, size_t i)
{
	const struct node *services = &root->items[2 * i + 1];
	struct lines l = {.text = s->text, .len = s->len, .line = 1};

	s->column = services->items[0].column - 1;
	for (size_t k = 0; k < s->n; k++) {
		if (!find_key(&l, &services->items[2 * k], s->column))
			return false;
		s->at[k] = l.at;
	}
	s->at[s->n] = s->len;
	s->balances = node_key(root, "xdp");
	if (i + 1 < root->n) {
		if (!find_key(&l, &root->items[2 * (i + 1)], 0))
			return false;
		s->at[s->n] = l.at;
	}
	return true;
}

/* NULL: they cannot be told apart by their lines, or memory is out. */
static struct config_source *note(const char *text, size_t len, const struct node *root)
{
	struct config_source *s = NULL;

	if (root->kind != NODE_MAPPING || !root->block || root->column != 1 || root->anchors ||
	    has_odd_breaks(text, len))
		return NULL;
	for (size_t i = 0; i < root->n && !s; i++) {
		const struct node *key = &root->items[2 * i], *value = key + 1;

		if (key->kind != NODE_SCALAR || !streq(key->text, "services"))
			continue;
		if (value->kind != NODE_MAPPING || !value->block || !value->n ||
		    value->items[0].column < 2)
			return NULL;
		s = source_new(text, len, value->n);
		if (s && !find_services(s, root, i)) {
			config_source_free(s);
			return NULL;
		}
	}
	return s;
}

/* --- what differs --- */

static size_t same_start(const char *a, const char *b, size_t max)
{
	size_t n = 0;

	while (max - n >= 256 && memcmp(a + n, b + n, 256) == 0)
		n += 256;
	while (n < max && a[n] == b[n])
		n++;
	return n;
}

static size_t same_end(const char *a_end, const char *b_end, size_t max)
{
	size_t n = 0;

	while (max - n >= 256 && memcmp(a_end - n - 256, b_end - n - 256, 256) == 0)
		n += 256;
	while (n < max && a_end[-(ptrdiff_t)n - 1] == b_end[-(ptrdiff_t)n - 1])
		n++;
	return n;
}

struct window {
	size_t first, behind;	     /* services of the old text */
	size_t from, old_to, new_to; /* the same in bytes; both texts begin alike */
};

/* Whole services: the name of the first one is in both texts, and so is what comes behind them. */
static bool find_window(const struct config_source *was, const char *text, size_t len,
			struct window *w)
{
	size_t least = was->len < len ? was->len : len;
	size_t head = same_start(was->text, text, least), tail;

	if (head == was->len && head == len) /* then the first one is as good as another */
		head = was->at[0] + was->column + 1;
	tail = same_end(was->text + was->len, text + len, least - head);
	w->first = was->n;
	for (size_t below = 0; below < w->first;) { /* the last whose name is in the same start */
		size_t middle = (below + w->first) / 2;

		if (was->at[middle] + was->column < head)
			below = middle + 1;
		else
			w->first = middle;
	}
	if (!w->first--)
		return false;
	w->behind = w->first + 1;
	while (w->behind <= was->n && was->at[w->behind] < was->len - tail)
		w->behind++;
	if (w->behind > was->n)
		return false;
	w->from = was->at[w->first];
	w->old_to = was->at[w->behind];
	w->new_to = w->old_to - was->len + len;
	return w->new_to > w->from && text[w->new_to - 1] == '\n' &&
	       !has_odd_breaks(text + w->from, w->new_to - w->from);
}

/* --- those services alone --- */

static const char heading[] = "services:\n", ending[] = "end: ~\n";

/* The services of the window, and another one behind them that shows how they end. */
static char *window_text(const char *text, size_t len, size_t column, size_t *ret)
{
	char *s = malloc(sizeof(heading) + len + column + sizeof(ending)), *p = s;

	if (!s)
		return NULL;
	p = mempcpy(p, heading, strlen(heading));
	p = mempcpy(p, text, len);
	p = memset(p, ' ', column);
	p = mempcpy(p + column, ending, strlen(ending));
	*ret = (size_t)(p - s);
	return s;
}

static unsigned count_lines(const char *text, size_t len)
{
	unsigned n = 1;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

/* Takes the last one off again, if it stands where it was written. */
static bool take_ending(struct node *root, unsigned line, size_t column)
{
	struct node *services = root->kind == NODE_MAPPING && root->n == 1 ? &root->items[1] : NULL;
	struct node *key, *value;

	if (root->anchors || !services || services->kind != NODE_MAPPING || !services->block ||
	    services->n < 2)
		return false;
	key = &services->items[2 * (services->n - 1)];
	value = key + 1;
	if (key->kind != NODE_SCALAR || !streq(key->text, "end") || key->line != line ||
	    key->column != column + 1 || services->items[0].column != key->column ||
	    !node_is_null(value))
		return false;
	node_free(key);
	node_free(value);
	services->n--;
	return true;
}

/* Reads them as config_parse() would; where they stand goes to *ret. */
static bool read_window(const struct config_source *was, const char *text, const struct window *w,
			struct config *c, struct config_source **ret)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	autofree char *part = NULL;
	struct node root;
	size_t len;
	bool good;

	part = window_text(text + w->from, w->new_to - w->from, was->column, &len);
	*ret = NULL;
	if (!part || config_init(c))
		return false;
	good = node_parse(part, len, &root, &errs) == 0 &&
	       take_ending(&root, count_lines(part, len) - 1, was->column) &&
	       config_read_root(&root, c, &errs) == 0;
	if (good)
		*ret = note(part, len, &root);
	node_free(&root);
	if (*ret && (*ret)->n == c->n_services)
		return true;
	config_source_free(*ret);
	config_free(c);
	return false;
}

/* --- what they and the others say to each other --- */

static bool share_address(const struct ax_addr *a4, const struct ax_addr *a6,
			  const struct ax_addr *b4, const struct ax_addr *b6)
{
	return (!addr_is_zero(a4) && addr_eq(a4, b4)) || (!addr_is_zero(a6) && addr_eq(a6, b6));
}

static bool clashes(const struct config_service *s, const char *name, const struct ax_addr *ip4,
		    const struct ax_addr *ip6)
{
	return share_address(&s->ip4, &s->ip6, ip4, ip6) || streq(s->name, name);
}

static bool clashes_with_others(const struct config *old, const struct window *w,
				const struct config_service *s)
{
	for (size_t i = 0; i < old->n_services; i++)
		if ((i < w->first || i >= w->behind) &&
		    clashes(s, old->services[i].name, &old->services[i].ip4, &old->services[i].ip6))
			return true;
	for (size_t i = 0; i < old->n_apps; i++)
		if (clashes(s, old->apps[i].spec.name, &old->apps[i].spec.ip4,
			    &old->apps[i].spec.ip6))
			return true;
	return false;
}

/* Whether rules have taken something from a service of that name. */
static bool is_spoken_of(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_rules; i++)
		if (config_side_has_name(&c->rules[i].from, name) ||
		    config_side_has_name(&c->rules[i].to, name))
			return true;
	for (size_t i = 0; i < c->n_egress; i++)
		if (config_side_has_name(&c->egress[i].from, name))
			return true;
	return false;
}

static bool has_service(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_services; i++)
		if (streq(c->services[i].name, name))
			return true;
	return false;
}

static bool stand_alone(const struct config *old, const struct config_source *was,
			const struct window *w, const struct config *new)
{
	if (new->n_services > EDIT_SERVICES_MAX || w->behind - w->first > EDIT_SERVICES_MAX)
		return false;
	for (size_t i = w->first; i < w->behind; i++)
		if (is_spoken_of(old, old->services[i].name) ||
		    (was->balances && !has_service(new, old->services[i].name)))
			return false;
	for (size_t i = 0; i < new->n_services; i++) {
		const struct config_service *s = &new->services[i];

		if (s->expose.n || is_spoken_of(old, s->name) || clashes_with_others(old, w, s))
			return false;
	}
	return true;
}

/* --- the whole again --- */

/* The old one's services with the new ones in their place; their array only is new. */
static struct config_service *put_in(const struct config *old, const struct window *w,
				     const struct config *new)
{
	size_t n_behind = old->n_services - w->behind;
	struct config_service *v = malloc((w->first + new->n_services + n_behind) * sizeof(*v));

	if (!v)
		return NULL;
	memcpy(v, old->services, w->first * sizeof(*v));
	memcpy(v + w->first, new->services, new->n_services * sizeof(*v));
	memcpy(v + w->first + new->n_services, old->services + w->behind, n_behind * sizeof(*v));
	return v;
}

static struct config_source *next_source(const struct config_source *was, const char *text,
					 size_t len, const struct window *w,
					 const struct config_source *part)
{
	size_t n_behind = was->n - w->behind, n = w->first + part->n;
	struct config_source *s = source_new(text, len, n + n_behind);

	if (!s)
		return NULL;
	s->column = was->column;
	s->balances = was->balances;
	memcpy(s->at, was->at, w->first * sizeof(s->at[0]));
	for (size_t i = 0; i < part->n; i++)
		s->at[w->first + i] = part->at[i] - strlen(heading) + w->from;
	for (size_t i = 0; i <= n_behind; i++)
		s->at[n + i] = was->at[w->behind + i] - was->len + len;
	return s;
}

/* False: the whole text has to be read. */
static bool read_edit(const struct config *old, const struct config_source *was, const char *text,
		      size_t len, struct config_next *ret)
{
	struct config_source *part;
	struct window w;
	struct config new;

	if (was->n != old->n_services || !find_window(was, text, len, &w) ||
	    !read_window(was, text, &w, &new, &part))
		return false;
	*ret = (struct config_next){.config = *old,
				    .edited = true,
				    .first = w.first,
				    .n_old = w.behind - w.first,
				    .n_new = new.n_services};
	ret->config.services = stand_alone(old, was, &w, &new) ? put_in(old, &w, &new) : NULL;
	ret->config.n_services = old->n_services - ret->n_old + ret->n_new;
	ret->source = ret->config.services ? next_source(was, text, len, &w, part) : NULL;
	config_source_free(part);
	if (ret->source && pools_suffice(&ret->config)) {
		new.n_services = 0; /* moved */
		config_free(&new);
		return true;
	}
	config_source_free(ret->source);
	free(ret->config.services);
	config_free(&new);
	return false;
}

static int read_whole(const char *text, size_t len, struct config_next *ret,
		      struct config_errors *errs)
{
	struct node root;
	int r = config_init(&ret->config);

	if (r)
		return r;
	r = node_parse(text, len, &root, errs);
	r = r ? r : config_read_root(&root, &ret->config, errs);
	if (r)
		config_free(&ret->config);
	else
		ret->source = note(text, len, &root);
	node_free(&root);
	return r;
}

int config_read(const struct config *old, const struct config_source *was, const char *text,
		size_t len, struct config_next *ret, struct config_errors *errs)
{
	*errs = (struct config_errors){0};
	if (old && was && read_edit(old, was, text, len, ret))
		return 0;
	*ret = (struct config_next){0};
	return read_whole(text, len, ret, errs);
}

/* --- life --- */

static void free_services(struct config *c, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		config_service_free(&c->services[i]);
	free(c->services);
	*c = (struct config){0}; /* the rest is the other one's */
}

void config_next_free(struct config_next *n)
{
	if (n->edited)
		free_services(&n->config, n->first, n->n_new);
	else
		config_free(&n->config);
	config_source_free(n->source);
	*n = (struct config_next){0};
}

void config_next_holds(const struct config_next *n, struct config *old)
{
	if (n->edited)
		free_services(old, n->first, n->n_old);
	else
		config_free(old);
}
