/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rules/field.h"
#include "tools/xdp/filter.h"

static const char *condition_key(size_t i)
{
	for (size_t at = 0; at < FIELD_KEYS_MAX * AX_FIELDS; at++) {
		const char *name = rule_fields[at / FIELD_KEYS_MAX].keys[at % FIELD_KEYS_MAX].name;

		if (name && !i--)
			return name;
	}
	return NULL;
}

const struct words cmd_xdp_filter_words = {.nth = condition_key};

static bool is_condition(const char *key)
{
	const char *name;

	for (size_t i = 0; (name = condition_key(i)); i++)
		if (streq(name, key))
			return true;
	return false;
}

/* A key of a rule that says what happens to a packet. */
static bool is_other(const char *key)
{
	const char *name;

	for (size_t i = 0; (name = rule_key_name(i)); i++)
		if (streq(name, key) && !is_condition(key))
			return true;
	return false;
}

static char *join(char **words, size_t n)
{
	size_t len = 1, at = 0;
	char *ret;

	for (size_t i = 0; i < n; i++)
		len += strlen(words[i]) + 1;
	ret = calloc(1, len);
	for (size_t i = 0; ret && i < n; i++)
		at += (size_t)sprintf(ret + at, "%s%s", i ? " " : "", words[i]);
	return ret;
}

int cmd_xdp_filter(char **words, size_t n, struct rule *ret, char **text, struct error *e)
{
	autofree const char **all = calloc(n + 2, sizeof(*all));
	int r;

	*text = NULL;
	if (!n)
		return 0;
	for (size_t i = 0; i + 1 < n;) {
		if (streq(words[i], rule_field_name(RULE_FIELD_GROUP)))
			return error_set(e, -EINVAL,
					 "%s says which interfaces a rule is for: here it is one, "
					 "whatever its group",
					 words[i]);
		if (is_other(words[i]))
			return error_set(e, -EINVAL,
					 "'%.60s' says what happens to a packet: here rules' "
					 "conditions say which packets to look at",
					 words[i]);
		i += 1 + rule_value_words(words[i], (const char *const *)words + i + 1, n - i - 1);
	}
	*text = join(words, n);
	if (!all || !*text)
		return error_set(e, -ENOMEM, "out of memory");
	all[0] = "action";
	all[1] = ax_verdict_names[AX_VERDICT_PASS];
	memcpy(all + 2, words, n * sizeof(*all));
	r = rule_parse(all, n + 2, ret, e);
	if (r) {
		free(*text);
		*text = NULL;
	}
	return r;
}
