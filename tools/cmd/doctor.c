/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax doctor: what of the kernel and of an interface stands in the way. */
#include <net/if.h>

#include "tools/cmd/commands.h"
#include "tools/cmd/findings.h"
#include "tools/xdp/common.h"
#include "datapath/datapath.h"
#include "datapath/splice.h"
#include "datapath/xdp_datapath.h"
#include "iface/preflight.h"
#include "probes/engine/engine.h"
#include "splice/behaviour.h"
#include "splice/gate.h"
#include "tools/lib/output.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

/* --- the kernel --- */

static const struct table_column columns[] = {
	{.title = "FEATURE", .keep = 9},
	{.title = "STATE", .keep = 8},
	{.title = "OF", .keep = 4},
	{.title = "NEEDS", .keep = 5, .wide = true},
	{.title = "WHY/COST", .keep = 7, .min = 20},
};

struct diagnosis {
	struct table table;
	json_t *list;	     /* NULL: a table is wanted */
	json_t *not_spliced; /* reasons; NULL: nobody says them */
	struct gate_result *gate;
	size_t gate_at; /* its feature in the list */
	int gate_read;	/* 0, or why there is nothing in it */
	const char *of; /* what the next features are of */
	unsigned off, missing;
};

static void diagnosis_free(struct diagnosis *d)
{
	table_free(&d->table);
	json_decref(d->list);
	json_decref(d->not_spliced);
	free(d->gate);
}

static int add_json(struct diagnosis *d, const struct feature_report *f)
{
	json_t *j = json_pack("{s:s,s:s,s:b,s:b}", "name", f->name, "of", d->of, "on", f->on,
			      "required", f->required);

	if (!f->on && f->why[0])
		json_object_set_new(j, "why", json_string(f->why));
	if (f->cost)
		json_object_set_new(j, "cost", json_string(f->cost));
	if (f->needs)
		json_object_set_new(j, "needs", json_string(f->needs));
	return json_array_append_new(d->list, j) ? -ENOMEM : 0;
}

static int report(void *arg, const struct feature_report *f)
{
	struct diagnosis *d = arg;
	const char *cost = f->cost ? f->cost : "";

	d->off += !f->on;
	d->missing += !f->on && f->required;
	if (d->list)
		return add_json(d, f);
	table_add(&d->table, f->name);
	table_add(&d->table, f->on ? "on" : f->required ? "MISSING" : "off");
	table_colour(&d->table, f->on ? COLOUR_GREEN : f->required ? COLOUR_RED : COLOUR_YELLOW);
	table_add(&d->table, d->of);
	table_add(&d->table, f->needs);
	if (f->on)
		table_add(&d->table, f->why);
	else
		table_addf(&d->table, "%s%s%s", f->why, f->why[0] && *cost ? "; " : "", cost);
	return 0;
}

static int report_probe(void *arg, const struct engine_feature *p)
{
	struct feature_report f = {
		.name = p->name, .on = p->on, .cost = p->cost, .needs = p->needs};

	return report(arg, &f);
}

/* What an agent of this instance has found out since the machine was started. */
static void gate_feature(const struct diagnosis *d, struct feature_report *f)
{
	struct error e = {0};
	int r = d->gate_read;

	*f = (struct feature_report){
		.name = "splice-auto",
		.on = !r && d->gate->n == 0,
		.cost = "only what says splice: on or forced is spliced",
		.needs = "sockets in a sockhash that behave as TCP's",
	};
	if (datapath_splice_supported(&e))
		snprintf(f->why, sizeof(f->why), "%.159s", e.text);
	else if (r)
		snprintf(f->why, sizeof(f->why), "not tried since the start: an agent does it");
	else if (d->gate->n)
		snprintf(f->why, sizeof(f->why), "%zu behaviours differ, see below", d->gate->n);
}

static int report_gate(struct diagnosis *d)
{
	struct feature_report f;

	gate_feature(d, &f);
	d->gate_at = json_array_size(d->list);
	return report(d, &f);
}

static int report_all(struct diagnosis *d, struct error *e)
{
	int r;

	d->of = "sockets";
	r = datapath_doctor(report, d, e);
	if (r)
		return r;
	d->of = "splicing";
	r = datapath_splice_doctor(report, d);
	r = r ? r : report_gate(d);
	if (r)
		return error_set(e, r, "out of memory");
	d->of = "xdp";
	r = r ? r : datapath_xdp_doctor(report, d);
	d->of = "probes";
	r = r ? r : engine_doctor(report_probe, d);
	return r ? error_set(e, r, "out of memory") : 0;
}

static const char *variant_of(const struct gate_line *l)
{
	return l->nonblock ? "non-blocking" : "blocking";
}

static const char *family_of(const struct gate_line *l)
{
	return l->ipv6 ? "IPv6" : "IPv4";
}

