// SPDX-License-Identifier: GPL-2.0-or-later
/* Readers of fields that several sections have. */
#include "base/values.h"
#include "config/read.h"
#include "config/egress.h"
#include "config/spec.h"
#include "rules/priv.h"

#include <arpa/inet.h>
#include <ctype.h>

/* --- addresses and numbers --- */

void read_port(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a port of 1 to 65535";
	const char *text = scalar_text(r, n, what);
	int port = text ? port_parse(text) : 0;

	if (port < 0)
		reject(r, n, "%s", what);
	else if (text)
		*(uint16_t *)to = (uint16_t)port;
}

void read_address_port(struct reader *r, const struct node *n,
		       const char *(*want)(const struct ax_addr *a), struct ax_addr *to,
		       uint16_t *port)
{
	static const char what[] = "an address or address:port ([address]:port for IPv6)";
	const char *text = scalar_text(r, n, what), *expected;
	__be16 port_be = 0;
	struct ax_addr a;

	if (!text)
		return;
	if (addr_parse(text, &a) < 0 && addr_port_parse(text, &a, &port_be) < 0)
		expected = what;
	else
		expected = want(&a);
	if (expected) {
		reject(r, n, "%s", expected);
		return;
	}
	*to = a;
	if (port_be)
		*port = ntohs(port_be);
}

bool read_addresses(struct reader *r, const struct node *n, struct ax_addr *ip4,
		    struct ax_addr *ip6)
{
	const char *text =
		scalar_text(r, n, "an address, or an IPv4 and an IPv6 address with a comma");
	const char *want = text ? want_vips(text, ip4, ip6) : NULL;

	if (want)
		reject(r, n, "%s", want);
	return text && !want;
}

bool read_quic_id(struct reader *r, const struct node *n, uint16_t *ret)
{
	static const char what[] = "a whole number of 0 to 65535";
	const char *text = scalar_text(r, n, what);
	uint64_t id;

	if (!text)
		return false;
	if (value_number(text, UINT16_MAX, &id) < 0) {
		reject(r, n, "%s", what);
		return false;
	}
	*ret = (uint16_t)id;
	return true;
}

void read_weight(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a whole number of 1 to 1000";
	const char *text = scalar_text(r, n, what);
	int weight = text ? port_parse(text) : 0; /* has the same form */

	if (text && (weight < 1 || weight > CONFIG_BACKEND_WEIGHT_MAX))
		reject(r, n, "%s", what);
	else if (text)
		*(uint32_t *)to = (uint32_t)weight;
}

void read_splice(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "auto, on, off or forced");
	const char *want = text ? want_splice(text, to) : NULL;

	if (want)
		reject(r, n, "%s", want);
}

/* --- what is to be run, and by whom: of apps and of triggers --- */

/* Appends the word's next characters, up to the end of a quoted part or one that is not quoted.
 * *p is behind the opening quote, and ends behind the closing one; NULL when there is none. */
static const char *copy_quoted(const char *p, char quote, char **out)
{
	while (*p && *p != quote) {
		/* as in a shell: within double quotes a backslash is one unless it hides something
		 */
		if (quote == '"' && *p == '\\' && p[1] && strchr("\"\\$`", p[1]))
			p++;
		*(*out)++ = *p++;
	}
	return *p ? p + 1 : NULL;
}

/* Copies the word at p without its quotes. Returns where it ended or NULL, with *want set. */
static const char *copy_word(const char *p, char *out, const char **want)
{
	while (p && *p && !isspace((unsigned char)*p)) {
		if (*p == '\'' || *p == '"') {
			p = copy_quoted(p + 1, *p, &out);
			if (!p)
				*want = "a closing quote at the end";
		} else if (*p == '\\' && !p[1]) {
			*want = "a character after the backslash at the end";
			p = NULL;
		} else {
			if (*p == '\\')
				p++;
			*out++ = *p++;
		}
	}
	*out = '\0';
	return p;
}

/* Splits a command line into words as a shell does, without any expansion. *want is NULL or what
 * was expected. -EINVAL, -ENOMEM. */
