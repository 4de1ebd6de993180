/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An app's specification to JSON and back: for the control socket and for the app's record. */
#include "config/expose.h"
#include "config/limits.h"
#include "config/spec.h"
#include "control/control.h"

static int set_string(json_t *j, const char *key, const char *value)
{
	return value ? json_object_set_new(j, key, json_string(value)) : 0;
}

static int set_addr(json_t *j, const char *key, const struct ax_addr *a)
{
	char buf[ADDR_STRLEN];

	return addr_is_zero(a) ? 0 : set_string(j, key, addr_format(a, buf));
}

static json_t *strv_to_json(const struct strv *s)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < s->n; i++)
		if (json_array_append_new(a, json_string(s->v[i]))) {
			json_decref(a);
			return NULL;
		}
	return a;
}

static int set_number(json_t *j, const char *key, uint64_t value)
{
	return value ? json_object_set_new(j, key, json_integer((json_int_t)value)) : 0;
}

/* Only what is there: an agent that does not know it is not asked for it. */
static int limits_to_json(json_t *j, const struct app_spec *s)
{
	int bad = set_number(j, "memory", s->memory) || set_number(j, "cpus_milli", s->cpus) ||
		  set_number(j, "pids", s->pids);

	if (!bad && s->volumes.n)
		bad = json_object_set_new(j, "volumes", strv_to_json(&s->volumes));
	if (!bad && s->read_only)
		bad = json_object_set_new(j, "read_only", json_true());
	return bad;
}

json_t *control_expose_to_json(const struct expose_list *l)
{
	json_t *a = json_array();
	char text[EXPOSE_STRLEN];

	for (size_t i = 0; a && i < l->n; i++)
		if (json_array_append_new(a, json_string(expose_format(&l->v[i], text)))) {
			json_decref(a);
			return NULL;
		}
	return a;
}

static int egress_to_json(json_t *j, const struct egress *e)
{
	bool listed = e->mode == EGRESS_LIST;
	int bad = json_object_set_new(j, "egress",
				      e->mode == EGRESS_NONE ? json_string("none")
				      : listed		     ? json_string("list")
							     : json_boolean(e->mode == EGRESS_ALL));

	if (!bad && listed)
		bad = json_object_set_new(j, "egress_to", strv_to_json(&e->to));
	if (!bad && e->audit)
		bad = json_object_set_new(j, "egress_audit", json_true());
	return bad || set_addr(j, "egress_source4", &e->source4) ||
	       set_addr(j, "egress_source6", &e->source6);
}

json_t *control_spec_to_json(const struct app_spec *s)
{
	autofree char *labels = labels_format(&s->labels);
	json_t *j = json_object();
	int bad = !j || !labels;

	bad = bad || set_string(j, "name", s->name) || set_addr(j, "ip4", &s->ip4) ||
	      set_addr(j, "ip6", &s->ip6) || set_string(j, "labels", labels) ||
	      set_string(j, "user", s->user) || set_string(j, "directory", s->directory) ||
	      set_string(j, "net", net_mode_name(s->net)) ||
	      set_string(j, "restart", restart_policy_name(s->restart)) ||
	      set_string(j, "splice", splice_mode_name(s->splice)) ||
	      json_object_set_new(j, "env", strv_to_json(&s->env)) ||
	      json_object_set_new(j, "command", strv_to_json(&s->command)) ||
	      json_object_set_new(j, "wait_ms", json_integer(s->wait_ms)) ||
	      egress_to_json(j, &s->egress) ||
	      json_object_set_new(j, "splice_emulation", json_boolean(s->splice_emulation)) ||
	      (s->expose.n &&
	       json_object_set_new(j, "expose", control_expose_to_json(&s->expose))) ||
	      json_object_set_new(j, "detach", json_boolean(s->detach));
	bad = bad || limits_to_json(j, s);
	if (!bad)
		return j;
	json_decref(j);
	return NULL;
}

static int read_name(const json_t *v, struct app_spec *s, struct error *e)
{
	const char *t = json_string_value(v);
	int r = t ? spec_check_name(t, e) : -EINVAL;

	if (r)
		return r;
	s->name = strdup(t);
	return s->name ? 0 : -ENOMEM;
}

