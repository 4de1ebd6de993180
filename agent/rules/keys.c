// SPDX-License-Identifier: GPL-2.0-or-later
/* The keys of rules: finding them, reading their values, and whole rules from words. */
#include "rules/key.h"
#include "rules/priv.h"

#include <netinet/in.h>

/* --- values of what a rule does --- */

static int set_name(struct rule *r, const char *value, struct rule_fault *f)
{
	(void)f;
	if (!value_is_name(value) || streq(value, "default") ||
	    strspn(value, "0123456789") == strlen(value))
		return -EINVAL;
	r->name = strdup(value);
	return r->name ? 0 : -ENOMEM;
}

static int read_mac(struct rule *r, uint16_t flag, uint8_t to[6], const char *value)
{
	if (value_mac(value, to) < 0)
		return -EINVAL;
	if (flag == AX_REWRITE_SMAC && (to[0] & 1)) /* a group sends nothing */
		return -EINVAL;
	r->rewrite |= flag;
	return 0;
}

static int set_smac(struct rule *r, const char *value, struct rule_fault *f)
{
	(void)f;
	return read_mac(r, AX_REWRITE_SMAC, r->smac, value);
}

static int set_dmac(struct rule *r, const char *value, struct rule_fault *f)
{
	(void)f;
	return read_mac(r, AX_REWRITE_DMAC, r->dmac, value);
}

static int set_to(struct rule *r, const char *value, struct rule_fault *f)
{
	struct ax_addr a;
	uint32_t host;

	(void)f;
	if (addr_parse(value, &a) < 0)
		return -EINVAL;
	host = ntohl(a.w[3]);
	if (addr_is_v4(&a) ? host == INADDR_ANY || host == INADDR_BROADCAST || IN_MULTICAST(host)
			   : addr_is_zero(&a) || IN6_IS_ADDR_MULTICAST(a.b))
		return -EINVAL;
	r->to = a;
	r->rewrite |= AX_REWRITE_DST;
	return 0;
}

static int set_to_port(struct rule *r, const char *value, struct rule_fault *f)
{
	int port = port_parse(value);

	(void)f;
	if (port < 0)
		return port;
	r->to_port = (uint16_t)port;
	r->rewrite |= AX_REWRITE_DPORT;
	return 0;
}

static int set_checksum(struct rule *r, const char *value, struct rule_fault *f)
{
	(void)f;
	if (!streq(value, "recompute"))
		return -EINVAL;
	r->checksum = true;
	return 0;
}

static int set_sample(struct rule *r, const char *value, struct rule_fault *f)
{
	uint64_t n;

	(void)f;
	if (value_number(value, 1000000000, &n) < 0 || n == 0)
		return -EINVAL;
	r->sample = (uint32_t)n;
	return 0;
}

static int set_log(struct rule *r, const char *value, struct rule_fault *f)
{
	(void)f;
	return value_bool(value, &r->log);
}

static int set_trigger(struct rule *r, const char *value, struct rule_fault *f)
{
	(void)f;
	return value_bool(value, &r->trigger);
}

/* --- the keys --- */

#define WANT_BOOL "yes or no"