static int split_words(const char *s, struct strv *ret, const char **want)
{
	autofree char *word = malloc(strlen(s) + 1);
	struct strv words = {0};
	int r = word ? 0 : -ENOMEM;

	*want = NULL;
	while (r == 0) {
		s += strspn(s, " \t\r\n\v\f");
		if (!*s)
			break;
		s = copy_word(s, word, want);
		r = s ? strv_add(&words, word) : -EINVAL;
	}
	if (r < 0)
		strv_free(&words);
	else
		*ret = words;
	return r;
}

static void read_argument(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "an argument (\"\" for an empty one)");

	if (text)
		done(r, strv_add(to, text));
}

void read_command(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a program and its arguments, as a list or as text";
	struct strv *command = to;
	const char *text, *want;
	int code;

	if (n->kind == NODE_LIST) {
		read_list(r, n, "arguments", SIZE_MAX, read_argument, command);
		if (n->n > 0) {
			if (command->n == n->n && !command->v[0][0])
				reject(r, &n->items[0], "a program's name");
			return;
		}
	} else {
		text = scalar_text(r, n, what);
		if (!text)
			return;
		code = split_words(text, command, &want);
		if (code == -ENOMEM)
			done(r, code);
		else if (code < 0)
			reject(r, n, "%s", want);
		if (code < 0 || (command->n > 0 && command->v[0][0]))
			return;
	}
	reject(r, n, "%s", what);
}

void read_zone(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a zone's name: at most 63 letters, digits, -, _ and .";
	const char *text = scalar_text(r, n, what);
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyz0123456789-_.ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char **zone = to;

	if (!text)
		return;
	if (!*text || strlen(text) > 63 || text[strspn(text, good)]) {
		reject(r, n, "%s", what);
		return;
	}
	free(*zone);
	*zone = strdup(text);
	have(r, *zone);
}

void read_user(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a user's name or number";
	const char *text = scalar_text(r, n, what);
	char **user = to;

	if (!text)
		return;
	/* whether there is such a user is for the launch to find out */
	if (!*text || strpbrk(text, ":/, \t\r\n") || text[0] == '-') {
		reject(r, n, "%s", what);
		return;
	}
	*user = strdup(text);
	have(r, *user);
}

/* --- where apps may go outside --- */

static void read_egress_entry(struct reader *r, const struct node *n, void *to)
{
	const char *text =
		scalar_text(r, n, "an address, a prefix or a DNS name, maybe with a port");
	struct egress one = {0}, *e = to;
	const char *want;
	int code;

	if (!text)
		return;
	want = want_egress(text, &one, &code);
	if (!want && done(r, code) && one.mode != EGRESS_LIST)
		want = "all and none by themselves, and not in a list";
	if (want)
		reject(r, n, "%s", want);
	e->mode = EGRESS_LIST;
	for (size_t i = 0; i < one.to.n; i++)
		done(r, strv_add(&e->to, one.to.v[i]));
	egress_free(&one);
}

void read_egress_to(struct reader *r, const struct node *n, void *to)
{
	struct egress *e = to;
	const char *text, *want;
	int code;

	if (n->kind == NODE_LIST) {
		e->mode = EGRESS_LIST;
		read_list(r, n, "addresses, prefixes and DNS names", EGRESS_ENTRIES_MAX,
			  read_egress_entry, to);
		return;
	}
	text = scalar_text(r, n, "all, none, or a list of what it may reach");
	if (!text)
		return;
	want = want_egress(text, e, &code);
	if (want)
		reject(r, n, "%s", want);
	else
		done(r, code);
}

void read_egress_source(struct reader *r, const struct node *n, void *to)
{
	struct egress *e = to;

	read_addresses(r, n, &e->source4, &e->source6);
}

void read_egress(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"to", read_egress_to, 0},
		{"source", read_egress_source, 0},
		{"audit", read_bool, offsetof(struct egress, audit)},
	};
	struct egress *e = to;

	if (n->kind != NODE_MAPPING) {
		read_egress_to(r, n, to);
		return;
	}
	if (read_mapping(r, n, keys, ARRAY_SIZE(keys), to) && e->audit && e->mode != EGRESS_LIST)
		reject(r, n, "audit with a list: it counts what the list does not have");
}
