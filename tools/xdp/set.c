/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp set add, del, replace, list */
#include "base/near.h"
#include "tools/lib/output.h"
#include "tools/xdp/common.h"
#include "tools/xdp/set_timed.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

/* 16 million prefixes as text */
#define SET_FILE_MAX ((size_t)SET_ELEMENTS_MAX * 48)

enum set_action { SET_ADD, SET_DEL, SET_REPLACE };

/* in the order of enum set_kind */
static const char *const kind_names[] = {"prefixes", "ports", "flows", NULL};
static const struct words kind_words = {.choices = kind_names};
static const struct words set_words = {.kind = WORDS_ASKED, .ask = "xdp set list", .column = 2};

struct change {
	enum set_action action;
	const char *name;
	char **words; /* elements, n_words of them */
	size_t n_words;
	const char *file; /* NULL: none */
	uint8_t *text;	  /* of the file */
	size_t len;
	int create;	 /* enum set_kind, -1: do not */
	uint32_t for_ms; /* 0: for good */
	size_t missing, let_go;
	/* what the set has then */
	enum set_kind kind;
	size_t n;
};

/* What a new set's elements are, is what the caller said or what a set of that name has. */
static int parse_elements(const struct change *ch, struct rule_set_def *s, struct error *e)
{
	const char *shown = ch->file && streq(ch->file, "-") ? "stdin" : ch->file;
	int r = 0;

	for (size_t i = 0; i < ch->n_words && !r; i++)
		r = set_parse(s, ch->words[i], strlen(ch->words[i]), "the command line", e);
	if (!r && ch->file)
		r = set_parse(s, (const char *)ch->text, ch->len, shown, e);
	if (r)
		return r;
	r = set_sort(s);
	return r ? error_set(e, r, "the elements could not be sorted: %s", strerror(-r)) : 0;
}

static int find_set(const struct rule_list *l, const char *name, struct rule_set_def **ret,
		    struct error *e)
{
	autofree const char **names = calloc(l->n_sets + 1, sizeof(*names));
	const char *near;

	*ret = rule_list_set(l, name);
	if (*ret)
		return 0;
	for (size_t i = 0; names && i < l->n_sets; i++)
		names[i] = l->sets[i].name;
	near = names ? nearest_word(name, names, l->n_sets) : NULL;
	if (near)
		return error_set(e, -ENOENT, "there is no set '%.60s': did you mean '%s'?", name,
				 near);
	return error_set(e, -ENOENT,
			 "there is no set '%.60s' (a new one is made by 'ax xdp set add' with -i "
			 "IFACE and --create KIND)",
			 name);
}

static int create_set(struct rule_list *l, const char *name, enum set_kind kind,
		      struct rule_set_def **ret, struct error *e)
{
	int r = rule_list_add_set(l, name, kind, ret);

	if (r == -EINVAL)
		return error_set(e, r, "'%.60s' is no name of a set: use letters, digits, - and _",
				 name);
	if (r == -E2BIG)
		return error_set(e, r, "there are %u sets already, as many as there can be",
				 SETS_MAX);
	return r ? error_set(e, r, "out of memory") : 0;
}

static int find_or_create(const struct change *ch, struct rule_list *l, struct rule_set_def **ret,
			  struct error *e)
{
	enum set_kind kind = (enum set_kind)ch->create;

	if (ch->create < 0)
		return find_set(l, ch->name, ret, e);
	*ret = rule_list_set(l, ch->name);
	if (*ret && (*ret)->kind != kind)
		return error_set(e, -EEXIST, "there is a set '%s' already, and it is one of %s",
				 ch->name, kind_names[(*ret)->kind]);
	return *ret ? 0 : create_set(l, ch->name, kind, ret, e);
}

/* Gives `s` those of `from` in the place of its own. */
static int replace_elements(struct rule_set_def *s, const struct rule_set_def *from)
{
	free(s->prefixes);
	free(s->ports);
	s->prefixes = NULL;
	s->ports = NULL;
	s->n = 0;
	return set_merge(s, from);
}

/* Flows do not come to stay. */
static int check_stays(const struct change *ch, const struct rule_set_def *given, struct error *e)
{
	if (given->kind != SET_FLOWS || !given->n || ch->action == SET_DEL)
		return 0;
	return error_set(
		e, -EINVAL,
		"set '%.60s' is one of flows, which are there for a time: 'ax xdp set add' "
		"with --for says for how long",
		ch->name);
}

