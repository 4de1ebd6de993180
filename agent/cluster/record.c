// SPDX-License-Identifier: GPL-2.0-or-later
#include <jansson.h>
#include <netinet/in.h>
#include <nettle/base64.h>

#include "base/labels.h"
#include "base/values.h"
#include "cluster/record.h"

#define CLOCK_MAX_S 1000000000000 /* beyond what dates of HTTP have */

/* --- writing --- */

static char *text_of(json_t *j)
{
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

	json_decref(j);
	return text;
}

static void put_addr(json_t *j, const char *key, const struct ax_addr *addr)
{
	char text[ADDR_STRLEN];

	if (j && !addr_is_zero(addr))
		json_object_set_new(j, key, json_string(addr_format(addr, text)));
}

char *record_wg_key_text(const uint8_t key[WG_KEY_SIZE], char text[RECORD_WG_KEY_MAX])
{
	_Static_assert(BASE64_ENCODE_RAW_LENGTH(WG_KEY_SIZE) + 1 == RECORD_WG_KEY_MAX, "room");

	base64_encode_raw(text, WG_KEY_SIZE, key);
	text[RECORD_WG_KEY_MAX - 1] = 0;
	return text;
}

static void put_wireguard(json_t *j, const struct record_node *n)
{
	char text[RECORD_WG_KEY_MAX];

	if (j && n->has_wireguard)
		json_object_set_new(j, "wireguard",
				    json_pack("{ss si}", "key",
					      record_wg_key_text(n->wireguard_key, text), "port",
					      (int)n->wireguard_port));
}

char *record_node_text(const struct record_node *n)
{
	json_t *j = json_pack("{si ss ss sI ss}", "v", RECORD_VERSION, "name", n->name, "id", n->id,
			      "since", (json_int_t)n->since, "version", n->version);

	put_addr(j, "address", &n->address);
	put_addr(j, "address6", &n->address6);
	if (j && n->config)
		json_object_set_new(j, "config", json_integer((json_int_t)n->config));
	if (j && n->config_why[0])
		json_object_set_new(j, "config_why", json_string(n->config_why));
	if (j && n->clock_known)
		json_object_set_new(j, "clock", json_integer((json_int_t)n->clock_s));
	put_wireguard(j, n);
	return text_of(j);
}

char *record_block_text(const struct record_block *b)
{
	char text[ADDR_STRLEN];

	return text_of(json_pack("{si ss ss ss}", "v", RECORD_VERSION, "prefix",
				 prefix_format(&b->prefix, text), "node", b->node, "id", b->id));
}

char *record_address_text(const struct record_address *a)
{
	json_t *j = json_pack("{si ss ss ss}", "v", RECORD_VERSION, "node", a->node, "app", a->app,
			      "id", a->id);

	if (j && a->service)
		json_object_set_new(j, "service", json_true());
	put_addr(j, "address", &a->addr);
	return text_of(j);
}

char *record_pool_text(const struct prefix *pool)
{
	char text[ADDR_STRLEN];

	return text_of(
		json_pack("{si ss}", "v", RECORD_VERSION, "prefix", prefix_format(pool, text)));
}

char *record_config_text(const struct record_config *c)
{
	json_t *j = json_pack("{si sI sI ss ss ss}", "v", RECORD_VERSION, "revision",
			      (json_int_t)c->revision, "at", (json_int_t)c->at, "node", c->node,
			      "id", c->id, "text", c->text);

	if (j && c->of)
		json_object_set_new(j, "of", json_integer((json_int_t)c->of));
	return text_of(j);
}

char *record_config_now_text(int64_t revision)
{
	return text_of(json_pack("{si sI}", "v", RECORD_VERSION, "revision", (json_int_t)revision));
}

