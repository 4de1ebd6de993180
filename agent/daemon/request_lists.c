/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists and the status, which clients ask for. */
#include "daemon/requests_priv.h"
#include "base/work.h"
#include "control/control.h"
#include "control/reply.h"
#include "control/server.h"
#include "daemon/views.h"
#include "registry/state.h"

/* A list, made beside what else there is to do. */
struct get_work {
	struct agent *a;
	struct client *c; /* NULL: gone */
	char what[16];
	json_t *names; /* NULL: all */
	bool all;      /* nodes */
	json_t *answer;
	struct reply text;
	int r;
};

static void write_answer(void *arg)
{
	struct get_work *w = arg;

	w->r = reply_make(w->answer, &w->text);
	json_decref(w->answer);
}

static void get_free(struct get_work *w)
{
	if (w)
		json_decref(w->names);
	free(w);
}

static void get(void *arg)
{
	struct get_work *w = arg;
	const struct view_asked asked = {w->what, w->names, w->all};
	struct error e = {0};

	if (!w->c) {
		get_free(w);
		return;
	}
	w->answer = view_get(w->a, &asked, &e);
	if (!w->answer)
		w->r = e.code ? e.code : -ENOMEM;
	else if (json_array_size(json_object_get(w->answer, w->what)) > REQUEST_ROWS_AT_ONCE)
		work_offload(w->a->reads, write_answer, w);
	else
		write_answer(w);
	if (w->c)
		((struct client_state *)client_kept(w->c))->get = NULL;
	if (w->c && !w->r)
		client_reply_made(w->c, &w->text);
	else if (w->c)
		client_error(w->c, w->r,
			     e.code ? e.text
			     : w->r == -EMSGSIZE
				     ? "the list is longer than the agent keeps for one "
				       "client"
				     : "out of memory");
	else if (!w->r)
		reply_free(&w->text);
	get_free(w);
}

void request_get(struct agent *a, struct client *c, json_t *j, int fd)
{
	const char *what = json_string_value(json_object_get(j, "what"));
	struct client_state *st = client_state_get(c);
	struct get_work *w;

	(void)fd;
	if (!st)
		return;
	w = calloc(1, sizeof(*w));
	if (w) {
		*w = (struct get_work){.a = a,
				       .c = c,
				       .names = json_incref(json_object_get(j, "names")),
				       .all = json_is_true(json_object_get(j, "all"))};
		snprintf(w->what, sizeof(w->what), "%s", what ? what : "");
		st->get = w;
		client_hold(c);
		if (!work_start(a->reads, client_uid(c), get, w))
			return;
	}
	st->get = NULL;
	get_free(w);
	client_error(c, -ENOMEM, "out of memory");
}

void request_status(struct agent *a, struct client *c, json_t *j, int fd)
{
	(void)j;
	(void)fd;
	client_reply(c, view_status(a), -1);
}

void request_get_orphan(struct get_work *w)
{
	w->c = NULL;
}
