// SPDX-License-Identifier: GPL-2.0-or-later
/* A service's check:. */
#include "base/values.h"
#include "config/read.h"

#include <arpa/inet.h>

static const struct {
	const char *name;
	enum check_type type;
} types[] = {
	{"tcp", CHECK_TCP}, {"http", CHECK_HTTP}, {"exec", CHECK_EXEC}, {"passive", CHECK_PASSIVE}};

static bool parse_type(const char *text, size_t len, enum check_type *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strlen(types[i].name) == len && !memcmp(types[i].name, text, len)) {
			*ret = types[i].type;
			return true;
		}
	}
	return false;
}

static void read_check_type(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "tcp, http, exec or passive");

	if (text && !parse_type(text, strlen(text), to))
		reject(r, n, "tcp, http, exec or passive");
}

/* What stands in a request line: a blank or a line's end would make another request of it. */
static bool is_http_path(const char *s)
{
	if (s[0] != '/' || strlen(s) > CONFIG_CHECK_PATH_MAX)
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

static void set_check_path(struct reader *r, const struct node *n, const char *path,
			   struct service_check *c)
{
	if (!is_http_path(path)) {
		reject(r, n, "a path such as /healthz, without blanks");
		return;
	}
	c->path = strdup(path);
	have(r, c->path);
}

static void read_check_path(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "a path such as /healthz");

	if (text)
		set_check_path(r, n, text, to);
}

static void read_check_number(struct reader *r, const struct node *n, uint16_t *to, int min,
			      int max)
{
	const char *text = scalar_text(r, n, "a whole number");
	int value = text ? port_parse(text) : 0; /* has the same form */

	if (text && (value < min || value > max))
		reject(r, n, "a whole number of %d to %d", min, max);
	else if (text)
		*to = (uint16_t)value;
}

static void read_check_status(struct reader *r, const struct node *n, void *to)
{
	read_check_number(r, n, to, 100, 599);
}

static void read_check_count(struct reader *r, const struct node *n, void *to)
{
	read_check_number(r, n, to, 1, CONFIG_CHECK_COUNT_MAX);
}

static void read_check_every(struct reader *r, const struct node *n, void *to)
{
	size_t before = r->errs->n;
	uint32_t *every = to;

	read_duration_ms(r, n, every);
	if (*every < CONFIG_CHECK_EVERY_MIN_MS && r->errs->n == before)
		reject(r, n, "a duration of at least %dms", CONFIG_CHECK_EVERY_MIN_MS);
}

static void read_check_timeout(struct reader *r, const struct node *n, void *to)
{
	uint32_t *timeout = to;
	size_t before = r->errs->n;

	read_duration_ms(r, n, timeout);
	if (!*timeout && r->errs->n == before)
		reject(r, n, "a duration of at least 1ms");
}

static void set_check_command(struct reader *r, const struct node *n, const char *text,
			      struct service_check *c)
{
	struct node command = *n;

	command.text = (char *)text;
	command.len = strlen(text);
	read_command(r, &command, &c->command);
}

/* "tcp", "http", "http /healthz", "exec /usr/bin/good --quick" */
static void read_check_text(struct reader *r, const struct node *n, struct service_check *c)
{
	static const char what[] =
		"tcp, http, passive, \"http /path\", \"exec command\" or a mapping";
	const char *text = scalar_text(r, n, what);
	size_t len = text ? strcspn(text, " ") : 0;
	const char *rest = text && text[len] ? text + len + 1 : NULL;

	if (!text)
		return;
	if (!parse_type(text, len, &c->type) ||
	    ((c->type == CHECK_TCP || c->type == CHECK_PASSIVE) && rest) ||
	    (c->type == CHECK_EXEC && !rest))
		reject(r, n, "%s", what);
	else if (c->type == CHECK_HTTP && rest)
		set_check_path(r, n, rest, c);
	else if (c->type == CHECK_EXEC)
		set_check_command(r, n, rest, c);
}

static void check_type_keys(struct reader *r, const struct node *n, const struct service_check *c)
{
	if (c->type == CHECK_NONE)
		reject(r, n, "a mapping with the key type (tcp, http, exec or passive)");
	else if (c->type != CHECK_HTTP && (c->path || c->status))
		reject(r, n, "path and status only with type: http");
	else if (c->type != CHECK_EXEC && (c->command.n || c->user))
		reject(r, n, "command and user only with type: exec");
	else if (c->type == CHECK_EXEC && !c->command.n)
		reject(r, n, "a mapping with the key command, since its type is exec");
	else if (c->window_ms && !c->passive && c->type != CHECK_PASSIVE)
		reject(r, n, "window only with passive");
	else if (c->timeout_ms > c->every_ms)
		reject(r, n, "a timeout that is not longer than every");
}

static void read_check_mapping(struct reader *r, const struct node *n, struct service_check *c)
{
	static const struct key keys[] = {
		{"type", read_check_type, offsetof(struct service_check, type)},
		{"port", read_port, offsetof(struct service_check, port)},
		{"path", read_check_path, 0},
		{"status", read_check_status, offsetof(struct service_check, status)},
		{"command", read_command, offsetof(struct service_check, command)},
		{"user", read_user, offsetof(struct service_check, user)},
		{"every", read_check_every, offsetof(struct service_check, every_ms)},
		{"timeout", read_check_timeout, offsetof(struct service_check, timeout_ms)},
		{"fall", read_check_count, offsetof(struct service_check, fall)},
		{"rise", read_check_count, offsetof(struct service_check, rise)},
		{"passive", read_check_count, offsetof(struct service_check, passive)},
		{"window", read_check_timeout, offsetof(struct service_check, window_ms)},
	};
	size_t before = r->errs->n;

	if (read_mapping(r, n, keys, ARRAY_SIZE(keys), c) && r->errs->n == before)
		check_type_keys(r, n, c);
}

void read_check(struct reader *r, const struct node *n, void *to)
{
	struct service_check *c = to;

	if (node_is_null(n))
		return;
	c->fall = CONFIG_CHECK_FALL;
	c->rise = CONFIG_CHECK_RISE;
	c->every_ms = CONFIG_CHECK_EVERY_MS;
	if (n->kind == NODE_SCALAR)
		read_check_text(r, n, c);
	else
		read_check_mapping(r, n, c);
	if (c->type == CHECK_PASSIVE && !c->passive)
		c->passive = CONFIG_CHECK_PASSIVE;
	if (c->passive && !c->window_ms)
		c->window_ms = CONFIG_CHECK_WINDOW_MS;
	if (!c->timeout_ms)
		c->timeout_ms = c->every_ms < CONFIG_CHECK_TIMEOUT_MS ? c->every_ms
								      : CONFIG_CHECK_TIMEOUT_MS;
}

/* A check has to know where to connect to. */
void check_check(struct reader *r, const struct node *key, const struct config_service *s)
{
	bool tcp = s->check.port != 0 || s->check.type == CHECK_EXEC, all = true;

	for (size_t i = 0; i < s->n_ports; i++)
		tcp |= s->ports[i].proto == IPPROTO_TCP;
	for (size_t i = 0; i < s->n_backends; i++)
		all &= s->backends[i].port != 0;
	if (s->check.type != CHECK_NONE && !tcp && !all)
		report(r, key, "a check that has no port",
		       "check: {type: ..., port: ...}, since the service has no TCP port");
}
