// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/timerfd.h>

#include "splice/splice.h"
#include "base/log.h"
#include "base/work.h"
#include "registry/app_table.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "splice/look.h"
#include "splice/policy.h"
#include "splice/streams.h"

/* --- the timer --- */

static void arm(struct splicing *sp, unsigned ms)
{
	const struct itimerspec ts = {
		.it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}};

	timerfd_settime(sp->timer.fd, 0, &ts, NULL);
}

/* Programs that have joined connections may become others. */
#define BEAT_MS 1000

static void set_beat(struct splicing *sp)
{
	const struct itimerspec ts = {.it_value = {.tv_sec = sp->n_watched ? BEAT_MS / 1000 : 0}};

	timerfd_settime(sp->beat.fd, 0, &ts, NULL);
}

/* No later than that. */
static void look_within(struct splicing *sp, unsigned ms)
{
	struct itimerspec left = {0};

	uint64_t ns;

	timerfd_gettime(sp->timer.fd, &left);
	ns = (uint64_t)left.it_value.tv_sec * 1000000000 + (uint64_t)left.it_value.tv_nsec;
	if (!ns || ns > ms * 1000000ull)
		arm(sp, ms);
}

/* --- what is wanted --- */

static bool allowed(const struct splicing *sp, enum splice_mode mode)
{
	return splice_allowed(mode, gate_verdict(sp->gate)) == REASON_NONE;
}

static bool is_yes(enum splice_mode mode)
{
	return mode == SPLICE_ON || mode == SPLICE_FORCED;
}

/* Whether its word, or that of a service that it is behind, asks for splicing that is allowed. */
static bool app_is_wanted(struct agent *a, const struct app *app)
{
	const struct splicing *sp = a->splicing;

	if (is_yes(app->spec.splice) && allowed(sp, app->spec.splice))
		return true;
	for (const struct service *s = a->services; s; s = s->next)
		if (s->conf && is_yes(s->conf->splice) && allowed(sp, s->conf->splice) &&
		    service_affected(s, app))
			return true;
	return false;
}

static bool anything_is_wanted(struct agent *a)
{
	if (allowed(a->splicing, a->config.splice))
		return true;
	for (const struct app *app = a->apps; app; app = app->next)
		if (app_is_wanted(a, app))
			return true;
	return false;
}

/* Whether somebody says anything for which the kernel has to be tried. */
static bool gate_is_needed(const struct agent *a)
{
	if (a->config.splice != SPLICE_OFF)
		return true;
	for (const struct app *app = a->apps; app; app = app->next)
		if (is_yes(app->spec.splice))
			return true;
	for (const struct service *s = a->services; s; s = s->next)
		if (s->conf && is_yes(s->conf->splice))
			return true;
	return false;
}

/* --- the programs --- */

static void unload(struct agent *a)
{
	struct splicing *sp = a->splicing;

	if (sp->events.fd >= 0)
		loop_del(a->epoll, &sp->events);
	sp->events.fd = -1; /* the handle's */
	arm(sp, 0);
	datapath_splice_close(sp->programs);
	sp->programs = NULL;
	sp->counting = false;
	decisions_free(&sp->decisions);
}

static int load(struct agent *a, struct error *e)
{
	struct splicing *sp = a->splicing;
	int r = datapath_splice_open(a->dp, 0, &sp->programs, e);

	if (r) {
		sp->programs = NULL;
		return r;
	}
	r = datapath_splice_events_fd(sp->programs);
	if (r >= 0) {
		sp->events = (struct loop_item){.kind = LOOP_SPLICE_EVENTS, .fd = r};
		r = loop_add(a->epoll, &sp->events, EPOLLIN);
	}
	if (r)
		sp->events.fd = -1;
	r = r ? r : datapath_splice_apps_clear(sp->programs);
	r = r ? r : datapath_splice_redirect(sp->programs, true);
	if (!r)
		return 0;
	unload(a);
	return error_set(e, r, "%s", strerror(-r));
}

