/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp status */
#include <net/if.h>
#include <time.h>

#include "tools/lib/output.h"
#include "tools/xdp/common.h"
#include "iface/preflight.h"
#include "rules/field.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

static const char *const match_names[] = {"none", "single", "product", "bitmap"};
static const char *const match_texts[] = {
	"every packet is treated alike",
	"one lookup",
	"one lookup for each field, and one for all together",
	"one lookup for each field, and bits for the rules",
};

/* An interface: what ours is there, if any, and whose programs run. */
struct view {
	const char *ifname;
	bool ours;
	struct xdp_status s; /* ours */
	struct rule_list l;  /* ours */
	struct xdp_program_info *programs;
	size_t n_programs;
	enum xdp_mode mode;
	bool dispatcher;
};

static void view_free(struct view *v)
{
	if (v->ours)
		xdp_status_free(&v->s);
	free(v->programs);
	rule_list_free(&v->l);
}

static int view_read(const struct cmd *c, const char *ifname, struct view *v, struct error *e)
{
	autoxdp struct xdp *x = NULL;
	int r;

	*v = (struct view){.ifname = ifname};
	rule_list_init(&v->l);
	r = xdp_open(&c->inst, ifname, &x, e);
	if (r == -ENOENT) {
		if (!place_ifindex(ifname))
			return error_set(e, -ENODEV, "there is no interface '%.60s'", ifname);
		return xdp_programs(&c->inst, ifname, &v->programs, &v->n_programs, &v->mode,
				    &v->dispatcher, e);
	}
	r = r ? r : xdp_list(x, &v->l, e);
	r = r ? r : xdp_status(x, &v->s, e);
	v->ours = !r;
	v->mode = v->s.mode;
	v->dispatcher = v->s.dispatcher;
	return r;
}

static const struct xdp_program_info *programs(const struct view *v, size_t *n)
{
	*n = v->ours ? v->s.n_programs : v->n_programs;
	return v->ours ? v->s.programs : v->programs;
}

/* --- text --- */

static void put_key(const char *key)
{
	printf("  %-10s ", key);
}

static void put_fields(uint32_t fields)
{
	const char *between = ": ";

	for (unsigned i = 0; i < AX_FIELDS; i++) {
		if (!(fields & (1u << i)))
			continue;
		printf("%s%s", between, rule_field_name((enum ax_field)i));
		between = ", ";
	}
}

static void put_programs(const struct view *v)
{
	size_t n;
	const struct xdp_program_info *p = programs(v, &n);

	for (size_t i = 0; i < n; i++) {
		put_key(i ? "" : "programs");
		text_put(p[i].name, stdout);
		printf(" (id %u", p[i].id);
		if (v->dispatcher || place_is_egress(v->ifname))
			printf(", priority %u", p[i].priority);
		puts(p[i].ours			      ? ", ours)"
		     : streq(p[i].name, PASS_PROGRAM) ? ", put there by --fix)"
						      : ")");
	}
}

static bool has_quic_ids(const struct balancer *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->backends[i].has_quic_id)
			return true;
	return false;
}

/* How many backends take new flows, and what is with the others. */
static void put_states(const struct balancer *b)
{
	size_t up = 0, drain = 0, down = 0;

	for (size_t k = 0; k < b->n; k++) {
		down += b->backends[k].down;
		drain += !b->backends[k].down && b->backends[k].drain;
	}
	up = b->n - drain - down;
	printf(", %zu of them take%s new flows", up, up == 1 ? "s" : "");
	if (drain)
		printf(", %zu drain%s", drain, drain == 1 ? "s" : "");
	if (down)
		printf(", %zu %s down", down, down == 1 ? "is" : "are");
	putchar('\n');
}

static void put_parts(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_sets; i++) {
		put_key(i ? "" : "sets");
		printf("%s: %zu %s\n", l->sets[i].name, l->sets[i].n,
		       l->sets[i].kind == SET_PORTS ? "ports or ranges of them"
		       : l->sets[i].n == 1	    ? "prefix"
						    : "prefixes");
	}
	for (size_t i = 0; i < l->n_balancers; i++) {
		const struct balancer *b = &l->balancers[i];

		put_key(i ? "" : "balancers");
		printf("%s: %s%s%s, %zu backend%s", b->name, balance_mode_name(b->mode),
		       b->affinity == BALANCE_BY_SRC ? ", by the client's address" : "",
		       has_quic_ids(b) ? ", by QUIC connection ids" : "", b->n,
		       b->n == 1 ? "" : "s");
		put_states(b);
	}
}

