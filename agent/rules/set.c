// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets: from text, from files, sorted, and with elements taken out. */
#include "rules/priv.h"

#include <arpa/inet.h>
#include <sys/stat.h>

#define FILE_MAX (1u << 30) /* far above what SET_ELEMENTS_MAX elements take */

void set_free(struct rule_set_def *s)
{
	free(s->name);
	free(s->file);
	free(s->prefixes);
	free(s->ports);
	free(s->flows);
	*s = (struct rule_set_def){0};
}

const char *set_kind_name(enum set_kind kind)
{
	static const char *const names[] = {
		[SET_PREFIXES] = "prefixes", [SET_PORTS] = "ports", [SET_FLOWS] = "flows"};

	return names[kind];
}

/* What holds the elements, and how large each one is. */
static void *elements_of(const struct rule_set_def *s, size_t *size)
{
	switch (s->kind) {
	case SET_PORTS:
		*size = sizeof(*s->ports);
		return s->ports;
	case SET_FLOWS:
		*size = sizeof(*s->flows);
		return s->flows;
	default:
		*size = sizeof(*s->prefixes);
		return s->prefixes;
	}
}

/* Gives the set other elements. */
static void replace_elements(struct rule_set_def *s, void *elements, size_t n)
{
	free(s->ports);
	free(s->prefixes);
	free(s->flows);
	s->ports = s->kind == SET_PORTS ? elements : NULL;
	s->flows = s->kind == SET_FLOWS ? elements : NULL;
	s->prefixes = s->kind == SET_PREFIXES ? elements : NULL;
	s->n = n;
}

int set_copy(const struct rule_set_def *from, struct rule_set_def *to)
{
	struct rule_set_def copy = {.kind = from->kind, .timed = from->timed};
	void *all, *elements;
	size_t size;

	copy.name = strdup(from->name);
	copy.file = from->file ? strdup(from->file) : NULL;
	elements = elements_of(from, &size);
	all = array_new(from->n, size);
	if (!copy.name || (from->file && !copy.file) || (from->n && !all)) {
		free(all);
		set_free(&copy);
		return -ENOMEM;
	}
	if (from->n)
		memcpy(all, elements, from->n * size);
	replace_elements(&copy, all, from->n);
	*to = copy;
	return 0;
}

bool set_eq(const struct rule_set_def *a, const struct rule_set_def *b)
{
	bool both = a->file && b->file;
	const void *elements, *others;
	size_t size;

	if (!streq(a->name, b->name) || a->kind != b->kind || a->n != b->n ||
	    a->timed != b->timed || !a->file != !b->file || (both && !streq(a->file, b->file)))
		return false;
	if (a->n == 0)
		return true;
	elements = elements_of(a, &size);
	others = elements_of(b, &size);
	return memcmp(elements, others, a->n * size) == 0; /* (without padding) */
}

/* --- order --- */

#define RADIX_MIN 256 /* fewer are sorted by comparing */

static int compare_prefixes(const void *a, const void *b)
{
	return prefix_cmp(a, b);
}

static int compare_ports(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return (x->hi > y->hi) - (x->hi < y->hi);
}

static int compare_flows(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct ax_set_flow));
}

static int compare_elements(const struct rule_set_def *a, size_t i, const struct rule_set_def *b,
			    size_t j)
{
	if (a->kind == SET_PORTS)
		return compare_ports(&a->ports[i], &b->ports[j]);
	if (a->kind == SET_FLOWS)
		return compare_flows(&a->flows[i], &b->flows[j]);
	return prefix_cmp(&a->prefixes[i], &b->prefixes[j]);
}

/* Digit 0 is the length, 1 to 16 the address from its last byte on. */
static uint8_t digit_of(const struct prefix *p, unsigned digit)
{
	return digit ? p->addr.b[sizeof(p->addr) - digit] : (uint8_t)p->len;
}

