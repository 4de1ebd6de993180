// SPDX-License-Identifier: GPL-2.0-or-later
#include "tools/trace/show/json_ctf.h"

#include <jansson.h>

#include "ctf/ctf.h"
#include "tools/trace/show/defaults.h"

#define NS_PER_MS   UINT64_C(1000000)
#define KINDS_MAX   4096 /* of events: by their names, and which fields they have */
#define RECORDS_MAX 8192 /* that come before what waits is looked at */

/* Lines have some members only at times, and an event of CTF has all of its fields: so what has
 * others is another kind of the same name. */
struct kind {
	char *sign; /* of name, fields and their types */
	int event;
};

struct field {
	char *name;
	const json_t *value;
	enum ctf_type type;
};

struct json_ctf {
	struct ctf *ctf;
	struct kind *kinds;
	size_t n_kinds;
	uint64_t give_ns, write_ns; /* when the next time comes for that */
	uint64_t discarded;	    /* the last time */
	uint32_t records;	    /* since then */
	int64_t offset_ns;	    /* from CLOCK_MONOTONIC to the time of day */
};

int json_ctf_open(const char *directory, struct json_ctf **ret, struct error *e)
{
	return json_ctf_open_at(directory, (int64_t)(time_real_ns() - time_mono_ns()), ret, e);
}

int json_ctf_open_at(const char *directory, int64_t offset, struct json_ctf **ret, struct error *e)
{
	struct json_ctf *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return error_set(e, -ENOMEM, "out of memory");
	r = ctf_open(directory, offset, &x->ctf, e);
	x->offset_ns = offset;
	if (r < 0)
		free(x);
	else
		*ret = x;
	return r;
}

void json_ctf_free(struct json_ctf *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->n_kinds; i++)
		free(x->kinds[i].sign);
	free(x->kinds);
	ctf_free(x->ctf);
	free(x);
}

/* --- fields --- */

static bool is_strings(const json_t *array)
{
	size_t i;
	json_t *v;

	json_array_foreach (array, i, v)
		if (!json_is_string(v))
			return false;
	return true;
}

static enum ctf_type type_of(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_INTEGER:
		return CTF_SIGNED;
	case JSON_REAL:
		return CTF_FLOAT;
	case JSON_TRUE:
	case JSON_FALSE:
		return CTF_UNSIGNED;
	case JSON_ARRAY:
		return is_strings(v) ? CTF_STRINGS : CTF_STRING;
	default:
		return CTF_STRING;
	}
}

/* What is not a field: the head of an event has it. */
static bool is_head(const char *key)
{
	static const char *const keys[] = {"time", "event",  "probe", "pid",
					   "tid",  "thread", "comm"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (streq(key, keys[i]))
			return true;
	return false;
}

static int add_fields(const json_t *object, const char *above, struct field *fields, size_t *n)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)object, key, v) {
		autofree char *name = NULL;
		int r;

		if (json_is_null(v) || (!above && is_head(key)))
			continue;
		if (asprintf(&name, "%s%s%s", above ? above : "", above ? "." : "", key) < 0) {
			name = NULL;
			return -ENOMEM;
		}
		if (json_is_object(v)) {
			r = add_fields(v, name, fields, n);
			if (r < 0)
				return r;
			continue;
		}
		if (*n == CTF_FIELDS_MAX)
			return -E2BIG;
		fields[(*n)++] =
			(struct field){.name = take_ptr(&name), .value = v, .type = type_of(v)};
	}
	return 0;
}

/* --- kinds of events --- */

static char *sign_of(const char *event, const struct field *fields, size_t n)
{
	size_t size;
	char *sign = NULL;
	FILE *f = open_memstream(&sign, &size);

	if (!f)
		return NULL;
	fputs(event, f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "\n%d%s", fields[i].type, fields[i].name);
	if (fclose(f) == 0)
		return sign;
	free(sign);
	return NULL;
}

static int add_kind(struct json_ctf *x, const char *event, const struct field *fields, size_t n)
{
	struct ctf_field v[CTF_FIELDS_MAX];

	for (size_t i = 0; i < n; i++)
		v[i] = (struct ctf_field){.name = fields[i].name, .type = fields[i].type};
	return ctf_add_event(x->ctf, event, v, n);
}

/* The event's number, or a negative errno. */
static int kind_of(struct json_ctf *x, const char *event, const struct field *fields, size_t n)
{
	autofree char *sign = sign_of(event, fields, n);
	struct kind *v;
	int r;

	if (!sign)
		return -ENOMEM;
	/* the one that came last comes often */
	for (size_t i = x->n_kinds; i--;)
		if (streq(x->kinds[i].sign, sign))
			return x->kinds[i].event;
	if (x->n_kinds == KINDS_MAX)
		return -E2BIG;
	v = reallocarray(x->kinds, x->n_kinds + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	x->kinds = v;
	r = add_kind(x, event, fields, n);
	if (r >= 0)
		x->kinds[x->n_kinds++] = (struct kind){.sign = take_ptr(&sign), .event = r};
	return r;
}

/* --- events --- */

static int put_text(struct ctf *c, const json_t *v)
{
	autofree char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);

	ctf_string(c, text ? text : "", text ? strlen(text) : 0);
	return text ? 0 : -ENOMEM;
}