/* One that is up, and is said nothing else of, is told as well: it is checked there. */
static json_t *state_json(const struct other_state *s)
{
	json_t *j = json_pack("{ss si}", "service", s->service, "family", s->v4 ? 4 : 6);

	if (j && s->checked)
		json_object_set_new(j, "checked", json_true());
	if (j && s->down)
		json_object_set_new(j, "down", json_true());
	if (j && s->drained)
		json_object_set_new(j, "drained", json_true());
	if (j && s->why[0])
		json_object_set_new(j, "why", json_string(s->why));
	return j;
}

static void put_states(json_t *j, const struct record_app *a)
{
	json_t *list = j && a->n_states ? json_array() : NULL;

	for (size_t i = 0; list && i < a->n_states && i < RECORD_STATES_MAX; i++)
		json_array_append_new(list, state_json(&a->states[i]));
	if (list)
		json_object_set_new(j, "services", list);
	if (j && a->stopping)
		json_object_set_new(j, "stopping", json_true());
}

/* A key's bytes; the numbers are little-endian. */
char *record_secret_text(const struct ax_across_key *k)
{
	char hex[2 * 16 + 1];

	for (unsigned i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned)(k->k[i / 8] >> i % 8 * 8 & 0xff));
	return text_of(json_pack("{si si ss}", "v", RECORD_VERSION, "id", (int)k->id, "key", hex));
}

char *record_app_text(const struct record_app *a)
{
	json_t *j =
		json_pack("{si ss ss sI ss sI ss}", "v", RECORD_VERSION, "node", a->node, "name",
			  a->name, "id", (json_int_t)a->id, "net", a->host ? "host" : "private",
			  "since", (json_int_t)a->since, "labels", a->labels ? a->labels : "");
	json_t *ports = json_array();

	put_addr(j, "ip4", &a->ip4);
	put_addr(j, "ip6", &a->ip6);
	put_states(j, a);
	if (j && a->exported)
		json_object_set_new(j, "exported", json_true());
	for (size_t i = 0; i < a->n_ports && i < RECORD_PORTS_MAX; i++) {
		json_t *one = json_pack("{ss si}", "proto",
					a->ports[i].proto == IPPROTO_UDP ? "udp" : "tcp", "port",
					(int)a->ports[i].port);

		if (one && a->ports[i].via)
			json_object_set_new(one, "via", json_integer(a->ports[i].via));
		if (one && a->ports[i].via6)
			json_object_set_new(one, "via6", json_integer(a->ports[i].via6));
		if (one && a->ports[i].only)
			json_object_set_new(one, "family", json_integer(a->ports[i].only));
		json_array_append_new(ports, one);
	}
	if (!j || !ports || json_object_set_new(j, "ports", ports)) {
		json_decref(j);
		return NULL;
	}
	return text_of(j);
}

/* --- reading --- */

struct fields {
	json_t *j;
	struct error *e;
	int r; /* the first error */
};

static void bad(struct fields *f, const char *key, const char *want)
{
	if (!f->r)
		f->r = error_set(f->e, -EINVAL, "its member \"%s\" is not %s", key, want);
}

static int begin_long(const void *data, size_t len, size_t max, struct fields *f, struct error *e)
{
	json_int_t v;

	*f = (struct fields){.e = e};
	if (len > max)
		return f->r = error_set(e, -EMSGSIZE, "it is longer than %zu bytes", max);
	f->j = json_loadb(data, len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(f->j))
		return f->r = error_set(e, -EINVAL, "it is no JSON object");
	v = json_integer_value(json_object_get(f->j, "v"));
	if (v > RECORD_VERSION)
		return f->r = error_set(
			       e, -EOPNOTSUPP,
			       "it is of schema version %lld, and this ax knows those up to "
			       "%d: update ax on this node",
			       (long long)v, RECORD_VERSION);
	if (v < 1)
		bad(f, "v", "the version of a schema");
	return f->r;
}

static int begin(const void *data, size_t len, struct fields *f, struct error *e)
{
	return begin_long(data, len, RECORD_VALUE_MAX, f, e);
}

static int end(struct fields *f)
{
	json_decref(f->j);
	return f->r;
}