static void tell_apps(struct agent *a)
{
	struct splicing *sp = a->splicing;
	bool all = allowed(sp, a->config.splice);

	datapath_splice_app_set(sp->programs, 0, all);
	/* if all are worth a look, nobody's own word matters */
	for (const struct app *app = all ? NULL : a->apps; app; app = app->next)
		datapath_splice_app_set(sp->programs, app->id, app_is_wanted(a, app));
}

static void warn_of_stop(int r)
{
	if (r)
		log_warn("splicing cannot be stopped: %s", strerror(-r));
}

static void close_programs(struct agent *a)
{
	unload(a);
	a->splicing->leaving = false;
	warn_of_stop(datapath_splice_stop(a->dp));
}

/* Nobody wants it any more: what is joined sends by TCP from now on. Who has yet to read what was
 * handed on may need to be woken. */
static void stop(struct agent *a)
{
	struct splicing *sp = a->splicing;
	int r;

	if (sp->stopped)
		return;
	sp->stopped = true;
	if (!sp->programs) {
		close_programs(a);
		return;
	}
	sp->leaving = true;
	r = datapath_splice_rest(sp->programs);
	r = r ? r : datapath_splice_redirect(sp->programs, false);
	warn_of_stop(r);
	look_within(sp, WAKE_FIRST_MS);
}

static int come_back(struct splicing *sp)
{
	int r = datapath_splice_redirect(sp->programs, true);

	sp->leaving = false;
	return r ? r : datapath_splice_listen(sp->programs);
}

static void want(struct agent *a)
{
	struct splicing *sp = a->splicing;
	struct error e = {0};

	sp->stopped = false;
	if (sp->leaving && come_back(sp))
		close_programs(a);
	if (!sp->programs && load(a, &e)) {
		if (!sp->failed)
			log_error("nothing is spliced: %s", e.text);
		sp->failed = true;
		return;
	}
	tell_apps(a);
	sp->pauses.vain = 0;
	look_within(sp, PAUSE_FIRST_MS);
}

void splice_update(struct agent *a)
{
	struct splicing *sp = a->splicing;

	if (!sp)
		return;
	if (sp->busy) {
		sp->outdated = true;
		return;
	}
	if (gate_is_needed(a))
		gate_start(sp->gate);
	if (anything_is_wanted(a))
		want(a);
	else if (!gate_is_needed(a) || gate_verdict(sp->gate)->state != GATE_WAITS)
		stop(a); /* (while the gate runs, what an earlier agent joined goes on) */
}

/* --- the loop --- */

static void on_gate_done(void *arg)
{
	splice_update(arg);
}

void splice_on_gate(struct agent *a)
{
	gate_on_pipe(a->splicing->gate);
}

void splice_on_events(struct agent *a)
{
	struct splicing *sp = a->splicing;
	int told = sp->programs ? datapath_splice_events_read(sp->programs) : 0;

	if (told <= 0)
		return;
	sp->told |= (unsigned)told;
	if (told & AX_SPLICE_TOLD_NEW) {
		bool churn = time_mono_ns() - sp->listened_ns <= PAUSE_FIRST_MS * 1000000ull;

		datapath_splice_rest(sp->programs);
		look_within(sp, pause_when_new(&sp->pauses, churn));
	}
	if (told & AX_SPLICE_TOLD_UNREAD)
		look_within(sp, pause_when_unread(&sp->pauses));
}

void splice_hold(struct splicing *sp)
{
	sp->busy++;
}

void splice_release(struct agent *a)
{
	struct splicing *sp = a->splicing;

	if (--sp->busy || !sp->outdated)
		return;
	sp->outdated = false;
	a->splice_stale = true;
}

/* When to look again, if nobody tells. Looks wake readers of members too, see sockops/sk_msg.bpf.c.
 */
static void look_again(struct splicing *sp, unsigned told)
{
	const struct look_seen seen = {
		.told_new = told & AX_SPLICE_TOLD_NEW,
		.told_unread = told & AX_SPLICE_TOLD_UNREAD,
		.joined = sp->joined > 0,
		.young = sp->young,
		.open = sp->partial || decisions_open(&sp->decisions),
		.streams = sp->counting,
		.unread = sp->unread,
	};
	unsigned ms = pause_after_look(&sp->pauses, &seen);

	if (ms)
		look_within(sp, ms);
}

