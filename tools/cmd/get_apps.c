/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax get apps */
#include "tools/cmd/get.h"
#include "tools/lib/text.h"

/* Labels are an object, or text as in a specification. */
static void cell_labels(struct table *t, const struct cell *c)
{
	json_t *labels = json_object_get(c->item, c->key);
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

static void cell_command(struct table *t, const struct cell *c)
{
	struct builder b;
	json_t *item;
	size_t i;

	if (!builder_open(&b)) {
		t->failed = true;
		return;
	}
	json_array_foreach (json_object_get(c->item, c->key), i, item) {
		const char *word = json_string_value(item);

		if (i)
			putc(' ', b.f);
		put_word(word ? word : "?", b.f);
	}
	builder_add_to(t, &b);
}

static void cell_pid(struct table *t, const struct cell *c)
{
	if (member_int(c->item, c->key) > 0)
		cell_int(t, c);
	else
		table_add(t, NULL);
}

/* The list, or whether it may go anywhere. */
static void cell_egress(struct table *t, const struct cell *c)
{
	const char *to = json_string_value(json_object_get(c->item, "egress_to"));

	if (to && *to && !streq(to, "all"))
		table_add(t, to);
	else
		cell_yes(t, c);
}

/* "512M cpus=1.5 pids=100": what there is of it. */
static void cell_limits(struct table *t, const struct cell *c)
{
	long long memory = member_int(c->item, "memory"), cpus = member_int(c->item, "cpus_milli"),
		  pids = member_int(c->item, "pids");
	char text[96] = "", size[TEXT_SHORT];
	size_t n = 0;

	if (memory)
		n += (size_t)snprintf(text, sizeof(text), "memory=%s ",
				      text_bytes((uint64_t)memory, size));
	if (cpus)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "cpus=%g ", (double)cpus / 1000);
	if (pids)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "pids=%lld ", pids);
	if (n)
		text[n - 1] = 0;
	table_add(t, text);
}

static const struct column columns[] = {
	{{.title = "NAME", .keep = 20, .min = 12}, cell_text, "name"},
	{{.title = "NODE", .keep = 19, .min = 8}, cell_text, "node"},
	{{.title = "ID", .keep = 15}, cell_int, "id"},
	{{.title = "IP", .keep = 19}, cell_ip, NULL},
	{{.title = "IP6", .keep = 9, .wide = true}, cell_text, "ip6"},
	{{.title = "NET", .keep = 14}, cell_text, "net"},
	{{.title = "STATE", .keep = 18}, cell_state, "state"},
	{{.title = "PID", .keep = 13}, cell_pid, "pid"},
	{{.title = "AGE", .keep = 12}, cell_age, "since"},
	{{.title = "LABELS", .keep = 7, .min = 12, .wide = true}, cell_labels, "labels"},
	{{.title = "USER", .keep = 6, .wide = true}, cell_text, "user"},
	{{.title = "SERVICE", .keep = 6, .min = 8, .wide = true}, cell_text, "service"},
	{{.title = "EGRESS", .keep = 5, .wide = true}, cell_egress, "egress"},
	{{.title = "RESTART", .keep = 4, .wide = true}, cell_text, "restart"},
	{{.title = "RESTARTS", .keep = 4, .wide = true}, cell_int, "restarts"},
	{{.title = "WAIT", .keep = 4, .wide = true}, cell_wait, "wait_ms"},
	{{.title = "LIMITS", .keep = 3, .min = 8, .wide = true}, cell_limits, NULL},
	{{.title = "VOLUMES", .keep = 2, .min = 8, .wide = true}, cell_command, "volumes"},
	{{.title = "READ-ONLY", .keep = 2, .wide = true}, cell_yes, "read_only"},
	{{.title = "EXPOSED", .keep = 6, .min = 12, .wide = true}, cell_list, "expose"},
	{{.title = "COMMAND", .keep = 11, .min = 16}, cell_command, "command"},
};

const struct noun noun_apps = {
	.name = "apps",
	.aliases = {"app"},
	.keys = {"name", "id"},
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.all_nodes = "node",
	.name_of = name_member,
};