static void print_gate(const struct diagnosis *d)
{
	if (d->gate_read || !d->gate->n)
		return;
	printf("\nSpliced connections differ from TCP here, so splice: auto is off:\n");
	for (size_t i = 0; i < d->gate->n; i++) {
		const struct gate_line *l = &d->gate->lines[i];

		printf("  %s (%s, %s, %s): TCP %s; here %s\n", l->behaviour->name,
		       gate_mode_name(l->mode), variant_of(l), family_of(l), l->tcp, l->seen);
	}
}

static void add_gate_json(const struct diagnosis *d)
{
	json_t *f = json_array_get(d->list, d->gate_at), *list;

	if (d->not_spliced)
		json_object_set(f, "not_spliced", d->not_spliced);
	if (d->gate_read)
		return;
	list = json_array();
	for (size_t i = 0; i < d->gate->n; i++) {
		const struct gate_line *l = &d->gate->lines[i];

		json_array_append_new(
			list, json_pack("{ss ss ss ss ss ss}", "behaviour", l->behaviour->name,
					"mode", gate_mode_name(l->mode), "variant", variant_of(l),
					"family", family_of(l), "tcp", l->tcp, "seen", l->seen));
	}
	json_object_set_new(f, "differs", list);
}

static int print(struct cmd *c, struct diagnosis *d, int output)
{
	struct table_style style = table_style_for(stdout);

	if (d->list) {
		add_gate_json(d);
		cmd_put_json(d->list, JSON_INDENT(2));
		return d->missing ? CMD_FAILED : CMD_OK;
	}
	style.wide = output == OUTPUT_WIDE;
	if (table_print(&d->table, &style, stdout)) {
		struct error e = {.code = -ENOMEM, .text = "out of memory"};

		return cmd_unable(c, &e);
	}
	print_gate(d);
	doctor_put_not_spliced(d->not_spliced);
	if (d->missing)
		printf("\nax cannot work here: %u required feature%s missing.\n", d->missing,
		       d->missing == 1 ? " is" : "s are");
	else if (d->off)
		printf("\nax works here; %u feature%s off.\n", d->off,
		       d->off == 1 ? " is" : "s are");
	else
		printf("\nEverything that ax can use is there.\n");
	return d->missing ? CMD_FAILED : CMD_OK;
}

static int doctor_kernel(struct cmd *c, int output)
{
	CLEANUP(diagnosis_free) struct diagnosis d = {0};
	struct error e = {0};

	table_init(&d.table, columns, ARRAY_SIZE(columns));
	if (output == OUTPUT_JSON)
		d.list = json_array();
	d.gate = calloc(1, sizeof(*d.gate));
	if (!d.gate)
		return cmd_unable(c, &(struct error){.code = -ENOMEM, .text = "out of memory"});
	d.gate_read = gate_read(&c->inst, d.gate);
	d.not_spliced = doctor_not_spliced(c);
	if (report_all(&d, &e))
		return cmd_unable(c, &e);
	return cmd_finish(c, print(c, &d, output));
}

/* --- an interface --- */

static void on_finding(void *arg, const struct finding *f)
{
	findings_put(arg, NULL, f);
}

static int put_verdict(const struct findings *all, const char *ifname, int bad)
{
	if (all->list) {
		cmd_put_json(all->list, JSON_INDENT(2));
		return bad ? CMD_FAILED : CMD_OK;
	}
	putchar('\n');
	if (bad)
		printf("%d finding%s bad: packets would be lost, or a program refused.\n", bad,
		       bad == 1 ? " is" : "s are");
	else
		printf("Nothing on %s makes packets vanish.\n", ifname);
	if (bad && all->fixes)
		puts("Run the commands behind 'fix:', or 'ax doctor' again with --fix.");
	return bad ? CMD_FAILED : CMD_OK;
}

/* Rules that are loaded lead to interfaces by their index, which a name may have lost since. */
static void look_for_lost(struct xdp *x, const char *ifname, const struct rule_list *l,
			  struct finding *f)
{
	int i = xdp_lost_target(x);
	char text[ADDR_STRLEN];
	struct ax_addr app;
	const char *to;

	if (i < 0 && xdp_lost_app(x, &app)) {
		*f = (struct finding){.state = FINDING_BAD, .what = "apps"};
		snprintf(f->why, sizeof(f->why),
			 "a balancer sends to %s, which was no app of this machine, or led to "
			 "another way, when its list was put there: no answer comes from it",
			 addr_format(&app, text));
		snprintf(f->fix, sizeof(f->fix),
			 "ax xdp rule list %s -o yaml | ax xdp apply %s --rules -", ifname, ifname);
		return;
	}

	if (i < 0 || !if_nametoindex(l->rules[i].target)) /* the check says that it is gone */
		return;
	to = l->rules[i].target;
	*f = (struct finding){.state = FINDING_BAD, .what = "target"};
	snprintf(f->why, sizeof(f->why),
		 "rule %d redirects to %s, which was made anew since: what is sent there is lost",
		 i + 1, to);
	snprintf(f->fix, sizeof(f->fix), "ax xdp rule list %s -o yaml | ax xdp apply %s --rules -",
		 ifname, ifname);
}