static int read_addr(const json_t *v, struct ax_addr *ret, bool v4)
{
	const char *t = json_string_value(v);

	if (!t || addr_parse(t, ret))
		return -EINVAL;
	return addr_is_v4(ret) == v4 ? 0 : -EINVAL;
}

static int read_ip4(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	return read_addr(v, &s->ip4, true);
}

static int read_ip6(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	return read_addr(v, &s->ip6, false);
}

static int read_labels(const json_t *v, struct app_spec *s, struct error *e)
{
	const char *t = json_string_value(v);

	if (!t)
		return -EINVAL;
	return *t ? labels_parse(t, &s->labels, e) : 0;
}

static int read_text(const json_t *v, char **ret)
{
	const char *t = json_string_value(v);

	if (!t || !*t)
		return -EINVAL;
	*ret = strdup(t);
	return *ret ? 0 : -ENOMEM;
}

static int read_user(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	return read_text(v, &s->user);
}

static int read_directory(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	return read_text(v, &s->directory);
}

static int read_net(const json_t *v, struct app_spec *s, struct error *e)
{
	const char *t = json_string_value(v);

	return t ? spec_parse_net(t, &s->net, e) : -EINVAL;
}

static int read_restart(const json_t *v, struct app_spec *s, struct error *e)
{
	const char *t = json_string_value(v);

	return t ? spec_parse_restart(t, &s->restart, e) : -EINVAL;
}

static int read_splice(const json_t *v, struct app_spec *s, struct error *e)
{
	const char *t = json_string_value(v);

	return t ? spec_parse_splice(t, &s->splice, e) : -EINVAL;
}

static int read_strv(const json_t *v, struct strv *ret)
{
	size_t i;
	json_t *item;

	if (!json_is_array(v))
		return -EINVAL;
	json_array_foreach (v, i, item) {
		const char *t = json_string_value(item);
		int r = t ? strv_add(ret, t) : -EINVAL;

		if (r)
			return r;
	}
	return 0;
}

static int read_env(const json_t *v, struct app_spec *s, struct error *e)
{
	int r = read_strv(v, &s->env);

	for (size_t i = 0; !r && i < s->env.n; i++)
		if (!strchr(s->env.v[i], '=') || s->env.v[i][0] == '=')
			r = error_set(e, -EINVAL, "env holds '%.100s': give KEY=VALUE",
				      s->env.v[i]);
	return r;
}

static int read_command(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	return read_strv(v, &s->command);
}

static int read_wait(const json_t *v, struct app_spec *s, struct error *e)
{
	json_int_t n = json_integer_value(v);

	(void)e;
	if (!json_is_integer(v) || n < 0 || n > UINT32_MAX)
		return -EINVAL;
	s->wait_ms = (uint32_t)n;
	return 0;
}

static int read_egress(const json_t *v, struct app_spec *s, struct error *e)
{
	const char *t = json_string_value(v);

	(void)e;
	if (t)
		s->egress.mode = streq(t, "none") ? EGRESS_NONE : EGRESS_LIST;
	else if (json_is_true(v))
		s->egress.mode = EGRESS_ALL;
	return json_is_boolean(v) || (t && (streq(t, "none") || streq(t, "list"))) ? 0 : -EINVAL;
}

static int read_egress_to(const json_t *v, struct app_spec *s, struct error *e)
{
	CLEANUP(strv_free) struct strv texts = {0};
	int r = read_strv(v, &texts);

	if (!r && texts.n > EGRESS_ENTRIES_MAX)
		return -EINVAL;
	for (size_t i = 0; i < texts.n && !r; i++) {
		const char *want = want_egress_entry(texts.v[i], NULL, &r);

		if (want)
			r = error_set(e, -EINVAL, "'%.200s' is no egress: give %s", texts.v[i],
				      want);
		r = r ? r : strv_add(&s->egress.to, texts.v[i]);
	}
	return r;
}

static int read_egress_audit(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	s->egress.audit = json_is_true(v);
	return json_is_boolean(v) ? 0 : -EINVAL;
}

static int read_egress_source4(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	return read_addr(v, &s->egress.source4, true);
}

static int read_egress_source6(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	return read_addr(v, &s->egress.source6, false);
}

static int read_detach(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	s->detach = json_is_true(v);
	return json_is_boolean(v) ? 0 : -EINVAL;
}