static int edit_set(void *arg, struct rule_list *l, struct error *e)
{
	struct change *ch = arg;
	CLEANUP(set_free) struct rule_set_def given = {0};
	struct rule_set_def *s;
	int r = find_or_create(ch, l, &s, e);

	if (r)
		return r;
	given.kind = s->kind;
	r = parse_elements(ch, &given, e);
	r = r ? r : check_stays(ch, &given, e);
	if (r)
		return r;
	if (ch->action == SET_DEL)
		r = set_remove(s, &given, &ch->missing);
	else if (ch->action == SET_ADD)
		r = set_merge(s, &given);
	else
		r = replace_elements(s, &given);
	ch->kind = s->kind;
	ch->n = s->n;
	return r ? error_set(e, r, "the set could not be changed: %s", strerror(-r)) : 0;
}

static int nobody_has(const char *name, struct error *e)
{
	return error_set(e, -ENOENT,
			 "no interface has a set '%.60s': 'ax xdp set list' shows those there "
			 "are, and 'ax xdp set add' with -i IFACE and --create KIND makes one",
			 name);
}

static void put_changed(const char *ifname, const struct change *ch)
{
	bool prefixes = ch->kind == SET_PREFIXES;

	printf("%s: set %s has %zu %s", ifname, ch->name, ch->n,
	       ch->n == 1 ? (prefixes ? "prefix" : "element")
	       : prefixes ? "prefixes"
			  : "elements");
	if (ch->let_go)
		printf(", and %zu that %s there for a time %s gone", ch->let_go,
		       ch->let_go == 1 ? "was" : "were", ch->let_go == 1 ? "is" : "are");
	if (ch->missing)
		printf(" (%zu of those to remove %s not there)", ch->missing,
		       ch->missing == 1 ? "was" : "were");
	putchar('\n');
}

#define IN_PLACE_TEXT_MAX (64u << 10) /* more elements than that are not few */

/* Few elements need no new list, if all goes well; of which kind the set is, shows. */
static bool change_in_place(const struct cmd *c, const char *ifname, struct change *ch,
			    const struct xdp_load_options *o)
{
	if (ch->action == SET_REPLACE || ch->create >= 0 || ch->len > IN_PLACE_TEXT_MAX)
		return false;
	for (int kind = SET_PREFIXES; kind <= SET_PORTS; kind++) {
		CLEANUP(set_free) struct rule_set_def given = {.kind = (enum set_kind)kind};
		const struct set_change one = {ch->name, ch->action == SET_DEL, &given};
		struct error ignored = {0};
		struct set_changed done;

		if (parse_elements(ch, &given, &ignored) ||
		    !xdp_change_sets(&c->inst, ifname, &one, 1, o, &done))
			continue;
		ch->kind = given.kind;
		ch->n = done.n;
		ch->missing = done.missing;
		return true;
	}
	return false;
}

/* What is there for a time: addresses, or flows. (As no text is both, it is not asked first which
 * the set has; when it is neither, the sentence is about what the first word looks like.) */
static int parse_timed(const struct change *ch, struct rule_set_def *ret, struct error *e)
{
	const char *first = ch->n_words ? ch->words[0] : ch->text ? (const char *)ch->text : "";
	struct error ignored = {0};

	ret->kind = SET_FLOWS;
	if (!parse_elements(ch, ret, &ignored) && ret->n)
		return 0;
	set_free(ret);
	ret->kind = SET_FLOWS;
	if (strchr(first, '-') && strpbrk(first, ".:"))
		return parse_elements(ch, ret, e);
	ret->kind = SET_PREFIXES;
	return parse_elements(ch, ret, e);
}

static int hold_on(struct cmd *c, const char *ifname, const struct change *ch,
		   const struct xdp_load_options *o, struct error *e)
{
	CLEANUP(set_free) struct rule_set_def given = {0};
	int r = parse_timed(ch, &given, e);

	return r ? r : set_hold(c, ifname, ch->name, &given, ch->for_ms, o, e);
}