/* From the least digit up; digits that all have in common (most of IPv4's) cost one look. */
static int radix_sort(struct prefix *v, size_t n)
{
	autofree struct prefix *other = malloc(n * sizeof(*other));
	struct prefix *from = v, *to = other;

	if (!other)
		return -ENOMEM;
	for (unsigned digit = 0; digit <= sizeof(v->addr); digit++) {
		size_t start[256] = {0}, at = 0;
		struct prefix *swap;

		for (size_t i = 0; i < n; i++)
			start[digit_of(&from[i], digit)]++;
		if (start[digit_of(&from[0], digit)] == n)
			continue;
		for (unsigned i = 0; i < 256; i++) {
			size_t count = start[i];

			start[i] = at;
			at += count;
		}
		for (size_t i = 0; i < n; i++)
			to[start[digit_of(&from[i], digit)]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	if (from != v)
		memcpy(v, from, n * sizeof(*v));
	return 0;
}

bool set_is_sorted(const struct rule_set_def *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (compare_elements(s, i - 1, s, i) >= 0)
			return false;
	return true;
}

static int sort_prefixes(struct rule_set_def *s)
{
	size_t n = 1;

	if (s->n < RADIX_MIN)
		qsort(s->prefixes, s->n, sizeof(*s->prefixes), compare_prefixes);
	else if (radix_sort(s->prefixes, s->n) < 0)
		return -ENOMEM;
	for (size_t i = 1; i < s->n; i++)
		if (prefix_cmp(&s->prefixes[i], &s->prefixes[n - 1]) != 0)
			s->prefixes[n++] = s->prefixes[i];
	s->n = n;
	return 0;
}

int set_sort(struct rule_set_def *s)
{
	size_t n = 1, size;
	char *all;

	if (set_is_sorted(s))
		return 0;
	if (s->kind == SET_PREFIXES)
		return sort_prefixes(s);
	all = elements_of(s, &size);
	qsort(all, s->n, size, s->kind == SET_PORTS ? compare_ports : compare_flows);
	for (size_t i = 1; i < s->n; i++)
		if (compare_elements(s, i, s, n - 1) != 0)
			memmove(all + n++ * size, all + i * size, size);
	s->n = n;
	return 0;
}

/* --- text --- */

static bool begins_comment(char c)
{
	return c == '#' || c == ';'; /* as lists have it that others publish */
}

static bool ends_element(char c)
{
	return c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == ',' || begins_comment(c);
}

/* What most lines of large sets are: an IPv4 prefix without surprises. Returns how long it is, or
 * 0 for anything else, which prefix_parse() is to judge. */
static size_t quick_prefix(const char *s, size_t len, struct prefix *ret)
{
	uint32_t addr = 0, bits = 32;
	size_t i = 0;

	for (unsigned part = 0; part < 4; part++) {
		size_t start = i;
		uint32_t n = 0;

		while (i < len && i < start + 3 && s[i] >= '0' && s[i] <= '9')
			n = n * 10 + (uint32_t)(s[i++] - '0');
		if (i == start || n > 255 || (s[start] == '0' && i > start + 1))
			return 0;
		if (part < 3 && (i == len || s[i++] != '.'))
			return 0;
		addr = addr << 8 | n;
	}
	if (i < len && s[i] == '/') {
		size_t start = ++i;

		bits = 0;
		while (i < len && i < start + 2 && s[i] >= '0' && s[i] <= '9')
			bits = bits * 10 + (uint32_t)(s[i++] - '0');
		if (i == start || bits > 32 || (s[start] == '0' && i > start + 1))
			return 0;
	}
	if ((i < len && !ends_element(s[i])) || (bits < 32 && addr << bits))
		return 0;
	ret->addr = addr_from_v4(htonl(addr));
	ret->len = 96 + bits;
	return i;
}

struct set_text {
	const char *text;
	size_t len, at;
	unsigned line;
	struct rule_set_def new; /* what was read so far */
	struct rule_fault fault;
};

/* Skips what is between elements; returns whether there is one more. */
static bool next_element(struct set_text *t)
{
	while (t->at < t->len && ends_element(t->text[t->at])) {
		if (begins_comment(t->text[t->at]))
			while (t->at + 1 < t->len && t->text[t->at + 1] != '\n')
				t->at++;
		if (t->text[t->at++] == '\n')
			t->line++;
	}
	return t->at < t->len;
}

/* The element as a string; those that are too long for one are cut, and wrong in any case. */
static int cut_element(struct set_text *t, char *buf, size_t size)
{
	const char *start = t->text + t->at;
	size_t len = 0;

	while (t->at + len < t->len && !ends_element(start[len]))
		len++;
	t->at += len;
	if (len >= size || memchr(start, '\0', len)) {
		fault_quote(start, len, t->fault.found);
		return -EINVAL;
	}
	memcpy(buf, start, len);
	buf[len] = '\0';
	return 0;
}

union element {
	struct prefix prefix;
	struct range port;
	struct ax_set_flow flow;
};

static int parse_as(enum set_kind kind, const char *s, union element *ret, struct rule_fault *f)
{
	if (kind == SET_PORTS)
		return value_range(s, UINT16_MAX, false, &ret->port);
	return kind == SET_FLOWS ? set_flow_parse(s, &ret->flow) : value_prefix(s, &ret->prefix, f);
}

static int parse_element(struct set_text *t, union element *ret)
{
	static const char *const wants[] = {
		[SET_PREFIXES] = "a prefix such as 10.0.0.0/8 or fd00::/8, or an address",
		[SET_PORTS] = "a port of 0 to 65535, or a range such as 8000-8099",
		[SET_FLOWS] = ("a flow such as 10.0.0.1-10.0.0.2:22/tcp or "
			       "fd00::1-[fd00::2]:53/udp: who sends, to whom, to which port"),
	};
	enum set_kind kind = t->new.kind;
	size_t quick = kind != SET_PREFIXES
			       ? 0
			       : quick_prefix(t->text + t->at, t->len - t->at, &ret->prefix);
	char buf[FLOW_STRLEN];
	int r;

	if (quick) {
		t->at += quick;
		return 0;
	}
	t->fault = (struct rule_fault){.rule = SIZE_MAX};
	r = cut_element(t, buf, sizeof(buf));
	if (r == 0) {
		fault_quote(buf, strlen(buf), t->fault.found);
		r = parse_as(kind, buf, ret, &t->fault);
	}
	if (r == -EINVAL && !*t->fault.want)
		fault_set(&t->fault, NULL, "%s", wants[kind]);
	return r;
}

static int append(struct rule_set_def *s, const union element *one)
{
	int r;

	if (s->kind == SET_PORTS)
		r = array_grow(&s->ports, s->n, sizeof(*s->ports));
	else if (s->kind == SET_FLOWS)
		r = array_grow(&s->flows, s->n, sizeof(*s->flows));
	else
		r = array_grow(&s->prefixes, s->n, sizeof(*s->prefixes));
	if (r < 0)
		return r;
	if (s->kind == SET_PORTS)
		s->ports[s->n++] = one->port;
	else if (s->kind == SET_FLOWS)
		s->flows[s->n++] = one->flow;
	else
		s->prefixes[s->n++] = one->prefix;
	return 0;
}

static int read_elements(struct set_text *t)
{
	struct rule_set_def *s = &t->new;

	while (next_element(t)) {
		union element one = {0};
		int r = parse_element(t, &one);

		if (r < 0)
			return r;
		if (s->n == SET_ELEMENTS_MAX)
			return -E2BIG;
		r = append(s, &one);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Adds copies of another set's elements, unsorted. */
static int add_elements(struct rule_set_def *to, const struct rule_set_def *from)
{
	size_t size, n = to->n + from->n;
	void *old = elements_of(to, &size), *more = elements_of(from, &size);
	char *all;

	if (n > SET_ELEMENTS_MAX)
		return -E2BIG;
	if (from->n == 0)
		return 0;
	all = array_new(n, size);
	if (!all)
		return -ENOMEM;
	if (to->n)
		memcpy(all, old, to->n * size);
	memcpy(all + to->n * size, more, from->n * size);
	replace_elements(to, all, n);
	return 0;
}

int set_merge(struct rule_set_def *s, const struct rule_set_def *from)
{
	int r = add_elements(s, from);

	return r < 0 ? r : set_sort(s);
}

static int set_failed(const struct set_text *t, int code, const char *where, struct error *e)
{
	switch (code) {
	case -EINVAL:
		return error_set(e, code, "%s:%u: %s is not valid: use %s", where, t->line,
				 t->fault.found, t->fault.want);
	case -E2BIG:
		return error_set(e, code, "%s has too many elements: use at most %u for a set",
				 where, SET_ELEMENTS_MAX);
	default:
		return error_set(e, code, "there is no memory for the elements of %s", where);
	}
}

int set_parse(struct rule_set_def *s, const char *text, size_t len, const char *where,
	      struct error *e)
{
	struct set_text t = {.text = text, .len = len, .line = 1, .new = {.kind = s->kind}};
	size_t size;
	int r = read_elements(&t);

	if (r == 0)
		r = add_elements(&t.new, s);
	if (r == 0)
		r = set_sort(&t.new);
	if (r == 0)
		replace_elements(s, elements_of(&t.new, &size), t.new.n);
	else
		set_free(&t.new);
	return r < 0 ? set_failed(&t, r, where, e) : 0;
}

/* --- taking out --- */

/* Both sorted: one walk through both. */
static void remove_sorted(struct rule_set_def *s, const struct rule_set_def *gone, size_t *missing)
{
	size_t kept = 0, j = 0, size;
	char *all = elements_of(s, &size);

	*missing = 0;
	for (size_t i = 0; i < s->n; i++) {
		while (j < gone->n && compare_elements(gone, j, s, i) < 0) {
			++*missing;
			j++;
		}
		if (j < gone->n && compare_elements(gone, j, s, i) == 0)
			j++;
		else
			memmove(all + kept++ * size, all + i * size, size);
	}
	*missing += gone->n - j;
	s->n = kept;
}

int set_remove(struct rule_set_def *s, const struct rule_set_def *gone, size_t *missing)
{
	struct rule_set_def sorted = {.kind = gone->kind};
	int r;

	if (s->kind != gone->kind)
		return -EINVAL;
	r = add_elements(&sorted, gone);
	if (r == 0)
		r = set_sort(&sorted);
	if (r == 0)
		r = set_sort(s);
	if (r == 0)
		remove_sorted(s, &sorted, missing);
	set_free(&sorted);
	return r;
}

static int add_element(struct rule_set_def *s, const struct rule_set_def *from, size_t i)
{
	union element one;
	size_t size;
	const char *all = elements_of(from, &size);

	memcpy(&one, all + i * size, size);
	return append(s, &one);
}

int set_missing(const struct rule_set_def *from, const struct rule_set_def *s, size_t max,
		struct rule_set_def *ret)
{
	struct rule_set_def found = {.kind = s->kind};
	size_t k = 0;
	int r = 0;

	for (size_t i = 0; i < s->n && r == 0; i++) {
		while (k < from->n && compare_elements(from, k, s, i) < 0)
			k++;
		if (k == from->n || compare_elements(from, k, s, i) != 0)
			r = found.n == max ? -E2BIG : add_element(&found, s, i);
	}
	if (r < 0)
		set_free(&found);
	*ret = found;
	return r;
}

/* --- files --- */

static int read_set_file(struct rule_set_def *s, const char *path, struct error *e)
{
	struct rule_set_def new = {.kind = s->kind};
	autofree char *text = NULL;
	struct stat st;
	size_t size;
	int r = file_read(path, FILE_MAX, &text);

	if (r < 0)
		return error_set(e, r, "cannot read %s for the set %s: %s", path, s->name,
				 strerror(-r));
	/* what is behind a NUL byte would be missing without a word */
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size > strlen(text))
		return error_set(e, -EINVAL,
				 "%s has a NUL byte in it: use a text file with one element a line",
				 path);
	r = set_parse(&new, text, strlen(text), path, e);
	if (r == 0)
		replace_elements(s, elements_of(&new, &size), new.n);
	return r;
}

int rule_list_read_sets(struct rule_list *l, const char *dir, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < l->n_sets && r == 0; i++) {
		struct rule_set_def *s = &l->sets[i];
		autofree char *path = NULL;

		if (!s->file)
			continue;
		if (s->file[0] == '/' || !dir)
			path = strdup(s->file);
		else if (asprintf(&path, "%s/%s", dir, s->file) < 0)
			path = NULL;
		r = path ? read_set_file(s, path, e)
			 : error_set(e, -ENOMEM, "there is no memory for the set %s", s->name);
	}
	return r;
}
