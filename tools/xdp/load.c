/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp load, apply, confirm, rollback, unload */
#include "tools/xdp/xdp.h"

struct load {
	const char *rules;	  /* NULL: an empty list */
	int mode, default_action; /* -1: what the list says */
	uint32_t priority;	  /* 0: what the list says */
	bool replace;
	struct cmd_xdp_change change;
};

#define LOAD_OPTS 5

static void load_opts(struct load *o, struct opt opts[LOAD_OPTS + CMD_XDP_CHANGE_OPTS])
{
	static const char *const actions[] = {"pass", "drop", NULL};
	const struct opt own[LOAD_OPTS] = {
		{"rules", 'r', OPT_STRING, "FILE",
		 "the rule file, see ax.yaml(5); '-' is standard input", &o->rules, NULL},
		{"default", 0, OPT_CHOICE, "ACTION",
		 "what happens to packets that no rule matches: pass or drop", &o->default_action,
		 actions},
		{"mode", 'm', OPT_CHOICE, "MODE",
		 "native (in the driver), generic (behind it: every device has it), offload (in "
		 "the device) or auto (native, else generic)",
		 &o->mode, cmd_xdp_modes},
		{"priority", 'p', OPT_NUMBER, "N",
		 "where to run among several programs: lower numbers first (50)", &o->priority,
		 NULL},
		{"replace", 0, OPT_FLAG, NULL, "take the place of another's program", &o->replace,
		 NULL},
	};

	*o = (struct load){.mode = -1, .default_action = -1};
	memcpy(opts, own, sizeof(own));
	cmd_xdp_change_opts(&o->change, opts + LOAD_OPTS);
}

/* The file's list, changed by what options say. */
static bool make_list(struct cmd *c, const struct load *o, struct rule_list *l, int *status)
{
	if (o->rules && !cmd_xdp_read_rules(c, o->rules, l, status))
		return false;
	if (o->default_action >= 0)
		l->default_action = o->default_action ? AX_VERDICT_DROP : AX_VERDICT_PASS;
	if (o->mode >= 0)
		l->mode = (enum xdp_mode)o->mode;
	if (o->priority)
		l->priority = o->priority;
	return true;
}

static int put_list(struct cmd *c, const char *ifname, const struct load *o, bool fresh)
{
	struct xdp_load_options options = cmd_xdp_load_options(c, &o->change);
	autolist struct rule_list l;
	struct error e = {0};
	int status;

	rule_list_init(&l);
	if (!make_list(c, o, &l, &status))
		return status;
	options.replace = o->replace;
	options.fresh = fresh;
	if (xdp_apply(&c->inst, ifname, &l, &options, &e))
		return cmd_failed(c, &e);
	return cmd_xdp_put_result(c, ifname, &o->change);
}

/* True: go on, argv[0] is the one interface. */
static bool begin(struct cmd *c, const struct opt_syntax *s, int *argc, char **argv, int *status)
{
	if (!cmd_begin(c, s, argc, argv, status))
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

int cmd_xdp_load(struct cmd *c, int argc, char **argv)
{
	struct opt opts[LOAD_OPTS + CMD_XDP_CHANGE_OPTS];
	const struct opt_syntax s = {
		.usage = "ax xdp load IFACE [--rules FILE] [options]",
		.about = "Puts a list of rules on an interface: the first rule that matches a "
			 "packet decides. Without --rules the list is empty; 'ax xdp rule add' "
			 "fills it.",
		.own = {opts, ARRAY_SIZE(opts)},
	};
	struct load o;
	int status;

	load_opts(&o, opts);
	if (!begin(c, &s, &argc, argv, &status))
		return status;
	return put_list(c, argv[0], &o, true);
}

int cmd_xdp_apply(struct cmd *c, int argc, char **argv)
{
	struct opt opts[LOAD_OPTS + CMD_XDP_CHANGE_OPTS];
	const struct opt_syntax s = {
		.usage = "ax xdp apply IFACE --rules FILE [options]",
		.about = "Puts a list in the place of the one on the interface, in one step: every "
			 "packet is judged by the one or by the other. Counters of rules with the "
			 "same name go on. Where nothing is loaded, the list is loaded.",
		.own = {opts, ARRAY_SIZE(opts)},
	};
	struct load o;
	int status;

	load_opts(&o, opts);
	if (!begin(c, &s, &argc, argv, &status))
		return status;
	if (!o.rules)
		return cmd_usage(c, "say which rules: --rules FILE");
	return put_list(c, argv[0], &o, false);
}

/* A command that has an interface and nothing else. */
static int simple(struct cmd *c, int argc, char **argv, const struct opt_syntax *s,
		  int (*f)(const struct instance *inst, const char *ifname, struct error *e),
		  const char *done)
{
	struct error e = {0};
	int status;

	if (!begin(c, s, &argc, argv, &status))
		return status;
	if (f(&c->inst, argv[0], &e))
		return cmd_failed(c, &e);
	printf("%s: %s\n", argv[0], done);
	return cmd_finish(c, CMD_OK);
}

int cmd_xdp_confirm(struct cmd *c, int argc, char **argv)
{
	static const struct opt_syntax s = {
		.usage = "ax xdp confirm IFACE",
		.about = "Says that the list which came with --confirm is good: it stays. Fails "
			 "when it is too late.",
	};

	return simple(c, argc, argv, &s, xdp_confirm, "confirmed: the new list stays");
}

int cmd_xdp_rollback(struct cmd *c, int argc, char **argv)
{
	static const struct opt_syntax s = {
		.usage = "ax xdp rollback IFACE",
		.about = "Takes the former list back at once, instead of the one that came with "
			 "--confirm and was not confirmed.",
	};

	return simple(c, argc, argv, &s, xdp_rollback, "the former list is back");
}

int cmd_xdp_unload(struct cmd *c, int argc, char **argv)
{
	static const struct opt_syntax s = {
		.usage = "ax xdp unload IFACE",
		.about = "Takes the list, its program and its counters off an interface. What "
			 "others put there stays.",
	};

	return simple(c, argc, argv, &s, xdp_unload, "unloaded");
}