static int put_field(struct ctf *c, const struct field *f)
{
	size_t i;
	json_t *v;

	if (f->type == CTF_FLOAT) {
		ctf_float(c, json_real_value(f->value));
	} else if (f->type == CTF_SIGNED) {
		ctf_number(c, (uint64_t)json_integer_value(f->value));
	} else if (f->type == CTF_UNSIGNED) {
		ctf_number(c, json_is_true(f->value));
	} else if (f->type == CTF_STRINGS) {
		ctf_strings(c, (uint32_t)json_array_size(f->value));
		json_array_foreach (f->value, i, v)
			ctf_string(c, json_string_value(v), json_string_length(v));
	} else if (json_is_string(f->value)) {
		ctf_string(c, json_string_value(f->value), json_string_length(f->value));
	} else {
		return put_text(c, f->value);
	}
	return 0;
}

static uint32_t number_of(const json_t *line, const char *key, uint32_t otherwise)
{
	const json_t *v = json_object_get(line, key);

	return v ? (uint32_t)json_integer_value(v) : otherwise;
}

static const char *name_of(const json_t *line)
{
	const char *event = json_string_value(json_object_get(line, "event"));

	return event ? event : json_string_value(json_object_get(line, "probe"));
}

static int put_event(struct json_ctf *x, uint64_t time_ns, const json_t *line,
		     const struct field *fields, size_t n)
{
	const char *event = name_of(line);
	const json_t *comm = json_object_get(line, "comm");
	uint32_t pid = number_of(line, "pid", 0);
	const struct ctf_context context = {
		.time_ns = time_ns,
		.pid = pid,
		.tid = number_of(line, "tid", number_of(line, "thread", pid)),
		.comm = comm ? json_string_value(comm) : "",
		.comm_len = json_string_length(comm),
		.unread = "",
	};
	int r = event ? kind_of(x, event, fields, n) : -EPROTO;

	if (r < 0)
		return r;
	ctf_begin(x->ctf, r, &context);
	r = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = put_field(x->ctf, &fields[i]);
	ctf_end(x->ctf);
	return r;
}

static int put_line(struct json_ctf *x, uint64_t time_ns, const char *text, size_t len)
{
	struct field fields[CTF_FIELDS_MAX];
	json_t *line = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	size_t n = 0;
	int r;

	if (!line) /* has a number beyond 64 bits with a sign */
		line = json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	r = line ? add_fields(line, NULL, fields, &n) : -EPROTO;
	if (r == 0)
		r = put_event(x, time_ns, line, fields, n);
	while (n)
		free(fields[--n].name);
	json_decref(line);
	return r;
}

/* Of what happened until then, earlier events may come still. */
static int flush(struct json_ctf *x, uint64_t seen_ns, uint64_t discarded, bool end)
{
	uint64_t now = time_mono_ns(), hold = TRACE_CTF_HOLD_MS * NS_PER_MS;
	uint64_t until = end ? UINT64_MAX : seen_ns > hold ? seen_ns - hold : 0;
	bool all = end || now >= x->write_ns;

	x->give_ns = now + hold / 2;
	x->discarded = discarded;
	x->records = 0;
	if (all)
		x->write_ns = now + TRACE_FLUSH_MS * NS_PER_MS;
	return ctf_flush(x->ctf, until, discarded, all);
}

struct given {
	struct json_ctf *to;
	uint64_t time_ns;
};

static int put_lines(void *arg, const char *lines, size_t len)
{
	const struct given *g = arg;
	const char *end = lines + len, *at = lines;

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((nl ? nl : end) - at);
		int r = n ? put_line(g->to, g->time_ns, at, n) : 0;

		if (r < 0)
			return r;
		at += n + 1;
	}
	return 0;
}

int json_ctf_take(struct json_ctf *x, uint64_t time_ns, struct trace_out *from)
{
	int r = trace_out_give(from, put_lines, &(struct given){x, time_ns});

	if (r == 0 && ++x->records == RECORDS_MAX)
		r = flush(x, time_ns, x->discarded, false);
	return r;
}

/* {"time":SECONDS.NANOSECONDS, */
static bool time_of(const char *line, size_t len, uint64_t *ret)
{
	static const char begin[] = "{\"time\":";
	size_t before = sizeof(begin) - 1, n = len - before;
	char text[48] = "", *end;
	uint64_t seconds;

	if (len < before || memcmp(line, begin, before) != 0)
		return false;
	memcpy(text, line + before, n < sizeof(text) ? n : sizeof(text) - 1);
	seconds = strtoull(text, &end, 10);
	if (*end != '.' || strspn(end + 1, "0123456789") != 9)
		return false;
	*ret = seconds * UINT64_C(1000000000) + strtoull(end + 1, NULL, 10);
	return true;
}

int json_ctf_take_timed(struct json_ctf *x, const char *lines, size_t len, size_t *taken)
{
	const char *nl;

	for (*taken = 0; (nl = memchr(lines + *taken, '\n', len - *taken)) != NULL;
	     *taken = (size_t)(nl + 1 - lines)) {
		const char *line = lines + *taken;
		uint64_t ns;
		int r = 0;

		if (!time_of(line, (size_t)(nl - line), &ns))
			continue;
		ns -= (uint64_t)x->offset_ns;
		r = put_line(x, ns, line, (size_t)(nl - line));
		if (r == 0 && ++x->records == RECORDS_MAX)
			r = flush(x, ns, x->discarded, false);
		if (r < 0)
			return r;
	}
	return 0;
}

bool json_ctf_is_due(const struct json_ctf *x)
{
	return time_mono_ns() >= x->give_ns;
}

int json_ctf_flush(struct json_ctf *x, uint64_t discarded, bool end)
{
	return flush(x, time_mono_ns(), discarded, end);
}
