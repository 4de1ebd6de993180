/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <time.h>

#include "base/near.h"
#include "tools/lib/cmd.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

struct noun {
	const char *name;
	const char *aliases[4]; /* besides every unambiguous abbreviation */
	const char *keys[4];	/* members by which one can be asked for */
	const struct table_column *columns;
	size_t n_columns;
	void (*row)(struct table *t, const json_t *item, const json_t *reply);
	void (*name_of)(const json_t *item, char *buf, size_t size); /* for -o name */
};

/* --- pieces of cells --- */

/* Collects text of any length; a failure leaves text NULL. */
struct builder {
	FILE *f;
	char *text;
	size_t size;
};

static bool builder_open(struct builder *b)
{
	*b = (struct builder){0};
	b->f = open_memstream(&b->text, &b->size);
	return b->f != NULL;
}

static void builder_add_to(struct table *t, struct builder *b)
{
	if (fclose(b->f) || !b->text)
		t->failed = true;
	else
		table_add(t, b->text);
	free(b->text);
}

static void add_int(struct table *t, const json_t *j, const char *key)
{
	if (json_is_integer(json_object_get(j, key)))
		table_addf(t, "%lld", member_int(j, key));
	else
		table_add(t, NULL);
}

static void add_age(struct table *t, const json_t *j)
{
	double since = member_number(j, "since");
	char buf[TEXT_SHORT];

	table_add(t, since > 0 ? text_age((double)time(NULL) - since, buf) : NULL);
}

static void add_bool(struct table *t, const json_t *j, const char *key)
{
	table_add(t, member_true(j, key) ? "yes" : "no");
}

static void add_wait(struct table *t, const json_t *j)
{
	long long ms = member_int(j, "wait_ms");

	if (ms > 0 && ms % 1000 == 0)
		table_addf(t, "%llds", ms / 1000);
	else if (ms > 0)
		table_addf(t, "%lldms", ms);
	else
		table_add(t, NULL);
}

/* IPv4 if there is one: the table's one column for addresses is never empty without need. */
static void add_ip(struct table *t, const json_t *j)
{
	const char *ip4 = member_string(j, "ip4");

	table_add(t, ip4 ? ip4 : member_string(j, "ip6"));
}

/* Labels are an object, or text as in a specification. */
static void add_labels(struct table *t, json_t *labels)
{
	struct builder b;
	const char *key;
	json_t *value;
	bool first = true;

	if (!json_is_object(labels)) {
		table_add(t, json_string_value(labels));
		return;
	}
	if (!builder_open(&b)) {
		t->failed = true;
		return;
	}
	json_object_foreach (labels, key, value) {
		const char *text = json_string_value(value);

		fprintf(b.f, "%s%s=%s", first ? "" : ",", key, text ? text : "");
		first = false;
	}
	builder_add_to(t, &b);
}

static bool is_plain(const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "%+,-./:=@_^~{}[]";

	return *s && s[strspn(s, plain)] == 0;
}

/* As one would type it: what a shell would change is quoted. */
static void put_word(const char *s, FILE *to)
{
	if (is_plain(s)) {
		fputs(s, to);
		return;
	}
	putc('\'', to);
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", to);
		else
			putc(*s, to);
	}
	putc('\'', to);
}

static void add_command(struct table *t, const json_t *command)
{
	struct builder b;
	json_t *item;
	size_t i;

	if (!builder_open(&b)) {
		t->failed = true;
		return;
	}
	json_array_foreach (command, i, item) {
		const char *word = json_string_value(item);

		if (i)
			putc(' ', b.f);
		put_word(word ? word : "?", b.f);
	}
	builder_add_to(t, &b);
}

static enum table_colour state_colour(const char *state)
{
	if (!state)
		return COLOUR_NONE;
	if (streq(state, "running") || streq(state, "established"))
		return COLOUR_GREEN;
	if (streq(state, "starting") || streq(state, "stopping"))
		return COLOUR_YELLOW;
	return COLOUR_DIM;
}

static void add_state(struct table *t, const json_t *j)
{
	const char *state = member_string(j, "state");

	table_add(t, state);
	table_colour(t, state_colour(state));
}

