/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <jansson.h>

#include "cluster/remembered.h"

#define VERSION 1

char *remembered_head_text(const struct remembered_head *h)
{
	json_t *j = json_pack("{si ss ss sI}", "v", VERSION, "cluster", h->cluster, "id", h->id,
			      "revision", (json_int_t)h->revision);
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

	json_decref(j);
	return text;
}

static bool read_text(const json_t *j, const char *key, char *buf, size_t size)
{
	const char *text = json_string_value(json_object_get(j, key));

	if (!text || strlen(text) >= size)
		return false;
	memcpy(buf, text, strlen(text) + 1);
	return true;
}

int remembered_head_read(const char *line, size_t len, struct remembered_head *ret)
{
	json_t *j = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	int r = 0;

	*ret = (struct remembered_head){0};
	ret->revision = json_integer_value(json_object_get(j, "revision"));
	if (!read_text(j, "cluster", ret->cluster, sizeof(ret->cluster)) ||
	    !read_text(j, "id", ret->id, sizeof(ret->id)) || ret->revision < 0)
		r = -EINVAL;
	else if (json_integer_value(json_object_get(j, "v")) != VERSION)
		r = -EOPNOTSUPP;
	json_decref(j);
	return r;
}

void remembered_write(FILE *f, const struct remembered *r)
{
	fprintf(f, "%lld %lld %lld %s %s\n", (long long)r->at, (long long)r->away,
		(long long)r->lease, r->key, r->value);
}

/* Digits and a space; *at: what is behind them. */
static bool read_number(char **at, int64_t *ret)
{
	size_t n = strspn(*at, "0123456789");

	if (!n || n > 19 || (*at)[n] != ' ')
		return false;
	errno = 0;
	*ret = strtoll(*at, NULL, 10);
	*at += n + 1;
	return !errno;
}

int remembered_read(char *line, size_t len, struct remembered *ret)
{
	char *at = line, *end;

	*ret = (struct remembered){0};
	if (strlen(line) != len || !read_number(&at, &ret->at) || !read_number(&at, &ret->away) ||
	    !read_number(&at, &ret->lease))
		return -EINVAL;
	end = strchr(at, ' ');
	if (*at != '/' || !end || end - at >= RECORD_KEY_MAX || !end[1])
		return -EINVAL;
	*end = 0;
	ret->key = at;
	ret->value = end + 1;
	return 0;
}