/* Of what is to go: what is there for a time. */
static int let_go_on(struct cmd *c, const char *ifname, struct change *ch, struct error *e)
{
	CLEANUP(set_free) struct rule_set_def given = {0};
	struct error ignored = {0};
	int r = parse_timed(ch, &given, &ignored); /* it may be of ports */

	r = r ? 0 : xdp_let_go(&c->inst, ifname, ch->name, &given, e);
	ch->let_go = r > 0 ? (size_t)r : 0;
	return r < 0 ? r : 0;
}

/* Returns 1, 0: the interface has no such set; or a negative errno. */
static int change_on(struct cmd *c, const char *ifname, bool named, struct change *ch,
		     const struct xdp_load_options *o, struct error *e)
{
	int r;

	ch->missing = 0;
	if (ch->for_ms) {
		r = hold_on(c, ifname, ch, o, e);
		return r ? r : 1;
	}
	if (!change_in_place(c, ifname, ch, o)) {
		r = xdp_edit(&c->inst, ifname, edit_set, ch, o, e);
		if (r == -ENOENT && !named) { /* unloaded, or the set gone, a moment ago */
			*e = (struct error){0};
			return 0;
		}
		if (r)
			return r;
	}
	/* last: of a list that waits for its confirmation nothing goes */
	r = ch->action == SET_DEL ? let_go_on(c, ifname, ch, e) : 0;
	if (r)
		return r;
	ch->missing -= ch->let_go < ch->missing ? ch->let_go : ch->missing;
	put_changed(ifname, ch);
	return 1;
}

static int change_set(struct cmd *c, struct change *ch, const char *ifname,
		      const struct cmd_xdp_change *o)
{
	const struct xdp_load_options options = cmd_xdp_load_options(c, o);
	CLEANUP(strv_free) struct strv names = {0};
	struct error e = {0};
	size_t changed = 0;
	int r = 0;

	if (!cmd_root(c))
		return CMD_FAILED;
	cmd_output();
	if (ch->file)
		r = cmd_xdp_read_file(ch->file, SET_FILE_MAX, &ch->text, &ch->len, &e);
	if (!r && ifname)
		r = strv_add(&names, ifname) ? error_set(&e, -ENOMEM, "out of memory") : 0;
	else if (!r)
		r = xdp_interfaces_with_set(&c->inst, ch->name, &names, &e);
	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		r = change_on(c, names.v[i], ifname, ch, &options, &e);
		changed += r > 0;
	}
	if (r >= 0)
		r = changed ? 0 : nobody_has(ch->name, &e);
	free(take_ptr(&ch->text));
	return r ? cmd_failed(c, &e) : cmd_finish(c, CMD_OK);
}

/* What the options say. */
struct args {
	const char *file, *ifname;
	int create;
	uint32_t for_ms;
	struct cmd_xdp_direction direction;
};

static int set_change(struct cmd *c, int argc, char **argv, enum set_action action)
{
	const struct cmd_xdp_change o = {0};
	struct args a = {.create = -1};
	struct change ch = {.action = action};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "say which set");
	if (argc == 1 && !a.file && action != SET_REPLACE)
		return cmd_usage(c, "give elements, or --file FILE");
	if (a.create >= 0 && !a.ifname)
		return cmd_usage(c, "--create needs -i IFACE: where to make the set");
	if (a.create >= 0 && a.for_ms)
		return cmd_usage(c, "--for is for a set that is there: --create first");
	ch.file = a.file;
	ch.create = a.create;
	ch.for_ms = a.for_ms;
	ch.name = argv[0];
	ch.words = argv + 1;
	ch.n_words = (size_t)argc - 1;
	if (a.direction.d && !a.ifname)
		return cmd_usage(c, "--direction needs -i IFACE");
	return change_set(c, &ch, a.ifname ? cmd_xdp_place(&a.direction, a.ifname) : NULL, &o);
}

static const char about_change[] =
	"Elements are prefixes (10.0.0.0/8, fd00::1), ports (22, 8000-8099) or, with --for, flows "
	"(10.0.0.1-10.0.0.2:22/tcp), as the set has them; in a file they are separated by white "
	"space, commas or lines, and # starts a "
	"comment. Without -i, the set is changed on every interface that has one of that name, in "
	"one step on each.";

