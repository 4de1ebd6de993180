// SPDX-License-Identifier: GPL-2.0-or-later
/* Changing a thread that waits; and the list of what is being changed. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "tools/trace/step/change.h"

#if defined(__aarch64__)
#define RESULT_WORD 0
#else
#define RESULT_WORD 10
#define CALL_WORD   15 /* else the kernel may take a result for one of a system call */
#endif

/* --- results --- */

/* "returns 5 instead of 3", with whose name the event is. */
static void put_change(struct step_request *q, int pid, int tid, const char *event, int64_t value,
		       int64_t before, const char *text)
{
	if (!q->t.json) {
		step_put_event(q, pid, tid, text, 0);
		return;
	}
	step_begin_event(q, event);
	trace_out_printf(&q->t.out, ",\"value\":%lld,\"before\":%lld,\"pid\":%d,\"tid\":%d}\n",
			 (long long)value, (long long)before, pid, tid);
}

static void set_result(struct step_request *q, int pid, int tid)
{
	struct step_registers r;
	char text[128];
	uint64_t old;

	if (step_get_registers(tid, &r) < 0)
		return;
	old = r.v[RESULT_WORD];
	r.v[RESULT_WORD] = q->change->result.value;
#if !defined(__aarch64__)
	r.v[CALL_WORD] = UINT64_MAX;
#endif
	if (step_set_registers(tid, &r) < 0) {
		step_put_event(q, pid, tid, "the result could not be set", 0);
		return;
	}
	snprintf(text, sizeof(text), "returns %lld instead of %lld",
		 (long long)q->change->result.value, (long long)old);
	put_change(q, pid, tid, "return", (int64_t)q->change->result.value, (int64_t)old, text);
}

/* --- errno --- */

/* False, with what was told: a result that says there was an error would be without it. */
static bool set_errno(struct step_request *q, struct change_memory *m, int pid, int tid)
{
	char text[192], a[CHANGE_ERRNO_TEXT], b[CHANGE_ERRNO_TEXT];
	struct change *c = q->change;
	int32_t before = 0, now = c->error;
	uint64_t address = 0;
	const char *why = m ? change_find_errno(&c->location, pid, tid, &address)
			    : "errno cannot be set: out of memory";

	if (!why && (step_read_memory(m->fd, address, &before, sizeof(before)) < 0 ||
		     step_write_memory(m->fd, tid, address, &now, sizeof(now)) < 0))
		why = "errno cannot be set, since it is in no memory of the program's own";
	if (why) {
		snprintf(text, sizeof(text), "left as it is: %s", why);
		step_put_event(q, pid, tid, text, 0);
		return false;
	}
	snprintf(text, sizeof(text), "errno is %s instead of %s", change_errno_name(now, a),
		 change_errno_name(before, b));
	put_change(q, pid, tid, "errno", now, before, text);
	return true;
}

/* --- memory --- */

/* A variable that could not be taken back is not written; what else is in memory (on the stack,
 * from malloc()) may be something else at the end, and is never taken back. */
static const char *write_one(struct change_memory *m, int tid, const struct change_write *w,
			     uint64_t address, uint64_t *before)
{
	struct change_old *old;
	size_t known = m->n_olds;

	*before = 0;
	if (step_read_memory(m->fd, address, before, w->size) < 0)
		return "not written: there is no memory";
	old = w->is_static ? change_old_at(m, address, w->size) : NULL;
	if (!old && w->is_static)
		return "not written: too many places to take back";
	if (step_write_memory(m->fd, tid, address, &w->value, w->size) < 0) {
		m->n_olds = known;
		return "not written: the program may not write there";
	}
	if (!old)
		return NULL;
	if (m->n_olds > known)
		old->old = *before;
	old->now = 0;
	memcpy(&old->now, &w->value, w->size);
	return NULL;
}

/* `v` as the type that was asked for has it. */
static void put_number(struct trace_out *o, const struct change_write *w, uint64_t v)
{
	unsigned above = 64 - 8 * w->size;

	v = v << above >> above;
	if (w->type == 'x')
		trace_out_printf(o, "0x%llx", (unsigned long long)v);
	else if (w->type == 's')
		trace_out_printf(o, "%lld", (long long)((int64_t)(v << above) >> above));
	else
		trace_out_u64(o, v);
}

static void put_json_number(struct trace_out *o, const char *name, const struct change_write *w,
			    uint64_t v)
{
	const char *quote = w->type == 'x' ? "\"" : "";

	trace_out_printf(o, ",\"%s\":%s", name, quote);
	put_number(o, w, v);
	trace_out_text(o, quote);
}

