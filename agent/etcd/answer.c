// SPDX-License-Identifier: GPL-2.0-or-later
#include <jansson.h>
#include <nettle/base64.h>

#include "etcd/answer.h"

void answer_free(struct answer *a)
{
	free(a->kvs);
	free(a->ops);
	free(a->events);
	free(a->bytes);
	memset(a, 0, sizeof(*a));
}

static void free_json(json_t **j)
{
	json_decref(*j);
}

static json_t *load(const char *text, size_t len, struct answer *ret)
{
	json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

	memset(ret, 0, sizeof(*ret));
	if (json_is_object(j))
		return j;
	json_decref(j);
	return NULL;
}

/* --- values: what is missing is 0, false or empty, as protobuf has it --- */

static int get_u64(const json_t *j, const char *name, uint64_t *ret)
{
	const json_t *v = json_object_get(j, name);
	const char *s;
	char *end;

	*ret = 0;
	if (!v)
		return 0;
	if (json_is_integer(v)) {
		*ret = (uint64_t)json_integer_value(v);
		return 0;
	}
	s = json_string_value(v);
	if (!s || *s < '0' || *s > '9')
		return -EPROTO;
	errno = 0;
	*ret = strtoull(s, &end, 10);
	return errno || *end ? -EPROTO : 0;
}

static int get_i64(const json_t *j, const char *name, int64_t *ret)
{
	uint64_t u;

	*ret = 0;
	if (get_u64(j, name, &u) < 0 || u > INT64_MAX)
		return -EPROTO;
	*ret = (int64_t)u;
	return 0;
}

static int get_bool(const json_t *j, const char *name, bool *ret)
{
	const json_t *v = json_object_get(j, name);

	*ret = json_is_true(v);
	return v && !json_is_boolean(v) ? -EPROTO : 0;
}

/* NULL is fine, and has no members. */
static int get_list(const json_t *j, const char *name, const json_t **ret)
{
	*ret = json_object_get(j, name);
	return *ret && !json_is_array(*ret) ? -EPROTO : 0;
}

/* Decoded bytes and their NUL are never more than the text that they are from. */
static int get_bytes(struct answer *a, const json_t *j, const char *name, struct etcd_bytes *ret)
{
	const json_t *v = json_object_get(j, name);
	struct base64_decode_ctx ctx;
	size_t len, n;
	uint8_t *to;

	*ret = (struct etcd_bytes){"", 0};
	if (!v)
		return 0;
	if (!json_is_string(v))
		return -EPROTO;
	len = json_string_length(v);
	if (BASE64_DECODE_LENGTH(len) + 1 > a->size - a->used)
		return -EPROTO;
	to = (uint8_t *)a->bytes + a->used;
	n = BASE64_DECODE_LENGTH(len);
	base64_decode_init(&ctx);
	if (!base64_decode_update(&ctx, &n, to, len, json_string_value(v)) ||
	    !base64_decode_final(&ctx))
		return -EPROTO;
	to[n] = 0;
	a->used += n + 1;
	*ret = (struct etcd_bytes){to, n};
	return 0;
}

static int get_head(const json_t *j, struct answer_head *ret)
{
	const json_t *h = json_object_get(j, "header");

	if (!json_is_object(h) || get_u64(h, "cluster_id", &ret->cluster) < 0 ||
	    get_u64(h, "member_id", &ret->member) < 0 || get_i64(h, "revision", &ret->revision) < 0)
		return -EPROTO;
	return ret->revision < INT64_MAX ? 0 : -EPROTO; /* a watch goes on with the next one */
}

static int get_kv(struct answer *a, const json_t *j, struct etcd_kv *ret)
{
	if (!json_is_object(j) || get_bytes(a, j, "key", &ret->key) < 0 ||
	    get_bytes(a, j, "value", &ret->value) < 0 ||
	    get_i64(j, "create_revision", &ret->create_revision) < 0 ||
	    get_i64(j, "mod_revision", &ret->mod_revision) < 0 ||
	    get_i64(j, "version", &ret->version) < 0 || get_i64(j, "lease", &ret->lease) < 0)
		return -EPROTO;
	return ret->key.len && ret->mod_revision && ret->mod_revision < INT64_MAX ? 0 : -EPROTO;
}

static int make_bytes(struct answer *a, size_t len)
{
	a->size = len + 8;
	a->bytes = malloc(a->size);
	return a->bytes ? 0 : -ENOMEM;
}

/* --- errors --- */

/* Text of others for a sentence: nothing that a terminal would obey. */
static void plain(char *ret, size_t size, const char *text)
{
	size_t i;

	for (i = 0; i + 1 < size && text[i]; i++)
		ret[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
	ret[i] = 0;
}

/* {"error":"...","message":"...","code":14}, and in a stream
 * {"error":{"grpc_code":14,"message":"..."}} */
static void get_error(const json_t *j, struct answer *ret)
{
	const json_t *inner = json_object_get(j, "error");
	const char *message = json_string_value(json_object_get(j, "message"));
	int64_t code = 0;

	if (json_is_object(inner)) {
		message = json_string_value(json_object_get(inner, "message"));
		get_i64(inner, "grpc_code", &code);
	} else {
		get_i64(j, "code", &code);
	}
	ret->code = code > 0 && code < 100 ? (int)code : 0;
	plain(ret->message, sizeof(ret->message), message ? message : "");
}

void answer_error(const char *text, size_t len, struct answer *ret)
{
	CLEANUP(free_json) json_t *j = load(text, len, ret);

	if (j)
		get_error(j, ret);
}

/* --- ranges and transactions --- */

static int get_kvs(struct answer *a, const json_t *j)
{
	const json_t *list;
	size_t n;

	if (get_list(j, "kvs", &list) < 0)
		return -EPROTO;
	n = json_array_size(list);
	for (size_t i = 0; i < n; i++)
		if (get_kv(a, json_array_get(list, i), &a->kvs[a->n_kvs++]) < 0)
			return -EPROTO;
	return 0;
}

int answer_range(const char *text, size_t len, struct answer *ret)
{
	CLEANUP(free_json) json_t *j = load(text, len, ret);

	if (!j || get_head(j, &ret->head) < 0 || get_bool(j, "more", &ret->more) < 0)
		return -EPROTO;
	ret->kvs = calloc(json_array_size(json_object_get(j, "kvs")) + 1, sizeof(*ret->kvs));
	if (!ret->kvs || make_bytes(ret, len) < 0)
		return -ENOMEM;
	if (get_kvs(ret, j) < 0)
		return -EPROTO;
	return ret->more && !ret->n_kvs ? -EPROTO : 0;
}

static size_t count_kvs(const json_t *responses)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(responses); i++) {
		const json_t *r = json_object_get(json_array_get(responses, i), "response_range");

		n += json_array_size(json_object_get(r, "kvs"));
	}
	return n;
}