static void name_member(const json_t *item, char *buf, size_t size)
{
	const char *name = member_string(item, "name");

	snprintf(buf, size, "%s", name ? name : "");
}

/* --- apps --- */

static const struct table_column app_columns[] = {
	{.title = "NAME", .keep = 20, .min = 12},
	{.title = "ID", .keep = 15},
	{.title = "IP", .keep = 19},
	{.title = "IP6", .keep = 9, .wide = true},
	{.title = "NET", .keep = 14},
	{.title = "STATE", .keep = 18},
	{.title = "PID", .keep = 13},
	{.title = "AGE", .keep = 12},
	{.title = "LABELS", .keep = 7, .min = 12, .wide = true},
	{.title = "USER", .keep = 6, .wide = true},
	{.title = "SERVICE", .keep = 6, .min = 8, .wide = true},
	{.title = "EGRESS", .keep = 5, .wide = true},
	{.title = "RESTART", .keep = 4, .wide = true},
	{.title = "RESTARTS", .keep = 4, .wide = true},
	{.title = "WAIT", .keep = 4, .wide = true},
	{.title = "COMMAND", .keep = 11, .min = 16},
};

static void app_row(struct table *t, const json_t *j, const json_t *reply)
{
	(void)reply;
	table_add(t, member_string(j, "name"));
	add_int(t, j, "id");
	add_ip(t, j);
	table_add(t, member_string(j, "ip6"));
	table_add(t, member_string(j, "net"));
	add_state(t, j);
	if (member_int(j, "pid") > 0)
		add_int(t, j, "pid");
	else
		table_add(t, NULL);
	add_age(t, j);
	add_labels(t, json_object_get(j, "labels"));
	table_add(t, member_string(j, "user"));
	table_add(t, member_string(j, "service"));
	add_bool(t, j, "egress");
	table_add(t, member_string(j, "restart"));
	add_int(t, j, "restarts");
	add_wait(t, j);
	add_command(t, json_object_get(j, "command"));
}

/* --- services --- */

static const struct table_column service_columns[] = {
	{.title = "NAME", .keep = 20, .min = 12},
	{.title = "ID", .keep = 3, .wide = true},
	{.title = "IP", .keep = 19},
	{.title = "IP6", .keep = 9, .wide = true},
	{.title = "PORTS", .keep = 15, .min = 12},
	{.title = "STRATEGY", .keep = 10},
	{.title = "KIND", .keep = 4, .wide = true},
	{.title = "WAIT", .keep = 4, .wide = true},
	{.title = "BACKENDS", .keep = 12, .min = 20},
};

static void add_ports(struct table *t, const json_t *ports)
{
	struct builder b;
	json_t *item;
	size_t i;

	if (!json_array_size(ports)) {
		table_add(t, "all");
		return;
	}
	if (!builder_open(&b)) {
		t->failed = true;
		return;
	}
	json_array_foreach (ports, i, item) {
		const char *proto = member_string(item, "proto");
		long long port = member_int(item, "port"), target = member_int(item, "target");

		fprintf(b.f, "%s%lld", i ? "," : "", port);
		if (target && target != port)
			fprintf(b.f, "->%lld", target);
		fprintf(b.f, "/%s", proto ? proto : "?");
	}
	builder_add_to(t, &b);
}

static void add_backends(struct table *t, const json_t *backends)
{
	struct builder b;
	char buf[256];
	json_t *item;
	size_t i;

	if (!json_array_size(backends)) {
		table_add(t, "none");
		table_colour(t, COLOUR_YELLOW);
		return;
	}
	if (!builder_open(&b)) {
		t->failed = true;
		return;
	}
	json_array_foreach (backends, i, item) {
		const char *state = member_string(item, "state");
		long long weight = member_int(item, "weight");

		fprintf(b.f, "%s%s", i ? ", " : "",
			cmd_party(member_string(item, "app"), member_string(item, "address"),
				  member_int(item, "port"), buf, sizeof(buf)));
		if (weight > 1)
			fprintf(b.f, " (weight %lld)", weight);
		if (state)
			fprintf(b.f, " %s", state);
	}
	builder_add_to(t, &b);
}

