/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp load, apply, confirm, rollback, unload */
#include "tools/xdp/common.h"

struct load {
	const char *rules;			  /* NULL: an empty list */
	int mode, default_action, exposed, track; /* -1: what the list says */
	uint32_t priority;			  /* 0: what the list says */
	bool replace;
	struct cmd_xdp_change change;
	struct cmd_xdp_direction direction; /* d -1: what the list says */
};

/* The file's list, changed by what options say. */
static bool make_list(struct cmd *c, const struct load *o, struct rule_list *l, int *status)
{
	enum xdp_direction d =
		o->direction.d >= 0 ? (enum xdp_direction)o->direction.d : DIRECTION_INGRESS;

	if (o->rules && !cmd_xdp_read_rules(c, o->rules, d, l, status))
		return false;
	if (o->default_action >= 0)
		l->default_action = o->default_action ? AX_VERDICT_DROP : AX_VERDICT_PASS;
	if (o->exposed >= 0)
		l->policy[AX_REASON_EXPOSED] = (uint8_t)o->exposed;
	if (o->mode >= 0)
		l->mode = (enum xdp_mode)o->mode;
	if (o->priority)
		l->priority = o->priority;
	if (o->track >= 0)
		l->track = (enum list_track)o->track;
	if (o->direction.d >= 0)
		l->direction = (enum xdp_direction)o->direction.d;
	return true;
}

static int put_list(struct cmd *c, const char *ifname, struct load *o, bool fresh)
{
	struct xdp_load_options options = cmd_xdp_load_options(c, &o->change);
	autolist struct rule_list l;
	struct error e = {0};
	int status;

	rule_list_init(&l);
	if (!make_list(c, o, &l, &status))
		return status;
	o->direction.d = (int)l.direction;
	ifname = cmd_xdp_place(&o->direction, ifname);
	options.replace = o->replace;
	options.fresh = fresh;
	if (xdp_apply(&c->inst, ifname, &l, &options, &e))
		return cmd_failed(c, &e);
	return cmd_xdp_put_result(c, ifname, &o->change);
}

/* True: go on, argv[0] is the one interface. */
static bool begin(struct cmd *c, void *args, int *argc, char **argv, int *status)
{
	if (!cmd_begin(c, args, argc, argv, status))
		return false;
	if (*argc != 1) {
		*status =
			*argc ? cmd_usage(c, "give one interface: '%.60s' is one too many", argv[1])
			      : cmd_usage(c, "say which interface");
		return false;
	}
	if (!cmd_root(c)) {
		*status = CMD_FAILED;
		return false;
	}
	cmd_output();
	return true;
}

/* in the order in which make_list() takes them */
static const char *default_action(size_t i)
{
	return i == 0	? ax_verdict_names[AX_VERDICT_PASS]
	       : i == 1 ? ax_verdict_names[AX_VERDICT_DROP]
			: NULL;
}

/* by enum ax_policy */
static const char *policy(size_t i)
{
	static const char *const names[] = {"rules", "pass", "drop"};

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

static const char *mode(size_t i)
{
	return xdp_mode_name((enum xdp_mode)i);
}

static const char *track(size_t i)
{
	return list_track_name((enum list_track)i);
}

static const struct words action_words = {.nth = default_action}, mode_words = {.nth = mode},
			  policy_words = {.nth = policy}, track_words = {.nth = track};

static const struct opt options[] = {
	{"rules", 'r', OPT_STRING, "FILE", "the rule file, see ax.yaml(5); '-' is standard input",
	 offsetof(struct load, rules), &words_file},
	{"default", 0, OPT_CHOICE, "ACTION",
	 "what happens to packets that no rule matches: pass or drop",
	 offsetof(struct load, default_action), &action_words},
	{"exposed", 0, OPT_CHOICE, "POLICY",
	 "packets for exposed ports that the default would drop: pass; or drop, or as the rules "
	 "say",
	 offsetof(struct load, exposed), &policy_words},
	{"mode", 'm', OPT_CHOICE, "MODE",
	 "native (in the driver), generic (behind it: every device has it), offload (in the "
	 "device) or auto (native, else generic)",
	 offsetof(struct load, mode), &mode_words},
	{"priority", 'p', OPT_NUMBER, "N",
	 "where to run among several programs: lower numbers first (50)",
	 offsetof(struct load, priority), NULL},
	{"track", 0, OPT_CHOICE, "WHO",
	 "who knows of flows that are forwarded, for rules with state: kernel (its connection "
	 "tracking), own (ax) or auto (kernel where programs can ask it, else own)",
	 offsetof(struct load, track), &track_words},
	{"replace", 0, OPT_FLAG, NULL, "take the place of another's program",
	 offsetof(struct load, replace), NULL},
};

static int run_load(struct cmd *c, int argc, char **argv)
{
	struct load o = {
		.mode = -1, .default_action = -1, .exposed = -1, .track = -1, .direction.d = -1};
	int status;

	if (!begin(c, &o, &argc, argv, &status))
		return status;
	return put_list(c, argv[0], &o, true);
}

const struct command cmd_xdp_load = {
	.name = "xdp load",
	.about = "put a rule list on an interface",
	.run = run_load,
	.syntax =
		{
			.usage = "ax xdp load IFACE [--rules FILE] [options]",
			.about = "Puts a list of rules on an interface: the first rule that "
				 "matches a packet decides. Without --rules the list is empty; "
				 "'ax xdp rule add' fills it.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{cmd_xdp_change_opts, ARRAY_SIZE(cmd_xdp_change_opts),
				 offsetof(struct load, change)},
				{cmd_xdp_direction_opts, 1, offsetof(struct load, direction)}},
			.args = {&words_interface},
		},
};