/* What was written, where, and what was there; or why not. */
static void put_write(struct step_request *q, int pid, int tid, const struct change_write *w,
		      uint64_t address, uint64_t before, const char *why)
{
	struct trace_out *o = &q->t.out;

	if (!q->t.json) {
		trace_out_printf(o, "%7d     - ", tid);
		trace_out_safe(o, w->text, strlen(w->text));
		if (why) {
			trace_out_printf(o, ": %s\n", why);
			return;
		}
		trace_out_printf(o, ": wrote ");
		put_number(o, w, w->value);
		trace_out_printf(o, " at 0x%llx, where ", (unsigned long long)address);
		put_number(o, w, before);
		trace_out_text(o, " was\n");
		return;
	}
	step_begin_event(q, "write");
	trace_out_text(o, ",\"write\":");
	trace_out_json(o, w->text, strlen(w->text));
	if (why) {
		trace_out_text(o, ",\"error\":");
		trace_out_json(o, why, strlen(why));
	} else {
		put_json_number(o, "value", w, w->value);
		put_json_number(o, "before", w, before);
		trace_out_printf(o, ",\"address\":\"0x%llx\"", (unsigned long long)address);
	}
	trace_out_printf(o, ",\"pid\":%d,\"tid\":%d}\n", pid, tid);
}

static void write_memory(struct step_request *q, struct change_memory *m, int pid, int tid,
			 const struct ax_probe_record *r)
{
	struct change *c = q->change;

	for (size_t i = 0; i < c->n_writes && i < r->n_values; i++) {
		const struct change_write *w = &c->writes[i];
		uint64_t before = 0;
		const char *why = r->faults & 1u << i
					  ? "not written: the address could not be fetched"
					  : write_one(m, tid, w, r->values[i], &before);

		put_write(q, pid, tid, w, r->values[i], before, why);
	}
}

/* Its memory is taken before it is asked whose the process is: so what is written to was the
 * owner's, even if another thread has it become another one's program meanwhile. */
void change_apply(struct step_request *q, int pid, int tid, const struct ax_probe_record *r)
{
	struct change *c = q->change;
	struct change_memory *m = c->n_writes || c->error ? change_memory(c, pid, tid) : NULL;

	if (!change_is_owned(c, pid)) {
		step_put_event(q, pid, tid, "left as it is: it is not a process of its owner alone",
			       0);
		return;
	}
	if (c->error && !set_errno(q, m, pid, tid))
		return;
	if (m)
		write_memory(q, m, pid, tid, r);
	else if (c->n_writes)
		step_put_event(q, pid, tid, "not written: out of memory", 0);
	if (c->returns)
		set_result(q, pid, tid);
}

/* --- the list --- */

/* Who looks at the list may take the file for one that was left, and delete it, before it is
 * locked. */
static int open_listed(struct change *c, const struct instance *inst)
{
	struct stat st;

	for (;;) {
		int r = mkdir_parents(inst->run_dir, 0755);

		if (r < 0)
			return r;
		c->listed =
			open(c->path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (c->listed < 0 && errno == ENOENT)
			continue; /* another one's end has taken the directory away */
		if (c->listed < 0)
			return -errno;
		while (flock(c->listed, LOCK_EX) < 0)
			if (errno != EINTR)
				return -errno;
		if (fstat(c->listed, &st) == 0 && st.st_nlink)
			return 0;
		close_fd(&c->listed);
	}
}

/* "17,21 -f" */
static void write_whom(const struct step_request *q, char *to, size_t len)
{
	const struct trace_whom *w = &q->t.whom;
	size_t n = 0;

	for (size_t i = 0; i < w->n && n < len; i++)
		n += (size_t)snprintf(to + n, len - n, "%s%u", i ? "," : "", w->v[i]);
	if (q->args.follow && n < len)
		snprintf(to + n, len - n, " -f");
}

int change_list(struct step_request *q, struct error *e)
{
	const struct instance *inst = &q->t.c->inst;
	struct change *c = q->change;
	struct probe_spec probe = q->t.specs[0];
	char *text, whom[CHANGE_LINE_MAX - 2048], line[CHANGE_LINE_MAX], error[CHANGE_ERRNO_TEXT];
	int n, r;

	probe.n_args = 0; /* addresses of what is written */
	text = probe_format(&probe);
	write_whom(q, whom, sizeof(whom));
	n = snprintf(line, sizeof(line), "%s  %.500s%s", whom, text ? text : "?",
		     c->returns ? "  returns" : "");
	free(text);
	if (c->returns)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %lld",
			      (long long)c->result.value);
	if (c->error)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "  errno %s",
			      change_errno_name(c->error, error));
	for (size_t i = 0; i < c->n_writes && n < (int)sizeof(line) - 120; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "  writes %.100s",
			      c->writes[i].text);
	n += snprintf(line + n, sizeof(line) - (size_t)n, "\n");
	snprintf(c->path, sizeof(c->path), "%s/change-%d", inst->run_dir, getpid());
	r = open_listed(c, inst);
	if (r == 0)
		r = write_whole(c->listed, line, (size_t)n);
	return r < 0 ? error_set(e, r, "the change cannot be listed in %s: %s", inst->run_dir,
				 strerror(-r))
		     : 0;
}

void change_unlist(struct change *c)
{
	if (c->listed < 0)
		return;
	unlink(c->path);
	close_fd(&c->listed);
	*strrchr(c->path, '/') = 0;
	rmdir(c->path); /* unless an agent has it */
}