static void service_row(struct table *t, const json_t *j, const json_t *reply)
{
	(void)reply;
	table_add(t, member_string(j, "name"));
	add_int(t, j, "id");
	add_ip(t, j);
	table_add(t, member_string(j, "ip6"));
	add_ports(t, json_object_get(j, "ports"));
	table_add(t, member_string(j, "strategy"));
	table_add(t, member_true(j, "declared") ? "declared" : "shared");
	add_wait(t, j);
	add_backends(t, json_object_get(j, "backends"));
}

/* --- servers --- */

static const struct table_column server_columns[] = {
	{.title = "APP", .keep = 20, .min = 12},
	{.title = "APP-ID", .keep = 5, .wide = true},
	{.title = "PROTO", .keep = 15},
	{.title = "ADDRESS", .keep = 18, .min = 16},
	{.title = "PORT", .keep = 19},
	{.title = "SOCKETS", .keep = 4, .wide = true},
	{.title = "AGE", .keep = 10},
};

static void server_row(struct table *t, const json_t *j, const json_t *reply)
{
	(void)reply;
	table_add(t, member_string(j, "app"));
	add_int(t, j, "app_id");
	table_add(t, member_string(j, "proto"));
	table_add(t, member_string(j, "address"));
	add_int(t, j, "port");
	add_int(t, j, "sockets");
	add_age(t, j);
}

static void server_name(const json_t *j, char *buf, size_t size)
{
	cmd_party(NULL, member_string(j, "address"), member_int(j, "port"), buf, size);
}

/* --- conns --- */

static const struct table_column conn_columns[] = {
	{.title = "PROTO", .keep = 8},
	{.title = "STATE", .keep = 10},
	{.title = "LOCAL", .keep = 20, .min = 18},
	{.title = "REMOTE", .keep = 19, .min = 18},
	{.title = "SERVICE", .keep = 9, .min = 10},
	{.title = "SENT", .keep = 5, .right = true, .wide = true},
	{.title = "RECEIVED", .keep = 5, .right = true, .wide = true},
	{.title = "RTT", .keep = 4, .right = true, .wide = true},
};

static void conn_row(struct table *t, const json_t *j, const json_t *reply)
{
	long long rtt = member_int(j, "rtt_us");
	char buf[256], text[TEXT_SHORT];

	(void)reply;
	table_add(t, member_string(j, "proto"));
	add_state(t, j);
	table_add(t, cmd_party(member_string(j, "local_name"), member_string(j, "local"),
			       member_int(j, "local_port"), buf, sizeof(buf)));
	table_add(t, cmd_party(member_string(j, "remote_name"), member_string(j, "remote"),
			       member_int(j, "remote_port"), buf, sizeof(buf)));
	table_add(t, cmd_party(member_string(j, "service"), member_string(j, "service_address"),
			       member_int(j, "service_port"), buf, sizeof(buf)));
	table_add(t, text_bytes((uint64_t)member_int(j, "sent"), text));
	table_add(t, text_bytes((uint64_t)member_int(j, "received"), text));
	table_add(t, rtt > 0 ? text_usec((uint64_t)rtt, text) : NULL);
}

static void conn_name(const json_t *j, char *buf, size_t size)
{
	char local[128], remote[128];

	cmd_party(NULL, member_string(j, "local"), member_int(j, "local_port"), local,
		  sizeof(local));
	cmd_party(NULL, member_string(j, "remote"), member_int(j, "remote_port"), remote,
		  sizeof(remote));
	snprintf(buf, size, "%s-%s", local, remote);
}

/* --- names --- */

static const struct table_column name_columns[] = {
	{.title = "NAME", .keep = 20, .min = 12},
	{.title = "FULL-NAME", .keep = 5, .wide = true},
	{.title = "IP", .keep = 19},
	{.title = "IP6", .keep = 10},
	{.title = "KIND", .keep = 15},
};