/* buf: of size bytes. */
static void read_text(struct fields *f, const char *key, char *buf, size_t size)
{
	const char *text = json_string_value(json_object_get(f->j, key));

	if (!text || strlen(text) >= size)
		bad(f, key, "a text of the right length");
	else
		memcpy(buf, text, strlen(text) + 1);
}

static void read_name(struct fields *f, const char *key, char buf[RECORD_NAME_MAX + 1])
{
	read_text(f, key, buf, RECORD_NAME_MAX + 1);
	if (!f->r && want_name(buf))
		bad(f, key, "a name");
}

static void read_id(struct fields *f, char buf[RECORD_ID_LEN + 1])
{
	read_text(f, "id", buf, RECORD_ID_LEN + 1);
	if (!f->r && strspn(buf, "0123456789abcdef") != RECORD_ID_LEN)
		bad(f, "id", "a node's number");
}

/* Zero where there is none. */
static void read_addr(struct fields *f, const char *key, struct ax_addr *ret)
{
	const json_t *value = json_object_get(f->j, key);
	const char *text = json_string_value(value);

	*ret = (struct ax_addr){0};
	if (value && (!text || addr_parse(text, ret) || want_unicast(ret)))
		bad(f, key, "an address");
}

static int64_t read_int(struct fields *f, const char *key, int64_t min, int64_t max)
{
	const json_t *value = json_object_get(f->j, key);
	int64_t n = json_integer_value(value);

	if (json_is_integer(value) && n >= min && n <= max)
		return n;
	bad(f, key, "a number in its range");
	return min;
}

static void read_prefix(struct fields *f, struct prefix *ret)
{
	const char *text = json_string_value(json_object_get(f->j, "prefix"));

	if (!text || prefix_parse(text, ret))
		bad(f, "prefix", "a prefix");
}

