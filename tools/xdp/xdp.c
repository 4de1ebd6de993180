/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp: what its sub-commands are, and what they share. */
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>

#include "config/rule_file.h"
#include "tools/xdp/common.h"
#include "tools/lib/text.h"

#define RULES_MAX (64u << 20)

static const struct command *const commands[] = {
	&cmd_xdp_load,	  &cmd_xdp_apply, &cmd_xdp_confirm, &cmd_xdp_rollback, &cmd_xdp_unload,
	&cmd_xdp_status,  &cmd_xdp_stats, &cmd_xdp_capture, &cmd_xdp_dump,     &cmd_xdp_top,
	&cmd_xdp_explain, &cmd_xdp_rule,  &cmd_xdp_sign,    &cmd_xdp_set,      NULL,
};

const struct command cmd_xdp = {
	.name = "xdp",
	.about = "filter, redirect, capture and balance packets of an interface",
	.sub = commands,
	.example = "'load IFACE --rules FILE', 'status' ...",
	.syntax =
		{
			.usage = "ax xdp COMMAND IFACE ...",
			.about = "Filters, redirects, captures and balances the packets that "
				 "arrive at a network interface, before the kernel's network "
				 "stack sees them. No agent is needed, and what was loaded stays "
				 "when this command ends.",
			.command_follows = true,
		},
};

/* --- files --- */

int cmd_xdp_read_file(const char *path, size_t max, uint8_t **ret, size_t *len, struct error *e)
{
	bool in = streq(path, "-");
	autofile FILE *f = in ? fdopen(dup(STDIN_FILENO), "r") : fopen(path, "re");
	autofree uint8_t *buf = NULL;
	size_t size = 0, n = 0, got;

	if (!f)
		return error_set(e, -errno, "%s cannot be read: %s", in ? "stdin" : path,
				 strerror(errno));
	do {
		size_t want = size - n < 2 ? 2 * size + 4096 : size;
		uint8_t *more = realloc(buf, want);

		if (!more)
			return error_set(e, -ENOMEM, "out of memory");
		buf = more;
		size = want;
		got = fread(buf + n, 1, size - n - 1, f);
		n += got;
		if (n > max)
			return error_set(e, -EFBIG, "%s is too long: at most %zu MiB are read",
					 in ? "stdin" : path, max >> 20);
	} while (got);
	if (ferror(f))
		return error_set(e, -EIO, "%s cannot be read: %s", in ? "stdin" : path,
				 strerror(errno));
	buf[n] = 0;
	*len = n;
	*ret = take_ptr(&buf);
	return 0;
}

static int invalid_rules(const struct cmd *c, const struct config_errors *errs, const char *name)
{
	config_errors_print(errs, name, stderr);
	fprintf(stderr, "ax %s: ", c->name);
	text_put(name, stderr);
	fprintf(stderr, " has %zu error%s\n", errs->n, errs->n == 1 ? "" : "s");
	return CMD_FAILED;
}

/* The files of sets are found from where the rule file is. */
static int read_sets(struct rule_list *l, const char *path, struct error *e)
{
	autofree char *copy = NULL;

	if (streq(path, "-"))
		return rule_list_read_sets(l, NULL, e);
	copy = strdup(path);
	if (!copy)
		return error_set(e, -ENOMEM, "out of memory");
	return rule_list_read_sets(l, dirname(copy), e);
}

/* Whether there is more in a rule file than white space and comments. */
static bool says_anything(const char *text, size_t len)
{
	bool comment = false;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			comment = false;
		else if (text[i] == '#')
			comment = true;
		else if (!comment && !strchr(" \t\r", text[i]))
			return true;
	}
	return false;
}

