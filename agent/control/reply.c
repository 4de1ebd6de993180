/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/reply.h"

#define REPLY_FIRST 512 /* bytes: most answers are short */

struct writer {
	struct reply *to;
	size_t size;
	int r;
};

static int put(const char *text, size_t len, void *arg)
{
	struct writer *w = arg;
	size_t size = w->size;
	char *more;

	if (len > REPLY_MAX - w->to->len) {
		w->r = -EMSGSIZE;
		return -1;
	}
	while (size < w->to->len + len)
		size *= 2;
	if (size > w->size) {
		more = realloc(w->to->text, size);
		if (!more)
			return -1;
		w->to->text = more;
		w->size = size;
	}
	memcpy(w->to->text + w->to->len, text, len);
	w->to->len += len;
	return 0;
}

int reply_make(const json_t *j, struct reply *ret)
{
	struct writer w = {.to = ret, .size = REPLY_FIRST, .r = -ENOMEM};
	char *exact;

	*ret = (struct reply){.text = malloc(REPLY_FIRST)};
	if (!ret->text || json_dump_callback(j, put, &w, JSON_COMPACT) || put("\n", 1, &w)) {
		reply_free(ret);
		return w.r;
	}
	exact = realloc(ret->text, ret->len);
	ret->text = exact ? exact : ret->text;
	return 0;
}
