// SPDX-License-Identifier: GPL-2.0-or-later
/* What of a session is kept with its maps, so that others can show what comes out: JSON. */
#include <jansson.h>

#include "probes/session/priv.h"

static const char not_kept[] = "it is not known";

static inline void json_unref(json_t **j)
{
	json_decref(*j);
}
#define autojson CLEANUP(json_unref)

/* --- writing --- */

/* Numbers of the nodes and the enumerators, and the names with a newline for each NUL. */
static json_t *shape_json(const struct shape *s)
{
	json_t *nodes = json_array(), *enums = json_array();
	autofree char *names = calloc(1, s->names_len + 1);

	for (size_t i = 0; i < s->n; i++) {
		const struct shape_node *n = &s->v[i];

		json_array_append_new(nodes, json_pack("[i, i, i, i, i, i, i, I, I, I, I, I, b]",
						       n->kind, n->bit, n->bits, n->is_signed,
						       n->followed, n->ptr_at, n->len_at,
						       (json_int_t)n->offset, (json_int_t)n->size,
						       (json_int_t)n->name, (json_int_t)n->first,
						       (json_int_t)n->count, n->absent != NULL));
	}
	for (size_t i = 0; i < s->n_enums; i++)
		json_array_append_new(enums, json_pack("[I, I]", (json_int_t)s->enums[i].value,
						       (json_int_t)s->enums[i].name));
	for (size_t i = 0; names && i < s->names_len; i++)
		names[i] = s->names[i] ? s->names[i] : '\n';
	return json_pack("{s:o, s:o, s:s%}", "nodes", nodes, "enums", enums, "names",
			 names ? names : "", names ? s->names_len : 0);
}

static json_t *shown_list(const struct fetch_shown *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *j =
			json_pack("[s, i, i, i, i, i]", v[i].name, (int)v[i].type, (int)v[i].size,
				  (int)v[i].word, (int)v[i].has_caller, (int)v[i].counted);

		if (v[i].shape)
			json_array_append_new(j, shape_json(v[i].shape));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *fetch_json(const struct fetch *f)
{
	return json_pack("{s:o, s:o, s:i, s:i}", "values", shown_list(f->values, f->n_values),
			 "keys", shown_list(f->keys, f->n_keys), "words", (int)f->key_words,
			 "faults", (int)f->fault_word);
}

/* Probes of one text mostly fetch the same: each way of it is there once. */
static void add_probes(const struct session *s, json_t *probes, json_t *fetches)
{
	for (size_t i = 0; i < s->n_probes; i++) {
		json_t *f = fetch_json(session_fetch(s, (uint32_t)i));
		size_t n = json_array_size(fetches);

		if (n && json_equal(json_array_get(fetches, n - 1), f))
			json_decref(f);
		else
			json_array_append_new(fetches, f);
		json_array_append_new(probes, json_integer(s->probes[i].name));
		json_array_append_new(probes,
				      json_integer((json_int_t)json_array_size(fetches) - 1));
		json_array_append_new(probes, json_integer(s->probes[i].part));
	}
}

char *session_about(const struct session *s)
{
	autojson json_t *parts = json_array(), *names = json_array(), *probes = json_array(),
			*fetches = json_array(), *all = NULL;

	for (size_t i = 0; i < s->n_parts; i++) {
		const struct trace_buckets *b = &s->parts[i].buckets;

		json_array_append_new(parts, json_pack("[i, I, I, i]", (int)s->parts[i].action,
						       (json_int_t)b->least, (json_int_t)b->step,
						       (int)b->n));
	}
	for (size_t i = 0; i < s->names.n; i++)
		json_array_append_new(names, json_string(s->names.v[i]));
	add_probes(s, probes, fetches);
	all = json_pack("{s:s, s:i, s:O, s:O, s:O, s:O}", "text",
			s->options.text ? s->options.text : "", "table", s->table_part, "parts",
			parts, "names", names, "probes", probes, "fetches", fetches);
	return all ? json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
}

/* --- reading --- */

static uint32_t number_at(const json_t *list, size_t i)
{
	return (uint32_t)json_integer_value(json_array_get(list, i));
}

static void read_node(const json_t *j, struct shape_node *n)
{
	*n = (struct shape_node){
		.kind = (uint8_t)number_at(j, 0),
		.bit = (uint8_t)number_at(j, 1),
		.bits = (uint8_t)number_at(j, 2),
		.is_signed = number_at(j, 3),
		.followed = (uint8_t)number_at(j, 4),
		.ptr_at = (uint8_t)number_at(j, 5),
		.len_at = (uint8_t)number_at(j, 6),
		.offset = number_at(j, 7),
		.size = number_at(j, 8),
		.name = number_at(j, 9),
		.first = number_at(j, 10),
		.count = number_at(j, 11),
		.absent = json_is_true(json_array_get(j, 12)) ? not_kept : NULL,
	};
}

/* NULL: it is none, or memory is out: then the bytes are shown. */
static struct shape *read_shape(const json_t *j)
{
	const json_t *nodes = json_object_get(j, "nodes"), *enums = json_object_get(j, "enums");
	const json_t *names = json_object_get(j, "names");
	size_t n = json_array_size(nodes), n_enums = json_array_size(enums);
	struct shape_node *v = calloc(n + 1, sizeof(*v));
	struct shape_enumerator *e = calloc(n_enums + 1, sizeof(*e));
	struct shape s = {.v = v, .n = n, .enums = e, .n_enums = n_enums}, *ret = NULL;

	s.names_len = json_string_length(names);
	s.names = calloc(1, s.names_len + 1);
	if (v && e && s.names && s.names_len) {
		memcpy(s.names, json_string_value(names), s.names_len);
		for (size_t i = 0; i < s.names_len; i++)
			if (s.names[i] == '\n')
				s.names[i] = '\0';
		for (size_t i = 0; i < n; i++)
			read_node(json_array_get(nodes, i), &v[i]);
		for (size_t i = 0; i < n_enums; i++) {
			const json_t *pair = json_array_get(enums, i);

			e[i].value = json_integer_value(json_array_get(pair, 0));
			e[i].name = number_at(pair, 1);
		}
		ret = shape_is_sound(&s) ? shape_copy(&s) : NULL;
	}
	free(v);
	free(e);
	free(s.names);
	return ret;
}

static int read_shown(const json_t *list, struct fetch_shown *v, size_t max, size_t *n)
{
	for (size_t i = 0; i < json_array_size(list) && i < max; i++) {
		const json_t *j = json_array_get(list, i);
		const char *name = json_string_value(json_array_get(j, 0));

		v[i].name = strdup(name ? name : "?");
		v[i].type = (enum value_type)json_integer_value(json_array_get(j, 1));
		v[i].size = (uint32_t)json_integer_value(json_array_get(j, 2));
		v[i].word = (uint32_t)json_integer_value(json_array_get(j, 3)) % AX_PROBE_KEY;
		v[i].has_caller = json_integer_value(json_array_get(j, 4)) != 0;
		v[i].counted = json_integer_value(json_array_get(j, 5)) != 0;
		v[i].shape = read_shape(json_array_get(j, 6));
		*n = i + 1;
		if (!v[i].name)
			return -ENOMEM;
	}
	return 0;
}

static int read_fetch(const json_t *j, struct fetch *f)
{
	int r = read_shown(json_object_get(j, "values"), f->values, FETCH_VALUES, &f->n_values);

	f->key_words = (uint32_t)json_integer_value(json_object_get(j, "words"));
	f->fault_word = (uint32_t)json_integer_value(json_object_get(j, "faults")) % AX_PROBE_KEY;
	return r == 0 ? read_shown(json_object_get(j, "keys"), f->keys, PROBE_BY_MAX, &f->n_keys)
		      : r;
}

static int read_probes(struct session *s, const json_t *all)
{
	const json_t *probes = json_object_get(all, "probes");
	const json_t *fetches = json_object_get(all, "fetches");
	size_t n = json_array_size(probes) / 3;

	s->probes = calloc(n + 1, sizeof(*s->probes));
	if (!s->probes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct session_probe *p = &s->probes[i];
		const json_t *fetch = json_array_get(
			fetches, (size_t)json_integer_value(json_array_get(probes, 3 * i + 1)));
		int r;

		s->n_probes = i + 1;
		p->attached = true;
		p->entry_of = (uint32_t)i;
		p->name = (uint32_t)json_integer_value(json_array_get(probes, 3 * i));
		p->part = (uint32_t)json_integer_value(json_array_get(probes, 3 * i + 2)) %
			  SESSION_PARTS_MAX;
		r = p->name < s->names.n ? read_fetch(fetch, &p->fetch) : -EINVAL;
		if (r < 0)
			return r;
	}
	return n ? 0 : -EINVAL;
}

static int read_names(struct session *s, const json_t *names)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));

		r = strv_add(&s->names, name ? name : "?");
	}
	return r < 0 ? r : 0;
}

