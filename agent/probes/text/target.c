// SPDX-License-Identifier: GPL-2.0-or-later
/* Where a probe goes: KIND:..., or the first words of a line of ftrace's. */
#include <inttypes.h>

#include "base/near.h"
#include "probes/text/priv.h"

#define EVENT_LEN_MAX 63

static const struct {
	const char *name, *brief; /* brief: bpftrace's */
	const char *form;
} kinds[] = {
	[PROBE_UPROBE] = {"uprobe", "u", "uprobe:FILE:SYMBOL[+OFFSET]"},
	[PROBE_URETPROBE] = {"uretprobe", "ur", "uretprobe:FILE:SYMBOL"},
	[PROBE_USDT] = {"usdt", "U", "usdt:FILE:[PROVIDER:]NAME"},
	[PROBE_LINE] = {"line", "line", "line:FILE:SOURCE:LINE|FUNCTION"},
	[PROBE_KPROBE] = {"kprobe", "k", "kprobe:[MODULE:]SYMBOL[+OFFSET]"},
	[PROBE_KRETPROBE] = {"kretprobe", "kr", "kretprobe:[MODULE:]SYMBOL"},
	[PROBE_TRACEPOINT] = {"tracepoint", "t", "tracepoint:CATEGORY:NAME"},
	[PROBE_PROFILE] = {"profile", "profile", "profile:HZ, as profile:99"},
};
#define KINDS_SHOWN                                                                              \
	"uprobe:, uretprobe:, usdt:, line:, kprobe:, kretprobe:, tracepoint: or profile:, or a " \
	"line of ftrace's, as p:NAME FILE:0xOFFSET"

