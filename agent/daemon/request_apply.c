/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A config that a client hands over: checked, compared, and applied as a work. */
#include <fcntl.h>

#include "daemon/requests_priv.h"
#include "daemon/request_shared.h"
#include "base/work.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "config/hints.h"
#include "control/control.h"
#include "control/reply.h"
#include "control/server.h"
#include "control/text.h"
#include "daemon/config_file.h"
#include "daemon/permissions.h"
#include "daemon/reconcile.h"
#include "registry/state.h"
#include "sections/xdp_section.h"
#include "yaml/errors.h"

static json_t *errors_to_json(const struct config_errors *errs)
{
	json_t *list = json_array();

	for (size_t i = 0; i < errs->n; i++)
		json_array_append_new(
			list, json_pack("{si si ss ss ss}", "line", (int)errs->e[i].line, "column",
					(int)errs->e[i].column, "path", errs->e[i].path, "found",
					errs->e[i].found, "expected", errs->e[i].expected));
	return list;
}

/* An apply goes on when its client has gone. */
struct apply_work {
	struct agent *a;
	struct client *c; /* NULL: gone */
	int fd;		  /* sealed memory that has the text, until that is read; -1: none */
	size_t most;
	char *text;
	size_t len;
	bool dry_run, by_root;
	int pid;
	bool shared;	  /* for all nodes: request_shared.h */
	int64_t revision; /* without a text: that one again, 0: the one before */
	int64_t of;	  /* the text is that revision's */
	json_t *diff;	  /* while it is stored */
};

static void work_free(struct apply_work *w)
{
	if (w) {
		close_fd(&w->fd);
		free(w->text);
		json_decref(w->diff);
	}
	free(w);
}

struct apply_answer {
	json_t *json;
	struct reply text;
	int r;
};

static void write_apply_answer(void *arg)
{
	struct apply_answer *x = arg;

	x->r = x->json ? reply_make(x->json, &x->text) : -ENOMEM;
	json_decref(x->json);
}

/* A long list of changes is written, and forgotten, by a thread. */
static void answer_apply(const struct apply_work *w, json_t *answer)
{
	struct apply_answer x = {.json = answer};

	if (json_array_size(json_object_get(answer, "diff")) > REQUEST_ROWS_AT_ONCE)
		work_offload(w->a->work, write_apply_answer, &x);
	else
		write_apply_answer(&x);
	if (!w->c) {
		if (!x.r)
			reply_free(&x.text);
	} else if (x.r) {
		client_error(w->c, x.r, "the answer is longer than the agent has memory for");
	} else {
		client_reply_made(w->c, &x.text);
	}
}

static void fail_apply(const struct apply_work *w, int code, const char *text)
{
	answer_apply(w, json_pack("{sb si ss}", "ok", 0, "errno", -code, "error", text));
}

static void forget(void *json)
{
	json_decref(json);
}

static void note_hint(void *warnings, const char *text)
{
	json_array_append_new(warnings, json_string(text));
}

static void apply_config(const struct apply_work *w, struct config_next *next)
{
	struct agent *a = w->a;
	json_t *diff = NULL, *warnings = json_array();
	struct error e = {0};
	bool holds;
	int r;

	if (!next->edited) /* else rules are as they were, and not all services are there */
		config_hints(&next->config, note_hint, warnings);
	a->warnings = warnings;
	a->applying = w->pid;
	r = reconcile(a, next, w->dry_run, &diff, &holds, &e);
	a->applying = 0;
	a->warnings = NULL;
	if (holds)
		config_file_keep(a->inst, w->text);
	if (r) {
		work_offload(a->work, forget, diff);
		json_decref(warnings);
		fail_apply(w, r, e.text);
		return;
	}
	answer_apply(w, json_pack("{sb so sb so}", "ok", 1, "diff", diff, "applied", !w->dry_run,
				  "warnings", warnings));
}

struct reading {
	struct apply_work *w;
	int fd, r;
};

static void read_text(void *arg)
{
	struct reading *x = arg;

	x->r = control_text_read(x->fd, x->w->most, &x->w->text, &x->w->len);
}

/* Sealed memory is its client's, which may have had it swapped out: a thread waits for it. */
static int take_sealed(struct apply_work *w)
{
	autoclose int fd = take_fd(&w->fd);
	struct reading x = {.w = w, .fd = fd};

	if (fd >= 0)
		work_offload(w->a->work, read_text, &x);
	return x.r;
}

static const char *text_failed(const struct apply_work *w, int r)
{
	if (r == -EFBIG)
		return w->by_root ? "a config of more than 8 MiB is too long for the agent"
				  : "a config of more than 1 MiB is root's: use sudo";
	if (r == -EINVAL)
		return "apply goes with a config's text";
	return r == -ENOMEM ? "out of memory" : strerror(-r);
}