static int read_splice_emulation(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	s->splice_emulation = json_is_true(v);
	return json_is_boolean(v) ? 0 : -EINVAL;
}

static int read_number(const json_t *v, uint64_t max, uint64_t *ret)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < 0 || (uint64_t)n > max)
		return -EINVAL;
	*ret = (uint64_t)n;
	return 0;
}

static int read_memory(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	return read_number(v, CONFIG_MEMORY_MAX, &s->memory);
}

static int read_cpus(const json_t *v, struct app_spec *s, struct error *e)
{
	uint64_t n = 0;
	int r = read_number(v, CONFIG_CPUS_MAX * 1000ull, &n);

	(void)e;
	s->cpus = (uint32_t)n;
	return r;
}

static int read_pids(const json_t *v, struct app_spec *s, struct error *e)
{
	uint64_t n = 0;
	int r = read_number(v, CONFIG_PIDS_MAX, &n);

	(void)e;
	s->pids = (uint32_t)n;
	return r;
}

static int read_volumes(const json_t *v, struct app_spec *s, struct error *e)
{
	int r = read_strv(v, &s->volumes);

	for (size_t i = 0; !r && i < s->volumes.n; i++) {
		struct volume parts;
		const char *want = want_volume(s->volumes.v[i], &parts);

		if (want)
			r = error_set(e, -EINVAL, "'%.200s' is no volume: give %s", s->volumes.v[i],
				      want);
	}
	return r;
}

static int read_read_only(const json_t *v, struct app_spec *s, struct error *e)
{
	(void)e;
	s->read_only = json_is_true(v);
	return json_is_boolean(v) ? 0 : -EINVAL;
}

static int read_expose(const json_t *v, struct app_spec *s, struct error *e)
{
	CLEANUP(strv_free) struct strv texts = {0};
	int r = read_strv(v, &texts);

	for (size_t i = 0; i < texts.n && !r; i++)
		r = spec_parse_expose(texts.v[i], &s->expose, e);
	return r;
}

static const struct {
	const char *key;
	int (*read)(const json_t *v, struct app_spec *s, struct error *e);
} spec_keys[] = {
	{"name", read_name},
	{"ip4", read_ip4},
	{"ip6", read_ip6},
	{"labels", read_labels},
	{"user", read_user},
	{"directory", read_directory},
	{"net", read_net},
	{"restart", read_restart},
	{"env", read_env},
	{"command", read_command},
	{"wait_ms", read_wait},
	{"egress", read_egress},
	{"egress_to", read_egress_to},
	{"egress_audit", read_egress_audit},
	{"egress_source4", read_egress_source4},
	{"egress_source6", read_egress_source6},
	{"detach", read_detach},
	{"splice", read_splice},
	{"splice_emulation", read_splice_emulation},
	{"memory", read_memory},
	{"cpus_milli", read_cpus},
	{"pids", read_pids},
	{"volumes", read_volumes},
	{"read_only", read_read_only},
	{"expose", read_expose},
};

static int read_key(const char *key, const json_t *v, struct app_spec *s, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(spec_keys); i++) {
		int r;

		if (!streq(key, spec_keys[i].key))
			continue;
		e->code = 0;
		r = spec_keys[i].read(v, s, e);
		if (r && !e->code)
			error_set(e, r, "an app's '%s' has a value that cannot be used", key);
		return r;
	}
	return error_set(e, -EINVAL, "an app has no '%.40s'", key);
}

int control_spec_from_json(const json_t *j, struct app_spec *ret, struct error *e)
{
	CLEANUP(app_spec_free) struct app_spec s = {0};
	struct error scratch;
	const char *key;
	json_t *v;

	if (!e)
		e = &scratch;
	if (!json_is_object(j))
		return error_set(e, -EINVAL, "an app's specification is not a JSON object");
	json_object_foreach ((json_t *)(uintptr_t)j, key, v) {
		int r = read_key(key, v, &s, e);

		if (r)
			return r;
	}
	*ret = s;
	memset(&s, 0, sizeof(s));
	return 0;
}

json_t *json_addr(const struct ax_addr *addr)
{
	char text[ADDR_STRLEN];

	return addr_is_zero(addr) ? json_null() : json_string(addr_format(addr, text));
}