static void put_ours(const struct view *v)
{
	const struct xdp_status *s = &v->s;
	char buf[TEXT_SHORT];

	printf("%zu rule%s, default %s\n", v->l.n_rules, v->l.n_rules == 1 ? "" : "s",
	       ax_verdict_names[v->l.default_action]);
	put_key("list");
	printf("generation %u, for %s, %s", s->generation,
	       text_age(difftime(time(NULL), (time_t)s->since), buf),
	       s->match < ARRAY_SIZE(match_texts) ? match_texts[s->match] : "?");
	put_fields(s->fields);
	printf(" (%sB)\n", text_bytes(s->arena_size, buf));
	if (s->fields & 1u << AX_FIELD_STATE) {
		put_key("states");
		puts(s->conntrack ? "of sockets and of connection tracking"
		     : s->flows	  ? "of sockets and of flows that ax keeps itself: programs cannot "
				    "ask this kernel's connection tracking"
				  : "of sockets alone: this kernel's connection tracking was not "
				    "there when the list came, and nothing was forwarded");
	}
	if (s->confirm_ms) {
		put_key("confirm");
		printf("%s in %us unless: ax xdp confirm %s\n",
		       s->generation == 1 ? "it is taken off again" : "the former list comes back",
		       (unsigned)((s->confirm_ms + 999) / 1000), v->ifname);
	}
	put_key("attached");
	if (v->l.direction == DIRECTION_EGRESS) {
		puts("where packets leave, behind all other filters");
		return;
	}
	printf("%s, %s, %s\n", cmd_xdp_mode_name(s->mode),
	       s->dispatcher ? "by libxdp's dispatcher" : "as the only program",
	       s->frags ? "with jumbo frames" : "without jumbo frames");
}

static void put_name(const char *ifname)
{
	bool colour = table_style_for(stdout).colour;

	fputs(colour ? table_colour_on(COLOUR_BOLD) : "", stdout);
	text_put(ifname, stdout);
	printf("%s: ", colour ? table_colour_off() : "");
}

/* Nobody confirmed it. */
static bool passes_all(const struct view *v)
{
	bool r = false;

	for (size_t i = 0; !v->ours && i < v->n_programs; i++)
		r |= v->programs[i].ours;
	return r;
}

static void put_view(const struct view *v)
{
	size_t n;

	programs(v, &n);
	put_name(v->ifname);
	if (v->ours)
		put_ours(v);
	else if (passes_all(v))
		printf("no list, and everything passes: the one that came with --confirm was not "
		       "confirmed in time; to take its program off: ax xdp unload %s\n",
		       v->ifname);
	else if (n)
		printf("nothing of ax, programs of others (%s)\n", cmd_xdp_mode_name(v->mode));
	else
		puts("nothing is loaded");
	put_programs(v);
	if (v->ours)
		put_parts(&v->l);
}

/* --- JSON --- */

static json_t *programs_json(const struct view *v)
{
	json_t *list = json_array();
	size_t n;
	const struct xdp_program_info *p = programs(v, &n);

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s,s:i,s:i,s:b}", "name", p[i].name, "id",
						      (int)p[i].id, "priority", (int)p[i].priority,
						      "ours", p[i].ours));
	return list;
}

static json_t *sets_json(const struct rule_list *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n_sets; i++)
		json_array_append_new(list,
				      json_pack("{s:s,s:s,s:I}", "name", l->sets[i].name, "kind",
						l->sets[i].kind == SET_PORTS ? "ports" : "prefixes",
						"elements", (json_int_t)l->sets[i].n));
	return list;
}

static json_t *balancer_json(const struct balancer *b)
{
	json_t *j =
		json_pack("{s:s,s:s,s:s,s:[]}", "name", b->name, "mode", balance_mode_name(b->mode),
			  "affinity", balance_affinity_name(b->affinity), "backends");
	json_t *list = json_object_get(j, "backends");
	char buf[ADDR_STRLEN];

	for (size_t i = 0; i < b->n; i++) {
		const struct balance_backend *k = &b->backends[i];

		json_t *backend = json_pack(
			"{s:s,s:i,s:i,s:b,s:b}", "address", addr_format(&k->addr, buf), "port",
			(int)k->port, "weight", (int)k->weight, "drain", k->drain, "down", k->down);

		if (k->has_quic_id)
			json_object_set_new(backend, "quic_id", json_integer(k->quic_id));
		json_array_append_new(list, backend);
	}
	return j;
}

static void add_ours(json_t *j, const struct view *v)
{
	const struct xdp_status *s = &v->s;
	json_t *fields = json_array(), *balancers = json_array();

	for (unsigned i = 0; i < AX_FIELDS; i++)
		if (s->fields & (1u << i))
			json_array_append_new(fields,
					      json_string(rule_field_name((enum ax_field)i)));
	for (size_t i = 0; i < v->l.n_balancers; i++)
		json_array_append_new(balancers, balancer_json(&v->l.balancers[i]));
	json_object_set_new(j, "rules", json_integer((json_int_t)v->l.n_rules));
	json_object_set_new(j, "default", json_string(ax_verdict_names[v->l.default_action]));
	json_object_set_new(j, "generation", json_integer(s->generation));
	json_object_set_new(j, "since", json_integer((json_int_t)s->since));
	json_object_set_new(j, "confirm_ms", json_integer((json_int_t)s->confirm_ms));
	json_object_set_new(j, "frags", json_boolean(s->frags));
	json_object_set_new(
		j, "match",
		json_string(s->match < ARRAY_SIZE(match_names) ? match_names[s->match] : "?"));
	json_object_set_new(j, "fields", fields);
	if (s->fields & 1u << AX_FIELD_STATE) {
		json_object_set_new(j, "conntrack", json_boolean(s->conntrack));
		json_object_set_new(j, "flows", json_boolean(s->flows));
	}
	json_object_set_new(j, "arena_bytes", json_integer((json_int_t)s->arena_size));
	json_object_set_new(j, "sets", sets_json(&v->l));
	json_object_set_new(j, "balancers", balancers);
}