int record_wg_key_read(const char *text, uint8_t ret[WG_KEY_SIZE])
{
	uint8_t bytes[BASE64_DECODE_LENGTH(RECORD_WG_KEY_MAX - 1)];
	struct base64_decode_ctx ctx;
	size_t n = sizeof(bytes);

	if (strlen(text) != RECORD_WG_KEY_MAX - 1)
		return -EINVAL;
	base64_decode_init(&ctx);
	if (!base64_decode_update(&ctx, &n, bytes, RECORD_WG_KEY_MAX - 1, text) ||
	    !base64_decode_final(&ctx) || n != WG_KEY_SIZE)
		return -EINVAL;
	memcpy(ret, bytes, WG_KEY_SIZE);
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

/* An older node says nothing of it, and neither does one whose way is another. */
static void read_wireguard(struct fields *f, struct record_node *ret)
{
	json_t *j = json_object_get(f->j, "wireguard");
	const char *key = json_string_value(json_object_get(j, "key"));
	json_int_t port = json_integer_value(json_object_get(j, "port"));

	if (!j)
		return;
	if (!key || record_wg_key_read(key, ret->wireguard_key) || port < 1 || port > 65535) {
		bad(f, "wireguard", "a public key and a port");
		return;
	}
	ret->has_wireguard = true;
	ret->wireguard_port = (uint16_t)port;
}

int record_node_read(const void *data, size_t len, struct record_node *ret, struct error *e)
{
	struct fields f;

	memset(ret, 0, sizeof(*ret));
	if (begin(data, len, &f, e))
		return end(&f);
	read_name(&f, "name", ret->name);
	read_id(&f, ret->id);
	read_addr(&f, "address", &ret->address);
	read_addr(&f, "address6", &ret->address6);
	if (addr_is_v4(&ret->address6))
		bad(&f, "address6", "an IPv6 address");
	ret->since = read_int(&f, "since", 0, INT64_MAX / 2);
	read_text(&f, "version", ret->version, sizeof(ret->version));
	if (json_object_get(f.j, "config"))
		ret->config = read_int(&f, "config", 0, INT64_MAX / 2);
	if (json_object_get(f.j, "config_why"))
		read_text(&f, "config_why", ret->config_why, sizeof(ret->config_why));
	text_make_printable(ret->config_why);
	ret->clock_known = json_object_get(f.j, "clock");
	if (ret->clock_known)
		ret->clock_s = read_int(&f, "clock", -CLOCK_MAX_S, CLOCK_MAX_S);
	read_wireguard(&f, ret);
	return end(&f);
}

int record_block_read(const void *data, size_t len, struct record_block *ret, struct error *e)
{
	struct fields f;

	memset(ret, 0, sizeof(*ret));
	if (begin(data, len, &f, e))
		return end(&f);
	read_prefix(&f, &ret->prefix);
	read_name(&f, "node", ret->node);
	read_id(&f, ret->id);
	return end(&f);
}

int record_address_read(const void *data, size_t len, struct record_address *ret, struct error *e)
{
	struct fields f;

	memset(ret, 0, sizeof(*ret));
	if (begin(data, len, &f, e))
		return end(&f);
	read_addr(&f, "address", &ret->addr);
	if (addr_is_zero(&ret->addr))
		bad(&f, "address", "an address");
	read_name(&f, "node", ret->node);
	read_name(&f, "app", ret->app);
	read_id(&f, ret->id);
	ret->service = json_is_true(json_object_get(f.j, "service"));
	return end(&f);
}

int record_pool_read(const void *data, size_t len, struct prefix *ret, struct error *e)
{
	struct fields f;

	memset(ret, 0, sizeof(*ret));
	if (begin(data, len, &f, e))
		return end(&f);
	read_prefix(&f, ret);
	return end(&f);
}

int record_config_read(const void *data, size_t len, struct record_config *ret, struct error *e)
{
	const char *text;
	struct fields f;

	memset(ret, 0, sizeof(*ret));
	if (begin_long(data, len, RECORD_CONFIG_MAX, &f, e))
		return end(&f);
	ret->revision = read_int(&f, "revision", 1, INT64_MAX / 2);
	ret->at = read_int(&f, "at", 0, INT64_MAX / 2);
	if (json_object_get(f.j, "of"))
		ret->of = read_int(&f, "of", 1, INT64_MAX / 2);
	read_name(&f, "node", ret->node);
	read_id(&f, ret->id);
	text = json_string_value(json_object_get(f.j, "text"));
	if (!text)
		bad(&f, "text", "a text");
	if (!f.r && text)
		ret->text = strdup(text);
	if (!f.r && !ret->text)
		f.r = error_set(e, -ENOMEM, "out of memory");
	return end(&f);
}

void record_config_free(struct record_config *c)
{
	free(c->text);
	memset(c, 0, sizeof(*c));
}

int record_config_now_read(const void *data, size_t len, int64_t *revision, struct error *e)
{
	struct fields f;

	*revision = 0;
	if (!begin(data, len, &f, e))
		*revision = read_int(&f, "revision", 1, INT64_MAX / 2);
	return end(&f);
}

int record_secret_read(const void *data, size_t len, struct ax_across_key *ret, struct error *e)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2 * 16 + 1] = "";
	struct fields f;

	memset(ret, 0, sizeof(*ret));
	if (begin(data, len, &f, e))
		return end(&f);
	ret->id = (uint32_t)read_int(&f, "id", 1, 255);
	read_text(&f, "key", hex, sizeof(hex));
	if (!f.r && strspn(hex, digits) != sizeof(hex) - 1)
		bad(&f, "key", "a key of 32 hexadecimal digits");
	for (unsigned i = 0; !f.r && i < 32; i++) {
		uint64_t digit = (uint64_t)(strchr(digits, hex[i]) - digits);

		ret->k[i / 16] |= digit << (i / 2 % 8 * 8 + (i % 2 ? 0 : 4));
	}
	return end(&f);
}

