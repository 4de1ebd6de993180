// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section agent:. */
#include "config/limits.h"
#include "config/read.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <sys/un.h>

/* --- agent.socket --- */

static void read_socket(struct reader *r, const struct node *n, void *to)
{
	if (n->kind == NODE_SCALAR && n->len >= sizeof(((struct sockaddr_un *)0)->sun_path))
		reject(r, n, "a path of at most %zu bytes, which is a Unix socket's limit",
		       sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	else
		read_absolute_path(r, n, to);
}

/* --- agent.pool --- */

struct pool_limits {
	const char *what;
	bool v4;
	unsigned min, max, base; /* lengths as they are written; what the mapped form adds */
};

static const char *const not_a_pool = "a prefix of unicast addresses";

/* "10.217.3.0/16": says which prefix was meant. */
static void reject_host_bits(struct reader *r, const struct node *n, const char *text)
{
	char right[ADDR_STRLEN];
	struct prefix p;

	if (prefix_without_host_bits(text, &p) == 0)
		reject(r, n, "a prefix without host bits: %s", prefix_format(&p, right));
}

static void read_pool_prefix(struct reader *r, const struct node *n, void *to,
			     const struct pool_limits *limits)
{
	const char *text = scalar_text(r, n, limits->what);
	struct prefix p;
	int code;

	if (!text)
		return;
	code = prefix_parse(text, &p);
	/* written as IPv4, not as ::ffff:10.217.0.0: the family is the text's */
	if (code == -EINVAL || !strchr(text, ':') != limits->v4)
		reject(r, n, "%s", limits->what);
	else if (code == -ERANGE)
		reject_host_bits(r, n, text);
	else if (p.len < limits->base + limits->min || p.len > limits->base + limits->max)
		reject(r, n, "a length of %u to %u", limits->min, limits->max);
	else if (want_unicast(&p.addr))
		reject(r, n, "%s", not_a_pool);
	else
		*(struct prefix *)to = p;
}

static void read_pool4(struct reader *r, const struct node *n, void *to)
{
	static const struct pool_limits limits = {
		.what = "an IPv4 prefix such as 10.217.0.0/16",
		.v4 = true,
		.min = 8,
		.max = 29,
		.base = 96,
	};

	read_pool_prefix(r, n, to, &limits);
}

void read_pool6(struct reader *r, const struct node *n, void *to)
{
	static const struct pool_limits limits = {
		.what = "an IPv6 prefix such as fd61:78::/64",
		.min = 48,
		.max = 120,
	};

	read_pool_prefix(r, n, to, &limits);
}

static void read_pool(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"ipv4", read_pool4, offsetof(struct config, pool4)},
		{"ipv6", read_pool6, offsetof(struct config, pool6)},
	};

	read_mapping(r, n, keys, ARRAY_SIZE(keys), to);
}

/* --- agent.dns --- */

static bool is_domain(const char *s, size_t len)
{
	size_t start = 0;

	if (len == 0 || len > CONFIG_DNS_DOMAIN_MAX)
		return false;
	for (size_t i = 0; i <= len; i++) {
		if (i == len || s[i] == '.') {
			if (i == start || i - start > 63 || s[start] == '-' || s[i - 1] == '-')
				return false;
			start = i + 1;
		} else if (!isascii(s[i]) || (!isalnum((unsigned char)s[i]) && s[i] != '-')) {
			return false;
		}
	}
	return true;
}

