// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section xdp:. */
#include "base/values.h"
#include "config/read.h"
#include "config/rules.h"

struct section {
	struct config *config;
	struct list_reading shared; /* its sets and balancers */
	/* read when these are known, wherever they stand in the file */
	const struct node *interfaces_key, *interfaces;
};

/* --- interfaces --- */

struct interface_reading {
	struct list_reading l; /* first: its readers get a pointer to this struct */
	char *rules_file;
};

static void read_rules_file(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "a rule file's path");
	struct interface_reading *i = to;

	if (!text)
		return;
	if (!*text) {
		reject(r, n, "a rule file's path");
		return;
	}
	i->rules_file = strdup(text);
	have(r, i->rules_file);
}

static const struct key interface_keys[] = {
	{"mode", list_read_mode, 0},	       {"priority", list_read_priority, 0},
	{"default", list_read_default, 0},     {"classes", list_read_classes, 0},
	{"rules", list_read_rules, 0},	       {"rules-file", read_rules_file, 0},
	{"sets", list_read_sets, 0},	       {"balancers", list_read_balancers, 0},
	{"direction", list_read_direction, 0}, {"track", list_read_track, 0},
};

static bool has_key(const struct node *mapping, const char *name)
{
	for (size_t i = 0; mapping->kind == NODE_MAPPING && i < mapping->n; i++)
		if (streq(mapping->items[2 * i].text, name))
			return true;
	return false;
}

static bool is_taken(const struct config *c, const char *place)
{
	for (size_t i = 0; i < c->n_interfaces; i++)
		if (c->interfaces[i].name && streq(c->interfaces[i].name, place))
			return true;
	return false;
}

static void read_one_list(struct reader *r, struct section *s, const struct node *key,
			  const struct node *value)
{
	struct interface_reading reading = {.l.shared = &s->shared.list};
	size_t before = r->errs->n;
	struct config_interface *i;
	char place[PLACE_MAX];

	rule_list_init(&reading.l.list);
	read_mapping(r, value, interface_keys, ARRAY_SIZE(interface_keys), &reading);
	/* (in which direction it is has to be known before a file is read) */
	if (reading.rules_file && value->n > 1 + (size_t)has_key(value, "direction"))
		reject(r, value,
		       "rules-file alone, or with direction, since all the rest is in that file");
	if (done(r, rule_list_share(&reading.l.list, &s->shared.list)) && r->errs->n == before)
		list_report_faults(r, &reading.l, key);
	place_make(place, key->text, reading.l.list.direction);
	if (is_taken(s->config, place))
		reject(r, value, "one list of an interface for each direction");
	i = &s->config->interfaces[s->config->n_interfaces++];
	i->name = strdup(place);
	have(r, i->name);
	i->rules_file = reading.rules_file;
	i->list = reading.l.list;
}

#define DIRECTIONS 2

/* One list, or a list of them. */
static void read_interface(struct reader *r, const struct node *key, const struct node *value,
			   void *to)
{
	struct section *s = to;

	if (!value_is_interface(key->text))
		reject(r, key, "an interface's name of 1 to 15 characters");
	if (value->kind != NODE_LIST) {
		read_one_list(r, s, key, value);
		return;
	}
	if (value->n > DIRECTIONS || !value->n) {
		reject(r, value, "one list of an interface for each direction");
		return;
	}
	for (size_t i = 0; i < value->n; i++) {
		path_push(r, NULL, i);
		read_one_list(r, s, key, &value->items[i]);
		r->depth--;
	}
}

static void note_interfaces(struct reader *r, const struct node *n, void *to)
{
	struct section *s = to;

	s->interfaces = n;
	s->interfaces_key = r->path[r->depth - 1].key;
}

static void read_interfaces(struct reader *r, struct section *s)
{
	const struct node *n = s->interfaces;

	if (n->kind == NODE_MAPPING && n->n > 0) {
		s->config->interfaces = calloc(DIRECTIONS * n->n, sizeof(*s->config->interfaces));
		if (!have(r, s->config->interfaces))
			return;
	}
	path_push(r, s->interfaces_key, 0);
	read_entries(r, n, "interfaces by name", read_interface, s);
	r->depth--;
}

/* --- triggers --- */

static void read_window(struct reader *r, const struct node *n, void *to)
{
	uint32_t *window = to;
	size_t before = r->errs->n;

	*window = 0;
	read_duration_ms(r, n, window);
	if (r->errs->n == before && *window == 0)
		reject(r, n, "a duration above 0 such as 30s");
}

static const struct key trigger_keys[] = {
	{"key-file", read_absolute_path, offsetof(struct config_trigger, key_file)},
	{"command", read_command, offsetof(struct config_trigger, command)},
	{"user", read_user, offsetof(struct config_trigger, user)},
	{"window", read_window, offsetof(struct config_trigger, window_ms)},
};

static void read_trigger(struct reader *r, const struct node *key, const struct node *value,
			 void *to)
{
	struct section *s = to;
	struct config_trigger *t = &s->config->triggers[s->config->n_triggers++];
	const char *want = want_name(key->text);
	size_t before = r->errs->n;

	t->window_ms = CONFIG_TRIGGER_WINDOW_MS;
	t->name = strdup(key->text);
	have(r, t->name);
	if (want)
		reject(r, key, "%s", want);
	if (read_mapping(r, value, trigger_keys, ARRAY_SIZE(trigger_keys), t) &&
	    r->errs->n == before && (!t->key_file || !t->command.n))
		reject(r, value, "a mapping with key-file and command");
}

static void read_triggers(struct reader *r, const struct node *n, void *to)
{
	struct section *s = to;

	if (n->kind == NODE_MAPPING && n->n > 0) {
		s->config->triggers = calloc(n->n, sizeof(*s->config->triggers));
		if (!have(r, s->config->triggers))
			return;
	}
	read_entries(r, n, "triggers by name", read_trigger, s);
}

/* --- the section --- */

static const struct key section_keys[] = {
	{"sets", list_read_sets, offsetof(struct section, shared)},
	{"balancers", list_read_balancers, offsetof(struct section, shared)},
	{"triggers", read_triggers, 0},
	{"interfaces", note_interfaces, 0},
};

void read_xdp(struct reader *r, const struct node *n, void *to)
{
	struct section s = {.config = to};

	rule_list_init(&s.shared.list);
	read_mapping(r, n, section_keys, ARRAY_SIZE(section_keys), &s);
	if (s.interfaces)
		read_interfaces(r, &s);
	rule_list_free(&s.shared.list);
}
