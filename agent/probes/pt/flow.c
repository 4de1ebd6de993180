// SPDX-License-Identifier: GPL-2.0-or-later
/* The instructions that a trace of Intel PT says were executed, as far as their bytes are at hand.
 */
#include "probes/pt/priv.h"

/* A loop without a branch that could have gone elsewhere writes nothing into the trace, and has no
 * end in it: so many instructions without a packet are one. */
#define STEPS_MAX (1u << 20)

struct walk {
	const struct pt_library *lib;
	struct pt_insn_decoder *decoder;
	const struct pt_flow *flow;
	uint64_t offset; /* of the packet that was read last */
	uint32_t steps;	 /* since then */
};

static int read_memory(uint8_t *buf, size_t size, const struct pt_asid *asid, uint64_t ip,
		       void *context)
{
	const struct walk *w = context;
	size_t n = w->flow->read(w->flow->arg, ip, buf, size);

	(void)asid;
	return n ? (int)n : -pte_nomap;
}

static void tell_time(struct walk *w)
{
	uint64_t tsc;
	uint32_t lost_mtc, lost_cyc;

	if (w->lib->insn_time(w->decoder, &tsc, &lost_mtc, &lost_cyc) >= 0)
		w->flow->time(w->flow->arg, tsc);
}

static void note(const struct walk *w, enum pt_note_kind kind, uint64_t ip, const char *text)
{
	struct pt_note n = {.kind = kind, .ip = ip, .text = text};

	w->lib->insn_get_offset(w->decoder, &n.offset);
	w->flow->note(w->flow->arg, &n);
}

static void see_event(struct walk *w, const struct pt_event *ev)
{
	bool off = ev->type == ptev_disabled || ev->type == ptev_async_disabled;

	/* libipt 2.1 tells at a PSB that tracing is off, older ones do not */
	if (off && ev->status_update)
		return;
	/* the time of what comes next is read before its end is told */
	if (!off)
		tell_time(w);
	switch (ev->type) {
	case ptev_enabled:
		note(w, PT_NOTE_ENABLED, ev->variant.enabled.ip, NULL);
		break;
	case ptev_disabled:
		note(w, PT_NOTE_DISABLED, ev->ip_suppressed ? 0 : ev->variant.disabled.ip, NULL);
		break;
	case ptev_async_disabled:
		note(w, PT_NOTE_DISABLED, ev->variant.async_disabled.at, NULL);
		break;
	case ptev_async_branch:
		note(w, PT_NOTE_INTERRUPT, ev->variant.async_branch.from, NULL);
		break;
	case ptev_overflow:
		note(w, PT_NOTE_OVERFLOW, ev->ip_suppressed ? 0 : ev->variant.overflow.ip, NULL);
		break;
	default: /* of paging, power and so on is no trace in what was executed */
		break;
	}
}

static int see_events(struct walk *w, int status)
{
	struct pt_event ev;

	while (status >= 0 && status & pts_event_pending) {
		status = w->lib->insn_event(w->decoder, &ev, sizeof(ev));
		if (status >= 0)
			see_event(w, &ev);
	}
	return status;
}

static void see_step(struct walk *w, const struct pt_insn *insn)
{
	static const enum pt_step_kind kinds[] = {
		[ptic_call] = PT_STEP_CALL,    [ptic_return] = PT_STEP_RETURN,
		[ptic_jump] = PT_STEP_JUMP,    [ptic_cond_jump] = PT_STEP_BRANCH,
		[ptic_far_call] = PT_STEP_FAR, [ptic_far_return] = PT_STEP_FAR,
		[ptic_far_jump] = PT_STEP_FAR,
	};
	struct pt_step s = {.ip = insn->ip, .size = insn->size};

	if (insn->iclass < ARRAY_SIZE(kinds))
		s.kind = kinds[insn->iclass];
	w->flow->step(w->flow->arg, &s);
}

static bool goes_on(struct walk *w)
{
	uint64_t offset;

	if (++w->steps < STEPS_MAX)
		return true;
	w->steps = 0;
	if (w->lib->insn_get_offset(w->decoder, &offset) < 0 || offset == w->offset)
		return false;
	w->offset = offset;
	return true;
}

/* From one PSB as far as it goes. */
static int follow(struct walk *w, int status)
{
	struct pt_insn insn;

	tell_time(w);
	for (;;) {
		status = see_events(w, status);
		if (status < 0)
			return status;
		if (status & pts_eos)
			return -pte_eos;
		insn = (struct pt_insn){0};
		status = w->lib->insn_next(w->decoder, &insn, sizeof(insn));
		if (insn.iclass != ptic_error)
			see_step(w, &insn);
		if (status < 0) {
			if (status != -pte_eos)
				note(w, PT_NOTE_GAP, insn.ip,
				     w->lib->errstr((enum pt_error_code) - status));
			return status;
		}
		if (!goes_on(w)) {
			note(w, PT_NOTE_GAP, insn.ip, "a loop without an end");
			return -pte_bad_query;
		}
	}
}

static int follow_all(struct walk *w, struct error *e)
{
	uint64_t last = UINT64_MAX, at;
	bool any = false;

	for (;;) {
		int status = w->lib->insn_sync_forward(w->decoder);

		if (status == -pte_nomem)
			return error_set(e, -ENOMEM, "out of memory");
		if (status == -pte_eos) {
			if (!any)
				note(w, PT_NOTE_GAP, 0, "there is no PSB to begin at");
			return 0;
		}
		any = true;
		/* a PSB at which nothing can begin is passed by the next try, or it is the last one
		 */
		if (w->lib->insn_get_offset(w->decoder, &at) < 0 || at == last)
			return 0;
		last = at;
		if (status < 0)
			note(w, PT_NOTE_GAP, 0, w->lib->errstr((enum pt_error_code) - status));
		else
			follow(w, status);
	}
}

int pt_flow_run(uint8_t *trace, size_t n, const struct pt_clock *clock, const struct pt_flow *flow,
		struct error *e)
{
	const struct pt_library *lib = pt_library(e);
	struct walk w = {.lib = lib, .flow = flow};
	struct pt_config config;
	struct pt_image *image;
	int r = -ENOMEM;

	if (!lib)
		return -ENOTSUP;
	pt_config_init(&config);
	config.begin = trace;
	config.end = trace + n;
	config.cpuid_0x15_eax = clock->ctc_denominator;
	config.cpuid_0x15_ebx = clock->ctc_numerator;
	config.mtc_freq = clock->mtc_freq;
	config.nom_freq = clock->nominal;
	image = lib->image_alloc("traced");
	w.decoder = lib->insn_alloc_decoder(&config);
	if (image && w.decoder && lib->image_set_callback(image, read_memory, &w) >= 0 &&
	    lib->insn_set_image(w.decoder, image) >= 0)
		r = follow_all(&w, e);
	else
		error_set(e, r, "out of memory");
	lib->insn_free_decoder(w.decoder);
	lib->image_free(image);
	return r;
}