static void read_domain(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a domain such as ax.internal";
	const char *text = scalar_text(r, n, what);
	char **domain = to, *copy;
	size_t len;

	if (!text)
		return;
	len = strlen(text);
	if (len > 1 && text[len - 1] == '.') /* the root's dot changes nothing */
		len--;
	if (!is_domain(text, len)) {
		reject(r, n, "%s", what);
		return;
	}
	copy = strndup(text, len);
	if (!have(r, copy))
		return;
	for (char *p = copy; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	free(*domain);
	*domain = copy;
}

static void read_upstream(struct reader *r, const struct node *n, void *to)
{
	uint16_t port = CONFIG_DNS_UPSTREAM_PORT;
	struct config *c = to;
	struct ax_addr a = {0};

	read_address_port(r, n, want_server, &a, &port);
	if (addr_is_zero(&a))
		return;
	c->dns_upstreams[c->n_dns_upstreams] = a;
	c->dns_upstream_ports_be[c->n_dns_upstreams++] = htons(port);
}

static void read_upstreams(struct reader *r, const struct node *n, void *to)
{
	struct config *c = to;

	c->dns_upstreams = calloc(CONFIG_DNS_UPSTREAMS_MAX, sizeof(*c->dns_upstreams));
	c->dns_upstream_ports_be =
		calloc(CONFIG_DNS_UPSTREAMS_MAX, sizeof(*c->dns_upstream_ports_be));
	if (have(r, c->dns_upstreams) && have(r, c->dns_upstream_ports_be))
		read_list(r, n, "addresses of DNS servers", CONFIG_DNS_UPSTREAMS_MAX, read_upstream,
			  c);
}

static void read_forward(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "egress or all";
	const char *text = scalar_text(r, n, what);
	enum dns_forward *forward = to;

	if (!text)
		return;
	if (streq(text, "egress"))
		*forward = DNS_FORWARD_EGRESS;
	else if (streq(text, "all"))
		*forward = DNS_FORWARD_ALL;
	else
		reject(r, n, "%s", what);
}

static void read_dns(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"enabled", read_bool, offsetof(struct config, dns)},
		{"domain", read_domain, offsetof(struct config, dns_domain)},
		{"upstreams", read_upstreams, 0},
		{"forward", read_forward, offsetof(struct config, dns_forward)},
		{"keep", read_duration_ms, offsetof(struct config, dns_keep_ms)},
	};

	read_mapping(r, n, keys, ARRAY_SIZE(keys), to);
}

/* --- agent.logs --- */

static void read_size(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a size of 256K to 1024G, such as 16M";
	const char *text = scalar_text(r, n, what);
	uint64_t size = text ? size_parse(text, CONFIG_LOGS_SIZE_MAX) : 0;

	if (text && size < CONFIG_LOGS_SIZE_MIN)
		reject(r, n, "%s", what);
	else if (text)
		*(uint64_t *)to = size;
}

static void read_logs_to(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "file or journal";
	const char *text = scalar_text(r, n, what);

	if (text && !streq(text, "file") && !streq(text, "journal"))
		reject(r, n, "%s", what);
	else if (text)
		*(bool *)to = streq(text, "journal");
}

static void read_logs(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"size", read_size, offsetof(struct config, logs_size)},
		{"to", read_logs_to, offsetof(struct config, logs_to_journal)},
	};

	read_mapping(r, n, keys, ARRAY_SIZE(keys), to);
}

static const char *const host_names_words[] = {[HOST_NAMES_OFF] = "off",
					       [HOST_NAMES_HOSTS] = "hosts",
					       [HOST_NAMES_RESOLVED] = "resolved",
					       [HOST_NAMES_RESOLVCONF] = "resolvconf"};

const char *host_names_word(enum host_names h)
{
	return host_names_words[h];
}

static void read_host_names(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "off, hosts, resolved or resolvconf";
	const char *text = scalar_text(r, n, what);

	if (!text)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(host_names_words); i++)
		if (streq(text, host_names_words[i])) {
			*(enum host_names *)to = (enum host_names)i;
			return;
		}
	reject(r, n, "%s", what);
}

void read_agent(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"socket", read_socket, offsetof(struct config, socket)},
		{"pool", read_pool, 0},
		{"dns", read_dns, 0},
		{"host_access", read_bool, offsetof(struct config, host_access)},
		{"host-names", read_host_names, offsetof(struct config, host_names)},
		{"logs", read_logs, 0},
		{"splice", read_splice, offsetof(struct config, splice)},
		{"zone", read_zone, offsetof(struct config, zone)},
	};

	read_mapping(r, n, keys, ARRAY_SIZE(keys), to);
}