/* The rules of the file, else those that are loaded, if any. False: end with *status. */
static bool get_rules(struct cmd *c, const char *ifname, const char *path, struct rule_list *l,
		      bool *have, struct finding *lost, int *status)
{
	autoxdp struct xdp *x = NULL;
	struct error e = {0};
	int r;

	*have = true;
	if (path)
		return cmd_xdp_read_rules(c, path, place_direction(ifname), l, status);
	r = xdp_open(&c->inst, ifname, &x, &e);
	if (!r)
		r = xdp_list(x, l, &e);
	*have = r == 0;
	if (*have)
		look_for_lost(x, ifname, l, lost);
	/* There is no such interface: the check will say so. */
	if (!r || r == -ENOENT || r == -ENODEV)
		return true;
	*status = cmd_unable(c, &e);
	return false;
}

static int doctor_iface(struct cmd *c, const char *ifname, const char *path, bool fix, int output)
{
	struct table_style style = table_style_for(stdout);
	CLEANUP(findings_free) struct findings all = {.colour = style.colour};
	autolist struct rule_list l;
	struct error e = {0};
	struct finding lost = {0};
	int bad, status;
	bool have;

	rule_list_init(&l);
	if (geteuid() != 0) {
		error_set(&e, -EPERM,
			  "looking into other network namespaces needs root: run it "
			  "with sudo");
		return cmd_unable(c, &e);
	}
	if (!get_rules(c, ifname, path, &l, &have, &lost, &status))
		return status;
	if (output == OUTPUT_JSON)
		all.list = json_array();
	bad = preflight(&c->inst, ifname, have ? &l : NULL, l.mode, fix, on_finding, &all, &e);
	if (bad < 0)
		return cmd_unable(c, &e);
	if (lost.state == FINDING_BAD) {
		on_finding(&all, &lost);
		bad++;
	}
	return cmd_finish(c, put_verdict(&all, ifname, bad));
}

struct args {
	const char *rules;
	bool fix, cluster;
	int output;
};

static int run(struct cmd *c, int argc, char **argv)
{
	struct args a = {.output = OUTPUT_TABLE};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc > 1)
		return cmd_usage(c, "'%.60s' is not understood: name one interface", argv[1]);
	if (a.cluster && (argc || a.rules || a.fix))
		return cmd_usage(c,
				 "--cluster is about this node and the others: name no interface");
	if (!argc && (a.rules || a.fix))
		return cmd_usage(c, "--%s is for an interface: name it", a.rules ? "rules" : "fix");
	cmd_output();
	if (a.cluster)
		return doctor_cluster(c, a.output);
	return argc ? doctor_iface(c, argv[0], a.rules, a.fix, a.output)
		    : doctor_kernel(c, a.output);
}

/* in the order of enum output_format */
static const char *const outputs[] = {"table", "wide", "json", NULL};
static const struct words output_words = {.choices = outputs};

static const struct opt options[] = {
	{"output", 'o', OPT_CHOICE, "FORMAT", "table (the default), wide or json",
	 offsetof(struct args, output), &output_words},
	{"rules", 0, OPT_STRING, "FILE",
	 "check for the rules of FILE ('-': standard input) instead of the loaded ones",
	 offsetof(struct args, rules), &words_file},
	{"fix", 0, OPT_FLAG, NULL, "repair what can be repaired", offsetof(struct args, fix), NULL},
	{"cluster", 0, OPT_FLAG, NULL, "the ways to the cluster's etcd and to its other nodes",
	 offsetof(struct args, cluster), NULL},
};

const struct command cmd_doctor = {
	.name = "doctor",
	.about = "tell which features of the kernel ax can use",
	.run = run,
	.syntax =
		{
			.usage = "ax doctor [-o FORMAT]\n"
				 "       ax doctor IFACE [--rules FILE] [--fix] [-o FORMAT]\n"
				 "       ax doctor --cluster [-o FORMAT]",
			.about =
				"Loads ax's own programs to find out which features of this "
				"kernel ax can use, and tells what is off, why, and what that "
				"costs. Needs root, but no agent. Ends with 1 if a feature is "
				"missing without which ax cannot work.\n"
				"With an interface, tells what makes packets vanish there that "
				"XDP rules send on (settings of the other end of a veth pair, "
				"checksum offload, MTU, queues), and how to repair it. Ends with "
				"1 if something bad stays.\n"
				"With --cluster, asks the agent what it knows of the other nodes, "
				"and tries the ways to them and to etcd: whether they answer, MTU, "
				"rp_filter, routes, leases, clocks, certificates. Ends with 1 if "
				"something is bad.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.args = {&words_interface},
		},
};