static int run_apply(struct cmd *c, int argc, char **argv)
{
	struct load o = {
		.mode = -1, .default_action = -1, .exposed = -1, .track = -1, .direction.d = -1};
	int status;

	if (!begin(c, &o, &argc, argv, &status))
		return status;
	if (!o.rules)
		return cmd_usage(c, "say which rules: --rules FILE");
	return put_list(c, argv[0], &o, false);
}

const struct command cmd_xdp_apply = {
	.name = "xdp apply",
	.about = "put another list in its place, in one step",
	.run = run_apply,
	.syntax =
		{
			.usage = "ax xdp apply IFACE --rules FILE [options]",
			.about = "Puts a list in the place of the one on the interface, in one "
				 "step: every packet is judged by the one or by the other. "
				 "Counters of rules with the same name go on. Where nothing is "
				 "loaded, the list is loaded.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{cmd_xdp_change_opts, ARRAY_SIZE(cmd_xdp_change_opts),
				 offsetof(struct load, change)},
				{cmd_xdp_direction_opts, 1, offsetof(struct load, direction)}},
			.args = {&words_interface},
		},
};

/* A command that has an interface and nothing else. */
static int simple(struct cmd *c, int argc, char **argv,
		  int (*f)(const struct instance *inst, const char *ifname, struct error *e),
		  const char *done)
{
	struct cmd_xdp_direction direction = {0};
	struct error e = {0};
	const char *place;
	int status;

	if (!begin(c, &direction, &argc, argv, &status))
		return status;
	place = cmd_xdp_place(&direction, argv[0]);
	if (f(&c->inst, place, &e))
		return cmd_failed(c, &e);
	printf("%s: %s\n", place, done);
	return cmd_finish(c, CMD_OK);
}

static int run_confirm(struct cmd *c, int argc, char **argv)
{
	return simple(c, argc, argv, xdp_confirm, "confirmed: the new list stays");
}

const struct command cmd_xdp_confirm = {
	.name = "xdp confirm",
	.about = "keep what --confirm put there",
	.run = run_confirm,
	.syntax =
		{
			.usage = "ax xdp confirm IFACE [--direction DIRECTION]",
			.own = {{cmd_xdp_direction_opts, 1, 0}},
			.about = "Says that the list which came with --confirm is good: it stays. "
				 "Fails when it is too late.",
			.args = {&words_interface},
		},
};

static int run_rollback(struct cmd *c, int argc, char **argv)
{
	return simple(c, argc, argv, xdp_rollback, "the former list is back");
}

const struct command cmd_xdp_rollback = {
	.name = "xdp rollback",
	.about = "take the former list back",
	.run = run_rollback,
	.syntax =
		{
			.usage = "ax xdp rollback IFACE [--direction DIRECTION]",
			.own = {{cmd_xdp_direction_opts, 1, 0}},
			.about = "Takes the former list back at once, instead of the one that "
				 "came with --confirm and was not confirmed.",
			.args = {&words_interface},
		},
};

static int run_unload(struct cmd *c, int argc, char **argv)
{
	return simple(c, argc, argv, xdp_unload, "unloaded");
}

const struct command cmd_xdp_unload = {
	.name = "xdp unload",
	.about = "take it all off an interface",
	.run = run_unload,
	.syntax =
		{
			.usage = "ax xdp unload IFACE [--direction DIRECTION]",
			.own = {{cmd_xdp_direction_opts, 1, 0}},
			.about = "Takes the list, its program and its counters off an interface. "
				 "What others put there stays.",
			.args = {&words_interface},
		},
};