const char *probe_kind_name(enum probe_kind k)
{
	return (size_t)k < ARRAY_SIZE(kinds) ? kinds[k].name : "unknown";
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* --- parts between colons --- */

/* A part in quotes may hold anything that is text; one without holds itself. */
static int take_part(struct probe_parser *p, const char *from, const char *end, char **ret)
{
	const char *form = kinds[p->spec->kind].form;
	int r;

	if (from == end)
		return probe_fault(p, from, "a part is missing: expected %s", form);
	p->s = from;
	if (*from != '"') {
		const char *quote = memchr(from, '"', (size_t)(end - from));

		if (quote)
			return probe_fault(p, quote, "expected quotes around the whole part in %s",
					   form);
		*ret = strndup(from, (size_t)(end - from));
		p->s = end;
		return *ret ? 0 : probe_no_memory(p);
	}
	r = probe_quoted(p, ret);
	if (r < 0)
		return r;
	for (const char *s = *ret; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			return probe_fault(p, from, "expected a name without control characters");
	if (p->s != end || !**ret)
		return probe_fault(p, from, "expected quotes around a whole part in %s", form);
	return 0;
}

/* FILE and the colon behind it; returns what comes then in p->s. */
static int take_file(struct probe_parser *p, const char *from, const char *end)
{
	const char *colon = find_colon(from, end, false);
	int r;

	if (!colon)
		return probe_fault(p, from, "a part is missing: expected %s",
				   kinds[p->spec->kind].form);
	r = take_part(p, from, colon, &p->spec->file);
	p->s = colon + 1;
	return r;
}

/* The + of +OFFSET behind a symbol, or end. */
static const char *find_offset(const char *from, const char *end)
{
	const char *s = end;

	while (s > from && s[-1] != '+' && s[-1] != '"')
		s--;
	return s > from + 1 && s[-1] == '+' && s < end && digit(*s) ? s - 1 : end;
}

static int check_return_offset(struct probe_parser *p, const char *at)
{
	if (!probe_is_return(p->spec) || !p->spec->symbol || !p->spec->offset)
		return 0;
	return probe_fault(p, at, "a return is the whole function's: expected no offset behind it");
}

/* SYMBOL[+OFF], or a number: where there is no symbol. */
static int take_symbol(struct probe_parser *p, const char *from, const char *end)
{
	const char *plus = find_offset(from, end);
	int r;

	if (from < end && digit(*from)) {
		p->s = from;
		r = probe_number(p, UINT64_MAX, &p->spec->offset);
	} else {
		r = take_part(p, from, plus, &p->spec->symbol);
		if (r == 0 && plus < end) {
			p->s = plus + 1;
			r = probe_number(p, UINT64_MAX, &p->spec->offset);
		}
	}
	if (r < 0)
		return r;
	return check_return_offset(p, plus);
}

/* (0xSEMAPHORE), as ftrace has it behind an offset in a file */
static int take_semaphore(struct probe_parser *p)
{
	const char *at = p->s;
	int r;

	if (*at != '(' || p->spec->symbol)
		return 0;
	p->s++;
	r = probe_number(p, UINT64_MAX, &p->spec->semaphore);
	if (r < 0)
		return r;
	if (*p->s != ')' || !p->spec->semaphore)
		return probe_fault(p, at, "expected the semaphore's offset, as (0x4028)");
	p->s++;
	return 0;
}

static int expect_end_of_target(struct probe_parser *p, const char *end)
{
	if (p->s == end)
		return 0;
	return probe_fault(p, p->s, "expected a blank there, behind where the probe goes: %s",
			   kinds[p->spec->kind].form);
}

/* --- what each kind has --- */

static int parse_user(struct probe_parser *p, const char *from, const char *end)
{
	int r = take_file(p, from, end);

	if (r == 0)
		r = take_symbol(p, p->s, end);
	return r < 0 ? r : take_semaphore(p);
}

static bool module_name(const char *s, const char *end)
{
	const char *from = s;

	while (s < end && (ident_char(*s) || *s == '-'))
		s++;
	return s == end && s > from;
}

static int parse_kernel(struct probe_parser *p, const char *from, const char *end)
{
	const char *colon = find_colon(from, end, false);
	int r = 0;

	if (colon) {
		if (!module_name(from, colon))
			return probe_fault(p, from, "expected a module's name before the colon, %s",
					   kinds[p->spec->kind].form);
		r = take_part(p, from, colon, &p->spec->group);
		from = colon + 1;
		if (r == 0 && digit(*from))
			return probe_fault(p, from, "expected a symbol of the module");
	}
	return r < 0 ? r : take_symbol(p, from, end);
}

static int parse_usdt(struct probe_parser *p, const char *from, const char *end)
{
	const char *colon;
	int r;

	if (!find_colon(from, end, false)) { /* all that it has */
		p->spec->symbol = strdup("*");
		return p->spec->symbol ? take_part(p, from, end, &p->spec->file)
				       : probe_no_memory(p);
	}
	r = take_file(p, from, end);
	if (r < 0)
		return r;
	from = p->s;
	colon = find_colon(from, end, false);
	if (colon) {
		r = take_part(p, from, colon, &p->spec->group);
		from = colon + 1;
	}
	if (r == 0 && find_colon(from, end, false))
		return probe_fault(p, from, "there are too many colons: expected %s",
				   kinds[PROBE_USDT].form);
	return r < 0 ? r : take_part(p, from, end, &p->spec->symbol);
}

static int parse_line(struct probe_parser *p, const char *from, const char *end)
{
	const char *colon;
	uint64_t n;
	int r;

	r = take_file(p, from, end);
	if (r < 0)
		return r;
	from = p->s;
	colon = find_colon(from, end, true);
	if (!colon)
		return probe_fault(p, from, "a part is missing: expected %s",
				   kinds[PROBE_LINE].form);
	r = take_part(p, from, colon, &p->spec->source);
	if (r < 0)
		return r;
	p->s = colon + 1;
	if (!digit(colon[1]))
		return take_part(p, colon + 1, end, &p->spec->symbol);
	r = probe_number(p, UINT32_MAX, &n);
	if (r == 0 && !n)
		return probe_fault(p, colon + 1, "lines count from 1: expected %s",
				   kinds[PROBE_LINE].form);
	p->spec->line = (uint32_t)n;
	return r;
}

static int parse_tracepoint(struct probe_parser *p, const char *from, const char *end)
{
	const char *colon = find_colon(from, end, false);
	int r;

	if (!colon)
		return probe_fault(p, from, "a part is missing: expected %s",
				   kinds[PROBE_TRACEPOINT].form);
	r = take_part(p, from, colon, &p->spec->group);
	from = colon + 1;
	if (r == 0 && find_colon(from, end, false))
		return probe_fault(p, from, "there are too many colons: expected %s",
				   kinds[PROBE_TRACEPOINT].form);
	return r < 0 ? r : take_part(p, from, end, &p->spec->symbol);
}

/* HZ, or hz:HZ as bpftrace has it. */
static int parse_profile(struct probe_parser *p, const char *from, const char *end)
{
	static const char unit[] = "hz:";
	int r;

	if (end - from > (long)strlen(unit) && starts_with(from, unit))
		from += strlen(unit);
	p->s = from;
	r = from < end && digit(*from) ? probe_number(p, PROBE_HZ_MAX, &p->spec->offset) : -EINVAL;
	if (r < 0 || p->s != end || !p->spec->offset)
		return probe_fault(p, from, "expected how often in a second, from 1 to %d: %s",
				   PROBE_HZ_MAX, kinds[PROBE_PROFILE].form);
	return 0;
}

static int parse_kind(struct probe_parser *p, const char *from, const char *end)
{
	switch (p->spec->kind) {
	case PROBE_UPROBE:
	case PROBE_URETPROBE:
		return parse_user(p, from, end);
	case PROBE_USDT:
		return parse_usdt(p, from, end);
	case PROBE_LINE:
		return parse_line(p, from, end);
	case PROBE_TRACEPOINT:
		return parse_tracepoint(p, from, end);
	case PROBE_PROFILE:
		return parse_profile(p, from, end);
	default:
		return parse_kernel(p, from, end);
	}
}

/* --- ftrace's lines --- */

static bool at_ftrace(const char *s, const char *end)
{
	const char *rest = s + 1;

	if (*s != 'p' && *s != 'r')
		return false;
	while (*s == 'r' && digit(*rest)) /* how many may be in the function at once */
		rest++;
	return rest == end || *rest == ':';
}

static int take_event(struct probe_parser *p, const char *s, char **ret)
{
	size_t len = ident_len(s);

	if (!len || len > EVENT_LEN_MAX)
		return probe_fault(
			p, s, "expected [GROUP/]NAME of letters, digits and _, at most %d each",
			EVENT_LEN_MAX);
	*ret = strndup(s, len);
	p->s = s + len;
	return *ret ? 0 : probe_no_memory(p);
}

/* [GRP/]EVENT */
static int parse_event(struct probe_parser *p, const char *s, const char *end)
{
	int r = take_event(p, s, &p->spec->name);

	if (r == 0 && *p->s == '/') {
		p->spec->name_group = take_ptr(&p->spec->name);
		r = take_event(p, p->s + 1, &p->spec->name);
	}
	if (r < 0 || p->s == end)
		return r;
	if (*p->s == ':')
		return probe_fault(p, s,
				   "expected [GROUP/]NAME and then where, as p:NAME FILE:0xOFFSET; "
				   "what argdist calls p:FILE:SYMBOL is uprobe:FILE:SYMBOL");
	return probe_fault(p, s, "expected [GROUP/]NAME of letters, digits and _");
}

static void set_kind(struct probe_spec *spec, bool kernel, bool is_return)
{
	if (kernel)
		spec->kind = is_return ? PROBE_KRETPROBE : PROBE_KPROBE;
	else
		spec->kind = is_return ? PROBE_URETPROBE : PROBE_UPROBE;
}

/* FILE:0xOFFSET, whose file may have colons */
static int parse_ftrace_offset(struct probe_parser *p, const char *from, const char *colon,
			       const char *end)
{
	int r = take_part(p, from, colon, &p->spec->file);

	if (r == 0)
		r = take_symbol(p, colon + 1, end);
	return r < 0 ? r : take_semaphore(p);
}

static int parse_where(struct probe_parser *p, const char *from, const char *end, bool is_return)
{
	const char *last = find_colon(from, end, true), *first = find_colon(from, end, false);

	if (last && digit(last[1])) {
		set_kind(p->spec, false, is_return);
		return parse_ftrace_offset(p, from, last, end);
	}
	if (first && !module_name(from, first)) {
		set_kind(p->spec, false, is_return);
		return parse_user(p, from, end);
	}
	set_kind(p->spec, true, is_return);
	if (!first && *from != '"' && memchr(from, '/', (size_t)(end - from)))
		return probe_fault(p, from, "that is a file: expected FILE:0xOFFSET");
	return parse_kernel(p, from, end);
}

static int parse_ftrace(struct probe_parser *p, const char *end)
{
	static const char suffix[] = "%return";
	const char *colon = find_colon(p->s, end, false), *where = skip_blanks(end), *stop;
	bool is_return = *p->s == 'r';
	int r = 0;

	p->ftrace = true;
	if (colon)
		r = parse_event(p, colon + 1, end);
	if (r < 0)
		return r;
	if (!*where)
		return probe_fault(
			p, where,
			"expected where the probe goes, FILE:0xOFFSET or SYMBOL[+OFFSET]");
	end = stop = word_end(where);
	if ((size_t)(end - where) >= strlen(suffix) && starts_with(end - strlen(suffix), suffix)) {
		is_return = true;
		stop -= strlen(suffix);
	}
	r = parse_where(p, where, stop, is_return);
	if (r == 0)
		r = expect_end_of_target(p, stop);
	p->s = end;
	return r;
}

/* --- the whole --- */

static int kind_fault(struct probe_parser *p, const char *s, size_t len)
{
	const char *names[ARRAY_SIZE(kinds)], *near;
	autofree char *word = strndup(s, len);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		names[i] = kinds[i].name;
	near = word && len ? nearest_word(word, names, ARRAY_SIZE(names)) : NULL;
	return probe_fault(p, s, "this is no kind of probe: expected %s%s%s%s", KINDS_SHOWN,
			   near ? "; did you mean '" : "", near ? near : "", near ? ":'?" : "");
}

static int find_kind(const char *s, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((strlen(kinds[i].name) == len && strncmp(kinds[i].name, s, len) == 0) ||
		    (strlen(kinds[i].brief) == len && strncmp(kinds[i].brief, s, len) == 0))
			return (int)i;
	return -1;
}

/* What a script does by itself. */
static bool at_self(const char *s, const char *end)
{
	static const char *const words[] = {"BEGIN", "END", "every"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i]) == (size_t)(end - s) && starts_with(s, words[i]))
			return true;
	return false;
}