/* By their numbers; in the order of a rule's line, but for the fields' keys behind the name. */
static const struct rule_key plain[KEY_FIELDS] = {
	[KEY_NAME] = {.number = KEY_NAME,
		      .name = "name",
		      .want = "a name of 1 to 63 letters, digits and . _ - : that is neither a "
			      "number nor \"default\"",
		      .set = set_name},
	[KEY_ACTION] =
		{.number = KEY_ACTION,
		 .name = "action",
		 .want = "pass, drop, reflect, redirect IFACE, cpu N, balance NAME, route or "
			 "challenge",
		 .set = rule_parse_action},
	[KEY_SMAC] = {.number = KEY_SMAC,
		      .name = "smac",
		      .want = "a single Ethernet address such as 02:00:00:00:00:01",
		      .set = set_smac},
	[KEY_DMAC] = {.number = KEY_DMAC, .name = "dmac", .want = WANT_MAC, .set = set_dmac},
	[KEY_TO] = {.number = KEY_TO,
		    .name = "to",
		    .want = "an IPv4 or IPv6 address of one host",
		    .set = set_to},
	[KEY_TO_PORT] = {.number = KEY_TO_PORT,
			 .name = "to-port",
			 .want = "a port of 1 to 65535",
			 .set = set_to_port},
	[KEY_CHECKSUM] = {.number = KEY_CHECKSUM,
			  .name = "checksum",
			  .want = "recompute",
			  .set = set_checksum},
	[KEY_CAPTURE] = {.number = KEY_CAPTURE,
			 .name = "capture",
			 .want = "BYTES[,ring][,slot=NAME][,frame] with 1 to 9216 bytes",
			 .list = true,
			 .set = rule_parse_capture},
	[KEY_RATE] = {.number = KEY_RATE,
		      .name = "rate",
		      .want = "a rate such as 1000pps or 10mbit, then burst=N and per=src if "
			      "wanted",
		      .list = true,
		      .set = rule_parse_rate},
	[KEY_LEARN] = {.number = KEY_LEARN,
		       .name = "learn",
		       .want = "a set and a time such as @bad,10m, then src/24/64, dst or flow, "
			       "and above-rate if wanted",
		       .list = true,
		       .set = rule_parse_learn},
	[KEY_SAMPLE] = {.number = KEY_SAMPLE,
			.name = "sample",
			.want = "a number of 1 to 1000000000: one packet of so many",
			.set = set_sample},
	[KEY_LOG] = {.number = KEY_LOG, .name = "log", .want = WANT_BOOL, .set = set_log},
	[KEY_TRIGGER] = {.number = KEY_TRIGGER,
			 .name = "trigger",
			 .want = WANT_BOOL,
			 .set = set_trigger},
};

const struct rule_key *rule_key(enum rule_key_number number)
{
	return &plain[number];
}

/* Calls f with each field's key until it returns true. */
static bool each_field_key(bool (*f)(void *arg, const struct rule_key *key), void *arg)
{
	unsigned number = KEY_FIELDS;

	for (size_t i = 0; i < RULE_FIELDS; i++) {
		const struct rule_field *row = &rule_fields[i];

		for (size_t k = 0; k < FIELD_KEYS_MAX && row->keys[k].name; k++) {
			const struct rule_key key = {.number = number++,
						     .name = row->keys[k].name,
						     .want = row->keys[k].want,
						     .list = true,
						     .field = row,
						     .field_key = &row->keys[k]};

			if (f(arg, &key))
				return true;
		}
	}
	return false;
}

struct search {
	const char *name;
	struct rule_key *ret;
};

static bool is_wanted(void *arg, const struct rule_key *key)
{
	struct search *s = arg;

	if (!streq(key->name, s->name))
		return false;
	*s->ret = *key;
	return true;
}

int rule_key_find(const char *name, struct rule_key *ret)
{
	struct search s = {name, ret};

	for (unsigned i = 0; i < KEY_FIELDS; i++) {
		if (!streq(plain[i].name, name))
			continue;
		*ret = plain[i];
		return 0;
	}
	return each_field_key(is_wanted, &s) ? 0 : -ENOENT;
}

struct names {
	const char **v;
	size_t n;
};

static bool add_name(void *arg, const struct rule_key *key)
{
	struct names *names = arg;

	names->v[names->n++] = key->name;
	return false;
}

size_t rule_key_names(const char *names[RULE_KEYS_MAX])
{
	struct names all = {names, 0};

	add_name(&all, &plain[KEY_NAME]);
	each_field_key(add_name, &all);
	for (unsigned i = KEY_NAME + 1; i < KEY_FIELDS; i++)
		add_name(&all, &plain[i]);
	return all.n;
}

const char *rule_key_name(size_t i)
{
	const char *names[RULE_KEYS_MAX];

	return i < rule_key_names(names) ? names[i] : NULL;
}

/* --- setting them --- */

int rule_set_value(struct rule *r, const struct rule_key *key, const char *value,
		   struct rule_fault *f)
{
	char quoted[QUOTED_LEN];
	int code;