bool cmd_xdp_read_rules(struct cmd *c, const char *path, enum xdp_direction d, struct rule_list *l,
			int *status)
{
	const char *name = streq(path, "-") ? "stdin" : path;
	struct config_errors errs = {0};
	autofree uint8_t *text = NULL;
	struct error e = {0};
	size_t len;
	int r = cmd_xdp_read_file(path, RULES_MAX, &text, &len, &e);

	if (r) {
		*status = cmd_failed(c, &e);
		return false;
	}
	if (!says_anything((char *)text, len)) {
		/* a pipe whose other end failed must not open a firewall */
		error_set(&e, -EINVAL, "%s says nothing: a list without rules is 'rules: []'",
			  name);
		*status = cmd_failed(c, &e);
		return false;
	}
	r = rule_file_parse((char *)text, len, d, l, &errs);
	if (r == -EINVAL) {
		*status = invalid_rules(c, &errs, name);
	} else if (r) {
		error_set(&e, r, "%s could not be read: %s", name, strerror(-r));
		*status = cmd_failed(c, &e);
	}
	config_errors_free(&errs);
	if (r)
		return false;
	r = read_sets(l, path, &e);
	r = r ? r : rule_list_check(l, &e);
	if (!r)
		return true;
	rule_list_free(l);
	rule_list_init(l);
	*status = cmd_failed(c, &e);
	return false;
}

/* --- changes --- */

const struct opt cmd_xdp_change_opts[] = {
	{"confirm", 0, OPT_SPAN, "TIME",
	 "take the former list back after TIME unless 'ax xdp confirm IFACE' comes first",
	 offsetof(struct cmd_xdp_change, confirm_ms), NULL},
	{"fix", 0, OPT_FLAG, NULL,
	 "repair what would make packets vanish (see 'ax doctor IFACE'), where ax can",
	 offsetof(struct cmd_xdp_change, fix), NULL},
	{"force", 0, OPT_FLAG, NULL, "go on although packets that the rules send would vanish",
	 offsetof(struct cmd_xdp_change, force), NULL},
};

static void say(void *arg, const char *sentence)
{
	const struct cmd *c = arg;

	fprintf(stderr, "ax %s: ", c->name);
	text_put(sentence, stderr);
	putc('\n', stderr);
}

struct xdp_load_options cmd_xdp_load_options(struct cmd *c, const struct cmd_xdp_change *o)
{
	return (struct xdp_load_options){
		.force = o->force,
		.fix = o->fix,
		.confirm_ms = o->confirm_ms,
		.say = say,
		.arg = c,
	};
}

const char *cmd_xdp_mode_name(enum xdp_mode m)
{
	const char *name = xdp_mode_name(m);

	return name ? name : "?";
}

int cmd_xdp_put_result(struct cmd *c, const char *ifname, const struct cmd_xdp_change *o)
{
	autoxdp struct xdp *x = NULL;
	struct xdp_status s = {0};
	autolist struct rule_list l;
	struct error e = {0};
	int r;

	rule_list_init(&l);
	r = xdp_open(&c->inst, ifname, &x, &e);
	r = r ? r : xdp_list(x, &l, &e);
	r = r ? r : xdp_status(x, &s, &e);
	if (r)
		return cmd_failed(c, &e);
	printf("%s: %zu rule%s, default %s, generation %u (%s)\n", ifname, l.n_rules,
	       l.n_rules == 1 ? "" : "s", ax_verdict_names[l.default_action], s.generation,
	       l.direction == DIRECTION_EGRESS ? "egress" : cmd_xdp_mode_name(s.mode));
	if (o->confirm_ms)
		printf("%s in %u.%01us unless: ax xdp confirm %s\n",
		       s.generation == 1 ? "it is taken off again" : "the former list comes back",
		       o->confirm_ms / 1000, o->confirm_ms % 1000 / 100, ifname);
	xdp_status_free(&s);
	return cmd_finish(c, CMD_OK);
}

int cmd_xdp_names(const struct cmd *c, int argc, char **argv, struct strv *names, struct error *e)
{
	if (!argc)
		return xdp_interfaces(&c->inst, names, e);
	for (int i = 0; i < argc; i++)
		if (strv_add(names, argv[i]))
			return error_set(e, -ENOMEM, "out of memory");
	return 0;
}