static void name_row(struct table *t, const json_t *j, const json_t *reply)
{
	const char *name = member_string(j, "name"), *domain = member_string(reply, "domain");

	table_add(t, name);
	table_addf(t, "%s%s%s", name ? name : "", name && domain ? "." : "", domain ? domain : "");
	table_add(t, member_string(j, "ip4"));
	table_add(t, member_string(j, "ip6"));
	table_add(t, member_string(j, "kind"));
}

/* --- interfaces --- */

static const struct table_column interface_columns[] = {
	{.title = "NAME", .keep = 20, .min = 12}, {.title = "STATE", .keep = 19},
	{.title = "RULES", .keep = 10},		  {.title = "TRIGGERS", .keep = 9},
	{.title = "WHY", .keep = 5, .min = 20},
};

static void interface_row(struct table *t, const json_t *j, const json_t *reply)
{
	const char *state = member_string(j, "state"), *why = member_string(j, "why");

	(void)reply;
	table_add(t, member_string(j, "name"));
	table_add(t, state);
	if (!state || !streq(state, "active"))
		table_colour(t, COLOUR_YELLOW);
	add_int(t, j, "rules");
	table_add(t, member_true(j, "triggers") ? "yes" : "no");
	table_add(t, why ? why : "-");
}

/* --- the command --- */

static const struct noun nouns[] = {
	{"apps",
	 {"app"},
	 {"name", "id"},
	 app_columns,
	 ARRAY_SIZE(app_columns),
	 app_row,
	 name_member},
	{"services",
	 {"service", "svc", "svcs"},
	 {"name", "id"},
	 service_columns,
	 ARRAY_SIZE(service_columns),
	 service_row,
	 name_member},
	{"servers",
	 {"server"},
	 {"app", "app_id"},
	 server_columns,
	 ARRAY_SIZE(server_columns),
	 server_row,
	 server_name},
	{"conns",
	 {"conn", "connection", "connections"},
	 {"local_name", "remote_name", "service"},
	 conn_columns,
	 ARRAY_SIZE(conn_columns),
	 conn_row,
	 conn_name},
	{"names",
	 {"name"},
	 {"name"},
	 name_columns,
	 ARRAY_SIZE(name_columns),
	 name_row,
	 name_member},
	{"interfaces",
	 {"interface", "iface", "ifaces"},
	 {"name"},
	 interface_columns,
	 ARRAY_SIZE(interface_columns),
	 interface_row,
	 name_member},
};

static const char noun_list[] = "apps, services, servers, conns, names or interfaces";

static bool noun_matches(const struct noun *n, const char *word)
{
	if (starts_with(n->name, word))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(n->aliases) && n->aliases[i]; i++)
		if (starts_with(n->aliases[i], word))
			return true;
	return false;
}

static const struct noun *find_noun(const struct cmd *c, const char *word)
{
	const char *words[ARRAY_SIZE(nouns)], *near;
	const struct noun *found = NULL, *second = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(nouns); i++) {
		words[i] = nouns[i].name;
		if (!*word || !noun_matches(&nouns[i], word))
			continue;
		second = found;
		found = &nouns[i];
	}
	if (found && !second)
		return found;
	near = nearest_word(word, words, ARRAY_SIZE(words));
	if (second)
		cmd_usage(c, "'%.60s' may mean %s or %s: write more of it", word, second->name,
			  found->name);
	else if (near)
		cmd_usage(c, "there are no '%.60s' to list: did you mean '%s'?", word, near);
	else
		cmd_usage(c, "there are no '%.60s' to list: give %s", word, noun_list);
	return NULL;
}

static bool item_matches(const struct noun *n, const json_t *item, const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(n->keys) && n->keys[i]; i++) {
		const json_t *value = json_object_get(item, n->keys[i]);
		char number[24];

		if (json_is_string(value) && streq(json_string_value(value), word))
			return true;
		if (!json_is_integer(value))
			continue;
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
		if (streq(number, word))
			return true;
	}
	return false;
}

