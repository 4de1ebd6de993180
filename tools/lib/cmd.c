/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include "tools/lib/cmd.h"
#include "tools/lib/command.h"
#include "tools/lib/text.h"

static const struct opt globals[] = {
	{"instance", 0, OPT_STRING, "NAME",
	 "work with the instance NAME instead of '" INSTANCE_DEFAULT "'",
	 offsetof(struct cmd, instance), NULL},
	{"socket", 0, OPT_STRING, "PATH",
	 "the agent's control socket (/run/ax/INSTANCE/control.sock unless given)",
	 offsetof(struct cmd, socket), &words_file},
	{"help", 'h', OPT_FLAG, NULL, "print this help", offsetof(struct cmd, help), NULL},
	{"version", 0, OPT_FLAG, NULL, "print the version", offsetof(struct cmd, version), NULL},
};
const struct opt_part cmd_globals = {globals, ARRAY_SIZE(globals), 0};

struct opt_common cmd_common(struct cmd *c)
{
	return (struct opt_common){cmd_globals, c};
}

/* In one write: stderr may be a log that others write to, as the agent's is. */
static void put_sentence(const struct cmd *c, const char *text)
{
	autofree char *line = NULL;
	size_t len;
	FILE *f = open_memstream(&line, &len);
	FILE *to = f ? f : stderr;

	fprintf(to, "ax%s%s: ", c->name ? " " : "", c->name ? c->name : "");
	text_put(text, to);
	putc('\n', to);
	if (f && fclose(f) == 0)
		fwrite(line, 1, len, stderr);
}

static int set_instance(struct cmd *c, struct error *e)
{
	int r = instance_init(&c->inst, c->instance, e);

	if (r || !c->socket)
		return r;
	if (strlen(c->socket) >= sizeof(c->inst.socket_path))
		return error_set(e, -ENAMETOOLONG,
				 "the path of --socket is too long: %zu bytes, "
				 "at most %zu are possible",
				 strlen(c->socket), sizeof(c->inst.socket_path) - 1);
	strcpy(c->inst.socket_path, c->socket);
	return 0;
}

bool cmd_begin(struct cmd *c, void *args, int *argc, char **argv, int *status)
{
	const struct opt_syntax *s = &c->command->syntax;
	const struct opt_common common = cmd_common(c);
	struct error e = {0};
	int n = opt_parse(s, args, &common, *argc, argv, &e);

	if (n >= 0 && (c->help || c->version)) {
		if (c->help)
			command_help(c, c->command, stdout);
		else
			printf("ax %s\n", AX_VERSION);
		*status = cmd_finish(c, CMD_OK);
		return false;
	}
	if (n < 0 || set_instance(c, &e)) {
		*status = cmd_usage(c, "%s", e.text);
		return false;
	}
	*argc = n;
	return true;
}

int cmd_usage(const struct cmd *c, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put_sentence(c, text);
	fprintf(stderr, "Try 'ax%s%s --help'.\n", c->name ? " " : "", c->name ? c->name : "");
	return CMD_USAGE;
}

int cmd_failed(const struct cmd *c, const struct error *e)
{
	put_sentence(c, e->text);
	return CMD_FAILED;
}

int cmd_unable(const struct cmd *c, const struct error *e)
{
	put_sentence(c, e->text);
	return CMD_UNABLE;
}

void cmd_output(void)
{
	/* a caller may have left it ignored; then `ax ... | head` would complain */
	signal(SIGPIPE, SIG_DFL);
}

int cmd_finish(const struct cmd *c, int status)
{
	struct error e;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	error_set(&e, -EIO, "the output could not be written: %s",
		  errno ? strerror(errno) : "an earlier write failed");
	return cmd_failed(c, &e);
}

int cmd_ask_with(const struct cmd *c, json_t *request, int fd, json_t **reply, struct error *e)
{
	autojson json_t *j = request;
	CLEANUP(control_closep) struct control_conn conn = {.fd = -1};
	int r;

	*reply = NULL;
	if (!j)
		return error_set(e, -EINVAL, "the text is not UTF-8");
	r = control_connect(c->inst.socket_path, &conn, e);
	if (r)
		return r;
	return control_call(&conn, j, fd, reply, NULL, e);
}

int cmd_ask(const struct cmd *c, json_t *request, json_t **reply, struct error *e)
{
	return cmd_ask_with(c, request, -1, reply, e);
}

void cmd_put_json(const json_t *j, size_t flags)
{
	json_dumpf(j, stdout, flags | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	putchar('\n');
}

char *cmd_party(const char *name, const char *address, long long port, char *buf, size_t size)
{
	bool v6 = address && strchr(address, ':');
	char tail[24] = "";

	if (port && address)
		snprintf(tail, sizeof(tail), ":%lld", port);
	snprintf(buf, size, "%s%s%s%s%s%s", name ? name : "", name && address ? " " : "",
		 v6 && port ? "[" : "", address ? address : "", v6 && port ? "]" : "", tail);
	return buf;
}