static void read_ports(struct fields *f, struct record_app *ret)
{
	json_t *list = json_object_get(f->j, "ports"), *one;
	size_t n = json_array_size(list), i;

	if (!json_is_array(list) || n > RECORD_PORTS_MAX) {
		bad(f, "ports", "a list of ports");
		return;
	}
	ret->ports = calloc(n + 1, sizeof(*ret->ports));
	if (!ret->ports) {
		f->r = error_set(f->e, -ENOMEM, "out of memory");
		return;
	}
	json_array_foreach (list, i, one) {
		const char *proto = json_string_value(json_object_get(one, "proto"));
		json_int_t port = json_integer_value(json_object_get(one, "port"));
		json_int_t via = json_integer_value(json_object_get(one, "via"));
		json_int_t via6 = json_integer_value(json_object_get(one, "via6"));
		json_int_t family = json_integer_value(json_object_get(one, "family"));

		if (port < 1 || port > 65535 || !proto || via < 0 || via > 65535 || via6 < 0 ||
		    via6 > 65535) {
			bad(f, "ports", "a list of ports");
			return;
		}
		if (!streq(proto, "tcp") && !streq(proto, "udp"))
			continue; /* a newer one */
		ret->ports[ret->n_ports++] = (struct other_port){
			.port = (uint16_t)port,
			.proto = streq(proto, "udp") ? IPPROTO_UDP : IPPROTO_TCP,
			.only = family == 4 || family == 6 ? (uint8_t)family : 0,
			.via = (uint16_t)via,
			.via6 = (uint16_t)via6};
	}
}

static void read_states(struct fields *f, struct record_app *ret)
{
	json_t *list = json_object_get(f->j, "services"), *one;
	size_t n = json_array_size(list), i;

	ret->stopping = json_is_true(json_object_get(f->j, "stopping"));
	ret->exported = json_is_true(json_object_get(f->j, "exported"));
	if (!list)
		return; /* nothing, or an older one */
	if (!json_is_array(list) || n > RECORD_STATES_MAX) {
		bad(f, "services", "a list of services");
		return;
	}
	ret->states = calloc(n + 1, sizeof(*ret->states));
	if (!ret->states) {
		f->r = error_set(f->e, -ENOMEM, "out of memory");
		return;
	}
	json_array_foreach (list, i, one) {
		const char *name = json_string_value(json_object_get(one, "service"));
		json_int_t family = json_integer_value(json_object_get(one, "family"));
		struct other_state *s = &ret->states[ret->n_states];

		if (!name || want_name(name)) {
			bad(f, "services", "a list of services");
			return;
		}
		if (family != 4 && family != 6)
			continue; /* a newer one */
		snprintf(s->service, sizeof(s->service), "%s", name);
		s->v4 = family == 4;
		s->checked = json_is_true(json_object_get(one, "checked"));
		s->down = json_is_true(json_object_get(one, "down"));
		s->drained = json_is_true(json_object_get(one, "drained"));
		other_state_why(s, json_string_value(json_object_get(one, "why")));
		ret->n_states++;
	}
}

static void read_labels(struct fields *f, struct record_app *ret)
{
	const char *text = json_string_value(json_object_get(f->j, "labels"));
	struct labels l = {0};
	struct error e;
	int r = 0;

	if (!text || strlen(text) > RECORD_LABELS_MAX ||
	    (*text && (r = labels_parse(text, &l, &e))))
		bad(f, "labels", "labels");
	else
		ret->labels = labels_format(&l);
	labels_free(&l);
	if (r == -ENOMEM || (!f->r && !ret->labels))
		f->r = error_set(f->e, -ENOMEM, "out of memory");
}

int record_app_read(const void *data, size_t len, struct record_app *ret, struct error *e)
{
	const char *net;
	struct fields f;

	memset(ret, 0, sizeof(*ret));
	if (begin(data, len, &f, e))
		return end(&f);
	read_name(&f, "node", ret->node);
	read_name(&f, "name", ret->name);
	ret->id = (uint32_t)read_int(&f, "id", 1, UINT32_MAX);
	ret->since = read_int(&f, "since", 0, INT64_MAX / 2);
	read_addr(&f, "ip4", &ret->ip4);
	read_addr(&f, "ip6", &ret->ip6);
	net = json_string_value(json_object_get(f.j, "net"));
	ret->host = net && streq(net, "host");
	if (!f.r)
		read_labels(&f, ret);
	if (!f.r)
		read_ports(&f, ret);
	if (!f.r)
		read_states(&f, ret);
	if (end(&f))
		record_app_free(ret);
	return f.r;
}