/* Leaves only what one of the words names. Each of them must name something. */
static int select_items(const struct noun *noun, json_t *list, int n, char **words, struct error *e)
{
	autofree bool *found = calloc((size_t)n + 1, sizeof(*found));

	if (!found)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = json_array_size(list); n && i-- > 0;) {
		bool wanted = false;

		for (int w = 0; w < n; w++)
			if (item_matches(noun, json_array_get(list, i), words[w]))
				found[w] = wanted = true;
		if (!wanted)
			json_array_remove(list, i);
	}
	for (int w = 0; w < n; w++)
		if (!found[w])
			return error_set(e, -ENOENT, "there is no '%.60s' among the %s", words[w],
					 noun->name);
	return 0;
}

static int print_table(const struct noun *noun, const json_t *list, const json_t *reply,
		       struct table_style style)
{
	CLEANUP(table_free) struct table t;
	json_t *item;
	size_t i;

	table_init(&t, noun->columns, noun->n_columns);
	json_array_foreach (list, i, item)
		noun->row(&t, item, reply);
	return table_print(&t, &style, stdout);
}

static int print(const struct noun *noun, const json_t *reply, int output, bool no_headers)
{
	const json_t *list = json_object_get(reply, noun->name);
	struct table_style style = table_style_for(stdout);
	char buf[256];
	json_t *item;
	size_t i;

	if (output == OUTPUT_JSON) {
		cmd_put_json(list, JSON_INDENT(2));
		return 0;
	}
	if (output == OUTPUT_NAME) {
		json_array_foreach (list, i, item) {
			noun->name_of(item, buf, sizeof(buf));
			text_put(buf, stdout);
			putchar('\n');
		}
		return 0;
	}
	style.wide = output == OUTPUT_WIDE;
	style.headers = !no_headers;
	return print_table(noun, list, reply, style);
}

struct get_options {
	const struct noun *noun;
	int output;
	bool no_headers;
	int n_words; /* only what they name is wanted; 0: everything */
	char **words;
};

static int get(struct cmd *c, const struct get_options *o)
{
	const char *what = o->noun->name;
	autojson json_t *reply = NULL;
	struct error e = {0};
	json_t *list;

	cmd_output();
	if (cmd_ask(c, json_pack("{s:s,s:s}", "op", "get", "what", what), &reply, &e))
		return cmd_failed(c, &e);
	list = json_object_get(reply, what);
	if (!json_is_array(list)) {
		error_set(&e, -EPROTO,
			  "the agent's answer has no list of %s: are ax and the agent of the same "
			  "version?",
			  what);
		return cmd_failed(c, &e);
	}
	if (select_items(o->noun, list, o->n_words, o->words, &e))
		return cmd_failed(c, &e);
	if (print(o->noun, reply, o->output, o->no_headers)) {
		error_set(&e, -ENOMEM, "out of memory");
		return cmd_failed(c, &e);
	}
	return cmd_finish(c, CMD_OK);
}

int cmd_get(struct cmd *c, int argc, char **argv)
{
	/* in the order of enum output_format */
	static const char *const outputs[] = {"table", "wide", "json", "name", NULL};
	struct get_options o = {.output = OUTPUT_TABLE};
	int status;
	const struct opt opts[] = {
		{"output", 'o', OPT_CHOICE, "FORMAT",
		 "table (the default), wide (every column), json, or name (one a line)", &o.output,
		 outputs},
		{"no-headers", 0, OPT_FLAG, NULL, "leave the line of column titles out",
		 &o.no_headers, NULL},
	};
	const struct opt_syntax s = {
		.usage = "ax get apps|services|servers|conns|names|interfaces [options] [NAME]...",
		.about = "Lists what the agent knows: everything, or what belongs to the NAMEs "
			 "(ids will do). A table fits the terminal: what matters least is cut or "
			 "left out; into a pipe or a file it is printed in full. Singular forms "
			 "and abbreviations like 'app' and 'svc' are understood.",
		.own = {opts, ARRAY_SIZE(opts)},
	};

	if (!cmd_begin(c, &s, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "say what to list: %s", noun_list);
	o.noun = find_noun(c, argv[0]);
	o.n_words = argc - 1;
	o.words = argv + 1;
	return o.noun ? get(c, &o) : CMD_USAGE;
}
