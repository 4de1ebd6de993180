/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A config that a client hands over: checked, compared, and applied as a work. */
#include <fcntl.h>

#include "daemon/requests_priv.h"
#include "base/work.h"
#include "config/config.h"
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
};

static void work_free(struct apply_work *w)
{
	if (w) {
		close_fd(&w->fd);
		free(w->text);
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

static void apply_config(const struct apply_work *w, struct config_next *next)
{
	struct agent *a = w->a;
	json_t *diff = NULL, *warnings = json_array();
	struct error e = {0};
	bool holds;
	int r;

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

static void apply_text(struct apply_work *w)
{
	struct config_errors errs = {0};
	struct config_next next;
	int r = reconcile_parse(w->a, w->text, w->len, &next, &errs);

	if (r) {
		answer_apply(w, json_pack("{sb si ss so}", "ok", 0, "errno", -r, "error",
					  "the config has errors, nothing was changed", "errors",
					  errors_to_json(&errs)));
		config_errors_free(&errs);
	} else if (!w->by_root && xdp_section_reads_files(&next.config)) {
		/* messages about a file may quote it */
		config_next_free(&next);
		fail_apply(w, -EPERM, "only root may do that: use sudo");
	} else {
		apply_config(w, &next);
	}
}

static void apply(void *arg)
{
	struct apply_work *w = arg;
	struct client_state *st;
	int r = take_sealed(w);

	r = !r && (!w->text || strlen(w->text) != w->len) ? -EINVAL : r;
	if (r)
		fail_apply(w, r, text_failed(w, r));
	else
		apply_text(w);
	st = w->c ? client_kept(w->c) : NULL;
	if (st)
		st->apply = NULL;
	work_free(w);
}

static int take_text(const json_t *j, int fd, struct apply_work *w)
{
	const json_t *text = json_object_get(j, "text");

	if (fd >= 0) {
		w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		return w->fd < 0 ? -errno : 0;
	}
	if (!json_is_string(text))
		return -EINVAL;
	w->len = json_string_length(text);
	w->text = strdup(json_string_value(text));
	return w->text ? 0 : -ENOMEM;
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
