// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <nettle/base64.h>

#include "etcd/body.h"

/* --- bytes --- */

#define AT_ONCE 3072 /* a multiple of 3: what is encoded has no padding before its end */

static void put_bytes(FILE *f, struct etcd_bytes b)
{
	char out[BASE64_ENCODE_RAW_LENGTH(AT_ONCE)];
	const uint8_t *at = b.data;

	putc('"', f);
	for (size_t left = b.len, n; left; left -= n, at += n) {
		n = left < AT_ONCE ? left : AT_ONCE;
		base64_encode_raw(out, n, at);
		fwrite(out, 1, BASE64_ENCODE_RAW_LENGTH(n), f);
	}
	putc('"', f);
}

/* The first key behind all that begin with it: its last byte that can be one more is. A NUL alone
 * stands for "to the end". */
static void put_end(FILE *f, struct etcd_bytes key)
{
	static const char nul;
	struct etcd_bytes end = {&nul, 1};
	uint8_t copy[ETCD_MAX_KEY];
	size_t len = key.len;

	while (len && ((const uint8_t *)key.data)[len - 1] == 0xff)
		len--;
	if (len) {
		memcpy(copy, key.data, len);
		copy[len - 1]++;
		end = (struct etcd_bytes){copy, len};
	}
	fputs(",\"range_end\":", f);
	put_bytes(f, end);
}

/* An empty key is none: the least is a NUL. */
static void put_key(FILE *f, struct etcd_bytes key, bool prefix)
{
	static const char nul;

	fputs("\"key\":", f);
	put_bytes(f, key.len ? key : (struct etcd_bytes){&nul, 1});
	if (prefix)
		put_end(f, key);
}

/* --- one text --- */

struct text {
	char *text;
	size_t len;
};

static char *text_end(FILE *f, struct text *t, size_t *len)
{
	bool bad = ferror(f);

	if (fclose(f) != 0 || bad) {
		free(t->text);
		return NULL;
	}
	*len = t->len;
	return t->text;
}

char *body_range(const struct etcd_range *what, const struct etcd_bytes *from, int64_t revision,
		 unsigned limit, size_t *len)
{
	struct text t = {0};
	FILE *f = open_memstream(&t.text, &t.len);

	if (!f)
		return NULL;
	putc('{', f);
	put_key(f, from ? *from : what->key, false);
	if (what->prefix)
		put_end(f, what->key);
	if (revision)
		fprintf(f, ",\"revision\":\"%" PRId64 "\"", revision);
	if (what->keys_only)
		fputs(",\"keys_only\":true", f);
	if (what->any_member)
		fputs(",\"serializable\":true", f);
	fprintf(f, ",\"limit\":\"%u\"}", limit);
	return text_end(f, &t, len);
}

static void put_compare(FILE *f, const struct etcd_compare *c)
{
	static const char *const target[] = {
		[ETCD_VERSION] = "VERSION",  [ETCD_CREATE_REVISION] = "CREATE",
		[ETCD_MOD_REVISION] = "MOD", [ETCD_LEASE] = "LEASE",
		[ETCD_VALUE] = "VALUE",
	};
	static const char *const field[] = {
		[ETCD_VERSION] = "version",
		[ETCD_CREATE_REVISION] = "create_revision",
		[ETCD_MOD_REVISION] = "mod_revision",
		[ETCD_LEASE] = "lease",
		[ETCD_VALUE] = "value",
	};
	static const char *const result[] = {
		[ETCD_EQUAL] = "EQUAL",
		[ETCD_NOT_EQUAL] = "NOT_EQUAL",
		[ETCD_LESS] = "LESS",
		[ETCD_GREATER] = "GREATER",
	};

	putc('{', f);
	put_key(f, c->key, false);
	fprintf(f, ",\"target\":\"%s\",\"result\":\"%s\",\"%s\":", target[c->target],
		result[c->relation], field[c->target]);
	if (c->target == ETCD_VALUE)
		put_bytes(f, c->value);
	else
		fprintf(f, "\"%" PRId64 "\"", c->number);
	putc('}', f);
}

static void put_op(FILE *f, const struct etcd_op *op)
{
	static const char *const name[] = {
		[ETCD_PUT] = "request_put",
		[ETCD_DELETE] = "request_delete_range",
		[ETCD_GET] = "request_range",
	};

	fprintf(f, "{\"%s\":{", name[op->kind]);
	put_key(f, op->key, op->kind != ETCD_PUT && op->prefix);
	if (op->kind == ETCD_PUT) {
		fputs(",\"value\":", f);
		put_bytes(f, op->value);
	}
	if (op->kind == ETCD_PUT && op->lease)
		fprintf(f, ",\"lease\":\"%" PRId64 "\"", op->lease);
	fputs("}}", f);
}

static void put_ops(FILE *f, const char *name, const struct etcd_op *ops, size_t n)
{
	fprintf(f, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		if (i)
			putc(',', f);
		put_op(f, &ops[i]);
	}
	putc(']', f);
}

char *body_txn(const struct etcd_txn *t, size_t *len)
{
	struct text x = {0};
	FILE *f = open_memstream(&x.text, &x.len);

	if (!f)
		return NULL;
	fputs("{\"compare\":[", f);
	for (size_t i = 0; i < t->n_compares; i++) {
		if (i)
			putc(',', f);
		put_compare(f, &t->compares[i]);
	}
	putc(']', f);
	put_ops(f, "success", t->success, t->n_success);
	put_ops(f, "failure", t->failure, t->n_failure);
	putc('}', f);
	return text_end(f, &x, len);
}

char *body_grant(unsigned ttl_s, size_t *len)
{
	struct text t = {0};
	FILE *f = open_memstream(&t.text, &t.len);

	if (!f)
		return NULL;
	fprintf(f, "{\"TTL\":\"%u\"}", ttl_s);
	return text_end(f, &t, len);
}

char *body_lease(int64_t id, size_t *len)
{
	struct text t = {0};
	FILE *f = open_memstream(&t.text, &t.len);

	if (!f)
		return NULL;
	fprintf(f, "{\"ID\":\"%" PRId64 "\"}", id);
	return text_end(f, &t, len);
}

/* Without `fragment` one message could hold all that happened for minutes; without progress_notify
 * the place to go on from would be compacted where nothing happens. */
char *body_watch(struct etcd_bytes key, bool prefix, int64_t revision, size_t *len)
{
	struct text t = {0};
	FILE *f = open_memstream(&t.text, &t.len);

	if (!f)
		return NULL;
	fputs("{\"create_request\":{", f);
	put_key(f, key, prefix);
	fprintf(f,
		",\"start_revision\":\"%" PRId64 "\",\"progress_notify\":true,\"fragment\":true}}",
		revision);
	return text_end(f, &t, len);
}