static const struct opt change_opts[] = {
	{"file", 'f', OPT_STRING, "FILE", "read elements from there; '-': standard input",
	 offsetof(struct args, file), &words_file},
	{"interface", 'i', OPT_STRING, "IFACE", "change it there only",
	 offsetof(struct args, ifname), &words_interface},
	{"direction", 0, OPT_CHOICE, "DIRECTION",
	 "with -i: ingress (the default), the list for packets that come in; egress, for those "
	 "that "
	 "leave",
	 offsetof(struct args, direction.d), &cmd_xdp_direction_words},
};
/* What cannot be created cannot be emptied either: `del` has no such option. */
static const struct opt create_opts[] = {
	{"create", 0, OPT_CHOICE, "KIND",
	 "make the set if it is not there, one of prefixes, of ports or of flows; needs -i",
	 offsetof(struct args, create), &kind_words},
};

static const struct opt for_opts[] = {
	{"for", 0, OPT_SPAN, "TIME", "addresses or flows for so long only, or so much longer",
	 offsetof(struct args, for_ms), NULL},
};

static int run_add(struct cmd *c, int argc, char **argv)
{
	return set_change(c, argc, argv, SET_ADD);
}

static const struct command set_add = {
	.name = "xdp set add",
	.about = "add elements to a set",
	.run = run_add,
	.syntax =
		{
			.usage = "ax xdp set add NAME [ELEMENT]... [--file FILE] [-i IFACE] "
				 "[--for TIME]",
			.about = about_change,
			.own = {{change_opts, ARRAY_SIZE(change_opts), 0},
				{create_opts, ARRAY_SIZE(create_opts), 0},
				{for_opts, ARRAY_SIZE(for_opts), 0}},
			.args = {&set_words},
		},
};

static int run_del(struct cmd *c, int argc, char **argv)
{
	return set_change(c, argc, argv, SET_DEL);
}

static const struct command set_del = {
	.name = "xdp set del",
	.about = "remove elements from a set",
	.run = run_del,
	.syntax =
		{
			.usage = "ax xdp set del NAME [ELEMENT]... [--file FILE] [-i IFACE]",
			.about = about_change,
			.own = {{change_opts, ARRAY_SIZE(change_opts), 0}},
			.args = {&set_words},
		},
};

static int run_replace(struct cmd *c, int argc, char **argv)
{
	return set_change(c, argc, argv, SET_REPLACE);
}

static const struct command set_replace = {
	.name = "xdp set replace",
	.about = "give a set other elements",
	.run = run_replace,
	.syntax =
		{
			.usage = "ax xdp set replace NAME [ELEMENT]... [--file FILE] [-i IFACE]",
			.about = about_change,
			.own = {{change_opts, ARRAY_SIZE(change_opts), 0},
				{create_opts, ARRAY_SIZE(create_opts), 0}},
			.args = {&set_words},
		},
};

/* --- list --- */

static const struct table_column set_columns[] = {
	{.title = "INTERFACE", .keep = 9},
	{.title = "SET", .keep = 9, .min = 12},
	{.title = "KIND", .keep = 8},
	{.title = "ELEMENTS", .keep = 7, .right = true},
	{.title = "FOR A TIME", .keep = 6, .right = true},
};

static void put_element(const struct rule_set_def *s, size_t i, char *buf)
{
	if (s->kind == SET_PREFIXES)
		prefix_format(&s->prefixes[i], buf);
	else if (s->ports[i].lo == s->ports[i].hi)
		snprintf(buf, ADDR_STRLEN, "%u", s->ports[i].lo);
	else
		snprintf(buf, ADDR_STRLEN, "%u-%u", s->ports[i].lo, s->ports[i].hi);
}

static int put_set(struct xdp *x, const struct rule_set_def *s, bool as_json, struct error *e)
{
	autojson json_t *list = json_array();
	char buf[ADDR_STRLEN];
	int r;

	for (size_t i = 0; i < s->n; i++) {
		put_element(s, i, buf);
		if (!as_json)
			puts(buf);
		else if (json_array_append_new(list, json_string(buf)))
			return -ENOMEM;
	}
	r = set_put_timed(x, s->name, as_json ? list : NULL, e);
	if (as_json && !r)
		cmd_put_json(list, JSON_INDENT(2));
	return r;
}

struct listing {
	struct table table;
	json_t *json;
	const char *set; /* its elements are wanted; NULL: names of all sets */
	bool as_json;
};

static void listing_free(struct listing *g)
{
	table_free(&g->table);
	json_decref(g->json);
}