static int parse_self(struct probe_parser *p, const char *end)
{
	p->spec->kind = PROBE_SELF;
	p->spec->symbol = strndup(p->s, (size_t)(end - p->s));
	p->s = end;
	return p->spec->symbol ? 0 : probe_no_memory(p);
}

int probe_target(struct probe_parser *p)
{
	const char *s = p->s, *end = word_end(s), *colon = find_colon(s, end, false);
	size_t len = (size_t)((colon ? colon : end) - s);
	int kind, r;

	if (!*s)
		return probe_fault(p, s, "expected a probe: %s", KINDS_SHOWN);
	if (p->scope && at_self(s, end))
		return parse_self(p, end);
	if (starts_with(s, "-:"))
		return probe_fault(
			p, s,
			"this is how ftrace removes a probe: expected 'ax trace rm NAME' "
			"for that");
	if (at_ftrace(s, end))
		return parse_ftrace(p, end);
	kind = find_kind(s, len);
	if (kind < 0)
		return kind_fault(p, s, len);
	p->spec->kind = (enum probe_kind)kind;
	if (!colon)
		return probe_fault(p, s, "expected %s", kinds[kind].form);
	r = parse_kind(p, colon + 1, end);
	return r < 0 ? r : expect_end_of_target(p, end);
}