void record_app_free(struct record_app *a)
{
	free(a->labels);
	free(a->ports);
	free(a->states);
	memset(a, 0, sizeof(*a));
}

/* --- keys --- */

char *record_root(const char *cluster, char *buf)
{
	snprintf(buf, RECORD_KEY_MAX, "/ax/%.63s/", cluster);
	return buf;
}

char *record_pool_key(const char *cluster, bool v4, char *buf)
{
	snprintf(buf, RECORD_KEY_MAX, "/ax/%.63s/pool%s", cluster, v4 ? "" : "6");
	return buf;
}

char *record_secret_key(const char *cluster, char *buf)
{
	snprintf(buf, RECORD_KEY_MAX, "/ax/%.63s/key", cluster);
	return buf;
}

char *record_node_key(const char *cluster, const char *node, char *buf)
{
	snprintf(buf, RECORD_KEY_MAX, "/ax/%.63s/nodes/%.63s", cluster, node);
	return buf;
}

char *record_block_key(const char *cluster, const struct prefix *p, char *buf)
{
	char text[ADDR_STRLEN], *slash;

	slash = strchr(prefix_format(p, text), '/');
	if (slash)
		*slash = '-';
	snprintf(buf, RECORD_KEY_MAX, "/ax/%.63s/blocks%s/%.63s", cluster,
		 addr_is_v4(&p->addr) ? "" : "6", text);
	return buf;
}

char *record_app_key(const char *cluster, const char *node, uint32_t id, char *buf)
{
	snprintf(buf, RECORD_KEY_MAX, "/ax/%.63s/apps/%.63s/%u", cluster, node, id);
	return buf;
}

char *record_config_key(const char *cluster, int64_t revision, char *buf)
{
	snprintf(buf, RECORD_KEY_MAX, "/ax/%.63s/configs/%lld", cluster, (long long)revision);
	return buf;
}

char *record_config_now_key(const char *cluster, char *buf)
{
	snprintf(buf, RECORD_KEY_MAX, "/ax/%.63s/config", cluster);
	return buf;
}

char *record_address_key(const char *cluster, const struct ax_addr *addr, char *buf)
{
	char text[ADDR_STRLEN];

	snprintf(buf, RECORD_KEY_MAX, "/ax/%.63s/addresses/%.63s", cluster,
		 addr_format(addr, text));
	return buf;
}

enum record_kind record_kind(const char *cluster, const void *key, size_t len)
{
	static const struct {
		const char *below;
		enum record_kind kind;
	} kinds[] = {{"nodes/", RECORD_NODE},	     {"blocks/", RECORD_BLOCK},
		     {"blocks6/", RECORD_BLOCK},     {"apps/", RECORD_APP},
		     {"addresses/", RECORD_ADDRESS}, {"configs/", RECORD_CONFIG}};
	char root[RECORD_KEY_MAX];
	size_t at = strlen(record_root(cluster, root));
	const char *rest = (const char *)key + at;

	if (len < at || len >= RECORD_KEY_MAX || memcmp(key, root, at) != 0 || memchr(key, 0, len))
		return RECORD_OTHER;
	len -= at;
	if (len == 4 && memcmp(rest, "pool", 4) == 0)
		return RECORD_POOL;
	if (len == 5 && memcmp(rest, "pool6", 5) == 0)
		return RECORD_POOL6;
	if (len == 6 && memcmp(rest, "config", 6) == 0)
		return RECORD_CONFIG_NOW;
	if (len == 3 && memcmp(rest, "key", 3) == 0)
		return RECORD_SECRET;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t n = strlen(kinds[i].below);

		if (len > n && memcmp(rest, kinds[i].below, n) == 0)
			return kinds[i].kind;
	}
	return RECORD_OTHER;
}