	*f = (struct rule_fault){.rule = SIZE_MAX};
	code = key->field ? field_read(key->field, key->field_key, &r->in[key->field->number],
				       value, f)
			  : key->set(r, value, f);
	if (code == -EINVAL && !*f->found)
		snprintf(f->found, sizeof(f->found), "%s",
			 fault_quote(value, strlen(value), quoted));
	if (code == -EINVAL && !*f->want)
		snprintf(f->want, sizeof(f->want), "%s", key->want);
	return code;
}

static int unknown_key(const char *key, struct error *e)
{
	const char *names[RULE_KEYS_MAX];
	char quoted[QUOTED_LEN], hint[96], all[400];
	size_t n = rule_key_names(names), len = 0;

	for (size_t i = 0; i < n && len < sizeof(all); i++)
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s",
					i == 0	     ? ""
					: i == n - 1 ? " or "
						     : ", ",
					names[i]);
	return error_set(e, -ENOENT, "%s is no key of a rule: use %s%s",
			 fault_quote(key, strlen(key), quoted), all,
			 value_hint(key, names, n, hint));
}

int rule_set(struct rule *r, uint64_t *given, const char *name, const char *value, struct error *e)
{
	struct rule_fault f;
	struct rule_key key;
	int code;

	if (rule_key_find(name, &key) < 0)
		return unknown_key(name, e);
	if (*given & 1ull << key.number)
		return error_set(e, -EEXIST, "%s is there twice: give each key once%s", name,
				 key.list ? ", several values with commas" : "");
	code = rule_set_value(r, &key, value, &f);
	if (code == -EINVAL)
		return error_set(e, code, "%s %s is not valid: use %s", name, f.found, f.want);
	if (code < 0)
		return error_set(e, code, "there is no memory for the rule");
	*given |= 1ull << key.number;
	return 0;
}

static int check_rule(const struct rule *r, uint64_t given, struct error *e)
{
	struct rule_fault f;
	int code = rule_find_fault(r, given, &f);

	if (code < 0)
		return error_set(e, code, "%s is not valid: use %s", f.found, f.want);
	return 0;
}

/* The words of an action that takes one more. */
static bool takes_target(const char *action)
{
	return streq(action, "redirect") || streq(action, "cpu") || streq(action, "balance");
}

size_t rule_value_words(const char *key, const char *const *words, size_t n)
{
	size_t i = 1;

	if (streq(key, rule_key(KEY_ACTION)->name))
		return n > 1 && takes_target(words[0]) ? 2 : 1;
	while (streq(key, rule_field_name(AX_FIELD_PAYLOAD)) && i < n && payload_goes_on(words[i]))
		i++;
	return i;
}

/* With spaces between; malloc'ed. */
static char *join_words(const char *const *words, size_t n)
{
	char *joined = NULL;
	size_t size;
	FILE *f = open_memstream(&joined, &size);

	if (!f)
		return NULL;
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%s", i ? " " : "", words[i]);
	if (fclose(f) == 0)
		return joined;
	free(joined);
	return NULL;
}

/* One key and its value. Returns how many words it took. */
static int parse_pair(const char *const *words, size_t n, struct rule *r, uint64_t *given,
		      struct error *e)
{
	autofree char *joined = NULL;
	struct rule_key key;
	size_t n_value;
	int code;

	if (rule_key_find(words[0], &key) < 0)
		return unknown_key(words[0], e);
	if (n < 2)
		return error_set(e, -EINVAL, "%s has no value: use %s", key.name, key.want);
	n_value = rule_value_words(key.name, words + 1, n - 1);
	joined = join_words(words + 1, n_value);
	if (!joined)
		return error_set(e, -ENOMEM, "there is no memory for the rule");
	code = rule_set(r, given, key.name, joined, e);
	return code < 0 ? code : (int)n_value + 1;
}

int rule_parse(const char *const *words, size_t n, struct rule *r, struct error *e)
{
	uint64_t given = 0;
	int code = 0;

	*r = (struct rule){0};
	for (size_t i = 0; i < n && code >= 0; i += (size_t)code) {
		code = parse_pair(words + i, n - i, r, &given, e);
		if (code < 0)
			break;
	}
	if (code >= 0)
		code = check_rule(r, given, e);
	if (code < 0)
		rule_free(r);
	return code < 0 ? code : 0;
}