/* --- writing --- */

/* Whether find_offset() would take the end of it for one. */
static bool ends_as_offset(const char *s)
{
	const char *plus = strrchr(s, '+');

	return plus && plus > s && digit(plus[1]);
}

static void write_quotable(FILE *f, const char *s, bool quote)
{
	if (quote)
		write_quoted(f, s);
	else
		fputs(s, f);
}

static void write_part(FILE *f, const char *s)
{
	write_quotable(f, s, strpbrk(s, " \":") != NULL);
}

/* A symbol or an offset. Behind a kind and a file all is the symbol's, colons too; in ftrace's
 * lines neither colons nor slashes nor a suffix may be taken for something else. */
static void write_symbol_part(FILE *f, const struct probe_spec *p)
{
	const char *s = p->symbol, *special = p->name ? " \":%/" : p->file ? " \"" : " \":";

	if (!s) {
		fprintf(f, "0x%" PRIx64, p->offset);
		if (p->semaphore)
			fprintf(f, "(0x%" PRIx64 ")", p->semaphore);
		return;
	}
	write_quotable(f, s, digit(*s) || ends_as_offset(s) || strpbrk(s, special));
	if (p->offset)
		fprintf(f, "+0x%" PRIx64, p->offset);
}

static void write_ftrace(FILE *f, const struct probe_spec *p)
{
	fprintf(f, "%c:%s%s%s ", probe_is_return(p) ? 'r' : 'p', p->name_group ? p->name_group : "",
		p->name_group ? "/" : "", p->name);
	if (p->file) { /* MODULE:SYMBOL looks the same but for quotes */
		const char *end = p->file + strlen(p->file);

		write_quotable(f, p->file,
			       strpbrk(p->file, " \":") ||
				       (p->symbol && module_name(p->file, end)));
		putc(':', f);
	} else if (p->group) {
		fprintf(f, "%s:", p->group);
	}
	write_symbol_part(f, p);
}

void write_target(FILE *f, const struct probe_spec *p)
{
	if (p->name) {
		write_ftrace(f, p);
		return;
	}
	if (p->kind == PROBE_SELF) {
		fputs(p->symbol, f);
		return;
	}
	fprintf(f, "%s:", kinds[p->kind].name);
	if (p->kind == PROBE_PROFILE) {
		fprintf(f, "%" PRIu64, p->offset);
		return;
	}
	if (p->file) {
		write_part(f, p->file);
		putc(':', f);
	}
	if (p->kind == PROBE_LINE) {
		write_part(f, p->source);
		putc(':', f);
		if (p->symbol) /* a name that begins like a number is one in quotes only */
			write_quotable(f, p->symbol,
				       strpbrk(p->symbol, " \":\t") || digit(*p->symbol));
		else
			fprintf(f, "%" PRIu32, p->line);
		return;
	}
	if (p->group) {
		write_part(f, p->group);
		putc(':', f);
	}
	if (p->kind == PROBE_USDT || p->kind == PROBE_TRACEPOINT)
		write_part(f, p->symbol);
	else
		write_symbol_part(f, p);
}