static int list_interface(struct listing *g, struct xdp *x, const char *ifname,
			  const struct rule_list *l, struct error *e)
{
	for (size_t i = 0; i < l->n_sets; i++) {
		const struct rule_set_def *s = &l->sets[i];
		size_t timed;
		int r = set_count_timed(x, s->name, &timed, e);

		if (r)
			return r;
		table_add(&g->table, ifname);
		table_add(&g->table, s->name);
		table_add(&g->table, kind_names[s->kind]);
		table_addf(&g->table, "%zu", s->n);
		table_addf(&g->table, "%zu", timed);
		if (json_array_append_new(
			    g->json, json_pack("{s:s,s:s,s:s,s:I,s:I}", "interface", ifname, "name",
					       s->name, "kind", kind_names[s->kind], "elements",
					       (json_int_t)s->n, "for-a-time", (json_int_t)timed)))
			return -ENOMEM;
	}
	return 0;
}

static int list_sets(struct cmd *c, struct listing *g, const struct strv *names, struct error *e)
{
	const struct table_style style = table_style_for(stdout);
	int r = 0;

	for (size_t i = 0; !r && i < names->n; i++) {
		autoxdp struct xdp *x = NULL;
		autolist struct rule_list l;
		struct rule_set_def *s = NULL;

		rule_list_init(&l);
		r = xdp_open(&c->inst, names->v[i], &x, e);
		r = r ? r : xdp_list(x, &l, e);
		if (!r && g->set)
			r = find_set(&l, g->set, &s, e);
		if (r)
			return r;
		r = g->set ? put_set(x, s, g->as_json, e)
			   : list_interface(g, x, names->v[i], &l, e);
	}
	if (!r && !g->set && g->as_json)
		cmd_put_json(g->json, JSON_INDENT(2));
	else if (!r && !g->set)
		r = table_print(&g->table, &style, stdout);
	return r && !e->code ? error_set(e, r, "the sets could not be printed: %s", strerror(-r))
			     : r;
}

struct list_args {
	int output;
	struct cmd_xdp_direction direction;
};

static int run_list(struct cmd *c, int argc, char **argv)
{
	CLEANUP(listing_free) struct listing g = {0};
	CLEANUP(strv_free) struct strv names = {0};
	struct list_args a = {0};
	struct error e = {0};
	int status, r;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc > 2)
		return cmd_usage(c, "give one interface and one set");
	cmd_output();
	table_init(&g.table, set_columns, ARRAY_SIZE(set_columns));
	g.as_json = a.output != 0;
	g.json = json_array();
	g.set = argc == 2 ? argv[1] : NULL;
	if (argc)
		argv[0] = (char *)cmd_xdp_place(&a.direction, argv[0]);
	r = cmd_xdp_names(c, argc ? 1 : 0, argv, &names, &e);
	r = r ? r : list_sets(c, &g, &names, &e);
	return r ? cmd_failed(c, &e) : cmd_finish(c, CMD_OK);
}

static const struct words set_there = {
	.kind = WORDS_ASKED,
	.ask = "xdp set list {}",
	.column = 2,
};

static const struct command set_show = {
	.name = "xdp set list",
	.about = "list sets, or the elements of one",
	.run = run_list,
	.syntax =
		{
			.usage = "ax xdp set list [IFACE [NAME]] [-o FORMAT]",
			.about = "Lists the sets of all interfaces or of one; with NAME the "
				 "elements of that set, one a line.",
			.own = {{output_table, 1, offsetof(struct list_args, output)},
				{cmd_xdp_direction_opts, 1, offsetof(struct list_args, direction)}},
			.args = {&words_interface, &set_there},
		},
};

static const struct command *const commands[] = {
	&set_add, &set_del, &set_replace, &set_show, NULL,
};

const struct command cmd_xdp_set = {
	.name = "xdp set",
	.about = "add to, del from, replace or list sets",
	.sub = commands,
	.example = "'add', 'del', 'replace' or 'list'",
	.syntax =
		{
			.usage = "ax xdp set add|del|replace NAME ...\n"
				 "       ax xdp set list [IFACE [NAME]]",
			.about = "Shows and changes the sets that rules name as @NAME: lists of "
				 "prefixes, of ports or of flows.",
			.command_follows = true,
		},
};