static void read_parts(struct session *s, const json_t *parts)
{
	s->n_parts = json_array_size(parts);
	if (s->n_parts > SESSION_PARTS_MAX)
		s->n_parts = SESSION_PARTS_MAX;
	for (size_t i = 0; i < s->n_parts; i++) {
		const json_t *j = json_array_get(parts, i);

		s->parts[i].action = (enum trace_action)json_integer_value(json_array_get(j, 0));
		s->parts[i].buckets = (struct trace_buckets){
			.least = json_integer_value(json_array_get(j, 1)),
			.step = (uint64_t)json_integer_value(json_array_get(j, 2)),
			.n = (uint32_t)json_integer_value(json_array_get(j, 3)),
		};
	}
}

static int read_about(struct session *s, const char *about, char **text)
{
	autojson json_t *all = json_loads(about, 0, NULL);
	const char *t = json_string_value(json_object_get(all, "text"));
	int r;

	if (!t)
		return -EINVAL;
	read_parts(s, json_object_get(all, "parts"));
	s->table_part = (int)json_integer_value(json_object_get(all, "table"));
	if (s->table_part >= (int)s->n_parts)
		return -EINVAL;
	r = read_names(s, json_object_get(all, "names"));
	if (r == 0)
		r = read_probes(s, all);
	if (r < 0)
		return r;
	*text = strdup(t);
	return *text ? 0 : -ENOMEM;
}

int session_open_pinned(const char *pin, struct session **ret, char **text, struct error *e)
{
	CLEANUP(session_closep) struct session *s = calloc(1, sizeof(*s));
	autofree char *about = NULL;
	int r;

	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	r = engine_open(pin, &s->engine, &about, e);
	if (r < 0)
		return r;
	r = read_about(s, about, text);
	if (r < 0)
		return error_set(e, r,
				 "what is kept in %.300s was not written by this version of "
				 "ax: remove the probe and add it again",
				 pin);
	/* with those on entries, which belong to returns */
	s->plan.n_probes = engine_n_probes(s->engine);
	if (s->plan.n_probes < s->n_probes)
		return error_set(e, -EINVAL, "%.300s does not hold what it says: remove the probe",
				 pin);
	s->plan.key_words = engine_key_words(s->engine);
	*ret = take_ptr(&s);
	return 0;
}