static json_t *view_json(const struct view *v)
{
	char name[PLACE_MAX];
	json_t *j;
	size_t n;

	place_make(name, v->ifname, DIRECTION_INGRESS);
	j = json_pack("{s:s,s:s,s:b}", "interface", name, "direction",
		      xdp_direction_name(place_direction(v->ifname)), "loaded", v->ours);
	programs(v, &n);
	if (n && !place_is_egress(v->ifname)) {
		json_object_set_new(j, "mode", json_string(cmd_xdp_mode_name(v->mode)));
		json_object_set_new(j, "dispatcher", json_boolean(v->dispatcher));
	}
	json_object_set_new(j, "programs", programs_json(v));
	if (v->ours)
		add_ours(j, v);
	return j;
}

/* --- the command --- */

/* Every interface of the namespace. */
static int all_interfaces(struct strv *names, struct error *e)
{
	struct if_nameindex *all = if_nameindex();
	int r = all ? 0 : -errno;

	for (size_t i = 0; all && !r && all[i].if_index; i++)
		r = strv_add(names, all[i].if_name);
	if (all)
		if_freenameindex(all);
	return r ? error_set(e, r, "the interfaces could not be listed: %s", strerror(-r)) : 0;
}

static int show(struct cmd *c, const char *ifname, bool only_used, json_t *list, size_t *shown,
		struct error *e)
{
	CLEANUP(view_free) struct view v;
	int r = view_read(c, ifname, &v, e);
	size_t n;

	if (r == -ENODEV && only_used) /* it went away a moment ago */
		return 0;
	if (r)
		return r;
	programs(&v, &n);
	if (place_is_egress(ifname) ? !v.ours && !passes_all(&v) : only_used && !v.ours && !n)
		return 0;
	++*shown;
	if (list)
		return json_array_append_new(list, view_json(&v))
			       ? error_set(e, -ENOMEM, "out of memory")
			       : 0;
	put_view(&v);
	return 0;
}

/* Of what leaves only if there is a list of ours. */
static int show_both(struct cmd *c, const char *ifname, bool only_used, json_t *list, size_t *shown,
		     struct error *e)
{
	char place[PLACE_MAX];
	int r = show(c, ifname, only_used, list, shown, e);

	if (r || place_is_egress(ifname))
		return r;
	place_make(place, ifname, DIRECTION_EGRESS);
	return show(c, place, true, list, shown, e);
}

/* Lists that are pinned, but on no interface here: else nobody would know of them. */
static int show_elsewhere(const struct cmd *c, json_t *list, size_t *shown, struct error *e)
{
	CLEANUP(strv_free) struct strv names = {0};
	int r = xdp_elsewhere(&c->inst, &names, e);

	for (size_t i = 0; !r && i < names.n; i++) {
		++*shown;
		if (list && json_array_append_new(list, json_pack("{s:s,s:b,s:b,s:[]}", "interface",
								  names.v[i], "loaded", false,
								  "elsewhere", true, "programs")))
			return error_set(e, -ENOMEM, "out of memory");
		if (list)
			continue;
		put_name(names.v[i]);
		printf("not an interface of this network namespace that has a list: it is in "
		       "another one, or gone; where it is gone: ax xdp unload %s\n",
		       names.v[i]);
	}
	return r;
}

struct args {
	int output;
};

static int run(struct cmd *c, int argc, char **argv)
{
	CLEANUP(strv_free) struct strv names = {0};
	autojson json_t *list = NULL;
	struct error e = {0};
	struct args a = {0};
	size_t shown = 0;
	int status, r;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	cmd_output();
	list = a.output ? json_array() : NULL;
	r = argc ? cmd_xdp_names(c, argc, argv, &names, &e) : all_interfaces(&names, &e);
	for (size_t i = 0; !r && i < names.n; i++)
		r = show_both(c, names.v[i], !argc, list, &shown, &e);
	if (!r && !argc)
		r = show_elsewhere(c, list, &shown, &e);
	if (r)
		return cmd_failed(c, &e);
	if (list)
		cmd_put_json(list, JSON_INDENT(2));
	else if (!shown)
		puts("no interface has an XDP program");
	return cmd_finish(c, CMD_OK);
}

const struct command cmd_xdp_status = {
	.name = "xdp status",
	.about = "show what is on the interfaces",
	.run = run,
	.syntax =
		{
			.usage = "ax xdp status [IFACE]... [-o FORMAT]",
			.about = "Shows what is on the named interfaces, or on all that have any "
				 "XDP program: the programs in the order in which they run, "
				 "others' among them, and of ax's the list, its sets and "
				 "balancers, and whether it waits to be confirmed.",
			.own = {{output_table, 1, offsetof(struct args, output)}},
			.rest = &words_interface,
		},
};