static void answer_errors(const struct apply_work *w, int r, const struct config_errors *errs)
{
	answer_apply(w, json_pack("{sb si ss so}", "ok", 0, "errno", -r, "error",
				  "the config has errors, nothing was changed", "errors",
				  errors_to_json(errs)));
}

static void apply_text(struct apply_work *w)
{
	struct config_errors errs = {0};
	struct config_next next;
	int r = reconcile_parse(w->a, w->text, w->len, &next, &errs);

	if (r) {
		answer_errors(w, r, &errs);
		config_errors_free(&errs);
	} else if (!w->by_root && xdp_section_reads_files(&next.config)) {
		/* messages about a file may quote it */
		config_next_free(&next);
		fail_apply(w, -EPERM, "only root may do that: use sudo");
	} else {
		apply_config(w, &next);
	}
}

static void end_apply(struct apply_work *w)
{
	struct client_state *st = w->c ? client_kept(w->c) : NULL;

	if (st)
		st->apply = NULL;
	work_free(w);
}

/* --- for all nodes --- */

static void on_stored(void *arg, int err, int64_t revision, const char *why)
{
	struct apply_work *w = arg;

	if (err)
		fail_apply(w, err, why);
	else
		answer_apply(w, json_pack("{sb sO sb sI}", "ok", 1, "diff", w->diff, "applied", 1,
					  "revision", (json_int_t)revision));
	end_apply(w);
}

/* Whether it goes on: on_stored() comes. */
static bool apply_shared(struct apply_work *w)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	struct error e = {0};
	int r = shared_judge(w->a, w->text, &w->diff, &errs, &e);

	if (!r && !w->dry_run &&
	    !(r = cluster_config_store(w->a, w->text, w->of, on_stored, w, &e)))
		return true;
	if (errs.n)
		answer_errors(w, r, &errs);
	else if (r)
		fail_apply(w, r, e.text);
	else
		answer_apply(w, json_pack("{sb sO sb}", "ok", 1, "diff", w->diff, "applied", 0));
	return false;
}

static int take_revision(struct apply_work *w, struct error *e)
{
	const char *text = cluster_config_text(w->a, &w->revision, e);

	if (!text)
		return -ENOENT;
	w->of = w->revision;
	w->text = strdup(text);
	w->len = w->text ? strlen(w->text) : 0;
	return w->text ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static void apply(void *arg)
{
	struct apply_work *w = arg;
	struct error e = {0};
	int r = take_sealed(w);

	if (w->shared && w->fd < 0 && !w->text && !r)
		r = take_revision(w, &e);
	r = !r && (!w->text || strlen(w->text) != w->len) ? -EINVAL : r;
	if (r)
		fail_apply(w, r, e.text[0] ? e.text : text_failed(w, r));
	else if (!w->shared)
		apply_text(w);
	else if (apply_shared(w))
		return;
	end_apply(w);
}

static int take_text(const json_t *j, int fd, struct apply_work *w)
{
	const json_t *text = json_object_get(j, "text");

	if (fd >= 0) {
		w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		return w->fd < 0 ? -errno : 0;
	}
	if (w->shared && json_is_integer(json_object_get(j, "revision"))) {
		w->revision = json_integer_value(json_object_get(j, "revision"));
		return w->revision < 0 ? -EINVAL : 0;
	}
	if (!json_is_string(text))
		return -EINVAL;
	w->len = json_string_length(text);
	w->text = strdup(json_string_value(text));
	return w->text ? 0 : -ENOMEM;
}

static bool is_shared(const json_t *j)
{
	const char *op = json_string_value(json_object_get(j, "op"));

	return op && streq(op, "apply-cluster");
}

void request_apply(struct agent *a, struct client *c, json_t *j, int fd)
{
	bool dry_run = json_is_true(json_object_get(j, "dry_run"));
	struct client_state *st = client_state_get(c);
	struct apply_work *w;
	int r;

	if (!st || (!dry_run && only_root(c)))
		return;
	if (st->apply) {
		client_error(c, -EBUSY, "this connection is applying a config already");
		return;
	}
	w = calloc(1, sizeof(*w));
	if (w) {
		*w = (struct apply_work){.a = a,
					 .c = c,
					 .fd = -1,
					 .most = client_line_max(c),
					 .dry_run = dry_run,
					 .shared = is_shared(j),
					 .by_root = client_uid(c) == 0,
					 .pid = client_pid(c)};
		r = take_text(j, fd, w);
		if (r) {
			client_error(c, r, text_failed(w, r));
			work_free(w);
			return;
		}
	}
	st->apply = w;
	if (w && !work_start(a->work, client_uid(c), apply, w))
		return;
	st->apply = NULL;
	work_free(w);
	client_error(c, -ENOMEM, "out of memory");
}

void request_apply_orphan(struct apply_work *w)
{
	w->c = NULL;
	/* nobody wants to know any more: it is not to have a descriptor of the agent's as well */
	if (w->dry_run)
		close_fd(&w->fd);
}