/* What was handed on is read now, or waited for; nobody else needs the programs. */
static void leave(struct agent *a)
{
	struct splicing *sp = a->splicing;

	if (!sp->holds && sp->busy == 1)
		close_programs(a);
	else
		look_within(sp, pause_when_leaving(&sp->pauses));
}

static void look_work(void *arg)
{
	struct agent *a = arg;
	struct splicing *sp = a->splicing;

	splice_hold(sp);
	if (sp->programs) {
		int told = datapath_splice_events_read(sp->programs);
		int r = sp->leaving ? datapath_splice_redirect(sp->programs, false)
				    : datapath_splice_listen(sp->programs);

		if (r)
			log_warn("splicing: nobody tells of new connections: %s", strerror(-r));
		sp->listened_ns = time_mono_ns();
		told = told > 0 ? told | (int)sp->told : (int)sp->told;
		sp->told = 0;
		look(a, sp);
		look_again(sp, (unsigned)told);
		set_beat(sp);
		if (sp->leaving)
			leave(a);
	}
	sp->looking = false;
	splice_release(a);
}

void splice_on_timer(struct agent *a)
{
	struct splicing *sp = a->splicing;
	uint64_t n;

	if (read(sp->timer.fd, &n, sizeof(n)) < 0 || !sp->programs)
		return;
	if (sp->looking) { /* what was told meanwhile needs another look */
		arm(sp, PAUSE_FIRST_MS);
		return;
	}
	sp->looking = true; /* until the work's end, which may come before this returns */
	if (work_start(a->work, 0, look_work, a)) {
		sp->looking = false;
		arm(sp, PAUSE_LAST_MS);
	}
}

static void beat_work(void *arg)
{
	struct agent *a = arg;
	struct splicing *sp = a->splicing;

	splice_hold(sp);
	if (look_at_programs(a, sp) && sp->programs)
		look_within(sp, 1);
	set_beat(sp);
	sp->looking = false;
	splice_release(a);
}

void splice_on_beat(struct agent *a)
{
	struct splicing *sp = a->splicing;
	uint64_t n;

	if (read(sp->beat.fd, &n, sizeof(n)) < 0 || !sp->programs)
		return;
	if (sp->looking) {
		set_beat(sp);
		return;
	}
	sp->looking = true;
	if (work_start(a->work, 0, beat_work, a)) {
		sp->looking = false;
		set_beat(sp);
	}
}

static int open_timer(struct agent *a, struct loop_item *item, enum loop_kind kind)
{
	*item = (struct loop_item){
		.kind = kind, .fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
	return item->fd < 0 ? -errno : loop_add(a->epoll, item, EPOLLIN);
}

int splice_open(struct agent *a)
{
	struct splicing *sp = calloc(1, sizeof(*sp));
	int r;

	if (!sp)
		return -ENOMEM;
	a->splicing = sp;
	sp->events.fd = -1;
	sp->beat.fd = -1;
	r = open_timer(a, &sp->timer, LOOP_SPLICE_TIMER);
	r = r ? r : open_timer(a, &sp->beat, LOOP_SPLICE_BEAT);
	r = r ? r : facts_open(&sp->facts);
	return r ? r : gate_open(a->epoll, a->inst, a->cgroup, on_gate_done, a, &sp->gate);
}

void splice_close(struct agent *a)
{
	struct splicing *sp = a->splicing;

	if (!sp)
		return;
	if (sp->programs)
		datapath_splice_close(sp->programs);
	gate_close(sp->gate);
	facts_close(sp->facts);
	decisions_free(&sp->decisions);
	close_fd(&sp->timer.fd);
	close_fd(&sp->beat.fd);
	free(sp->watched);
	free(sp);
	a->splicing = NULL;
}

bool splice_counters(struct agent *a, struct ax_splice_counted ret[AX_SPLICE_COUNTS])
{
	struct splicing *sp = a->splicing;

	if (!sp || !sp->programs || datapath_splice_counters(sp->programs, ret))
		return false;
	ret[AX_SPLICE_FULL].messages += sp->full;
	return true;
}