static int get_op(struct answer *a, const json_t *j, struct etcd_op_answer *ret)
{
	const json_t *range = json_object_get(j, "response_range");
	const json_t *del = json_object_get(j, "response_delete_range");
	uint64_t n = 0;

	if (range) {
		ret->kvs = &a->kvs[a->n_kvs];
		if (!json_is_object(range) || get_kvs(a, range) < 0)
			return -EPROTO;
		ret->n = (size_t)(&a->kvs[a->n_kvs] - ret->kvs);
		return 0;
	}
	if (del && get_u64(del, "deleted", &n) < 0)
		return -EPROTO;
	ret->n = n;
	return json_is_object(j) ? 0 : -EPROTO;
}

int answer_txn(const char *text, size_t len, struct answer *ret)
{
	CLEANUP(free_json) json_t *j = load(text, len, ret);
	const json_t *list;
	size_t n;

	if (!j || get_head(j, &ret->head) < 0 || get_bool(j, "succeeded", &ret->succeeded) < 0 ||
	    get_list(j, "responses", &list) < 0)
		return -EPROTO;
	n = json_array_size(list);
	ret->kvs = calloc(count_kvs(list) + 1, sizeof(*ret->kvs));
	ret->ops = calloc(n + 1, sizeof(*ret->ops));
	if (!ret->kvs || !ret->ops || make_bytes(ret, len) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (get_op(ret, json_array_get(list, i), &ret->ops[ret->n_ops++]) < 0)
			return -EPROTO;
	return 0;
}

/* --- leases and watches --- */

/* Of a stream's message what counts: `result`; NULL with 0: it is an error, which is in *ret. */
static int get_result(const json_t *j, struct answer *ret, const json_t **result)
{
	*result = json_object_get(j, "result");
	if (*result)
		return json_is_object(*result) ? 0 : -EPROTO;
	if (!json_object_get(j, "error"))
		return -EPROTO;
	get_error(j, ret);
	if (!ret->code)
		ret->code = 2; /* unknown, as gRPC calls it */
	return 0;
}

int answer_lease(const char *text, size_t len, struct answer *ret)
{
	CLEANUP(free_json) json_t *j = load(text, len, ret);
	const json_t *r = j;

	if (!j)
		return -EPROTO;
	if (!json_object_get(j, "header")) {
		if (get_result(j, ret, &r) < 0)
			return -EPROTO;
		if (!r)
			return 0;
	}
	if (get_head(r, &ret->head) < 0 || get_i64(r, "ID", &ret->lease) < 0 ||
	    get_i64(r, "TTL", &ret->ttl_s) < 0)
		return -EPROTO;
	return 0;
}

static int get_event(struct answer *a, const json_t *j, struct etcd_event *ret)
{
	const json_t *type = json_object_get(j, "type");
	const char *name = json_string_value(type);

	if (type && (!name || (!streq(name, "PUT") && !streq(name, "DELETE"))))
		return -EPROTO;
	ret->deleted = name && streq(name, "DELETE");
	return get_kv(a, json_object_get(j, "kv"), &ret->kv);
}

static int get_events(struct answer *a, const json_t *list)
{
	size_t n = json_array_size(list);
	int64_t last = 0;

	for (size_t i = 0; i < n; i++) {
		struct etcd_event *event = &a->events[a->n_events++];

		if (get_event(a, json_array_get(list, i), event) < 0 ||
		    event->kv.mod_revision < last)
			return -EPROTO;
		last = event->kv.mod_revision;
	}
	return 0;
}

int answer_watch(const char *text, size_t len, struct answer *ret)
{
	CLEANUP(free_json) json_t *j = load(text, len, ret);
	const json_t *r, *list;

	if (!j || get_result(j, ret, &r) < 0)
		return -EPROTO;
	if (!r)
		return 0;
	if (get_head(r, &ret->head) < 0 || get_bool(r, "created", &ret->created) < 0 ||
	    get_bool(r, "canceled", &ret->canceled) < 0 ||
	    get_bool(r, "fragment", &ret->fragment) < 0 ||
	    get_i64(r, "compact_revision", &ret->compacted) < 0 || get_list(r, "events", &list) < 0)
		return -EPROTO;
	if (json_is_string(json_object_get(r, "cancel_reason")))
		plain(ret->message, sizeof(ret->message),
		      json_string_value(json_object_get(r, "cancel_reason")));
	ret->events = calloc(json_array_size(list) + 1, sizeof(*ret->events));
	if (!ret->events || make_bytes(ret, len) < 0)
		return -ENOMEM;
	return get_events(ret, list);
}
