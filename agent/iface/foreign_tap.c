// SPDX-License-Identifier: GPL-2.0-or-later
/* Looking at the packets of an interface whose program is somebody else's. */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <net/ethernet.h>
#include <net/if.h>

#include "iface/priv.h"

/* What the filter still gets of a frame that the kernel runs no program on, as it is too long. */
#define RUN_MAX 2048

struct xdp_foreign_tap {
	const struct instance *inst;
	char ifname[IF_NAMESIZE];
	struct xdp_foreign now;
	struct datapath_foreign d;
	struct generation wanted; /* the filter; prog -1: there is none */
	uint32_t snap;
	uint64_t packets, bytes; /* that the filter wants */
	uint8_t *frame;		 /* AX_CAPTURE_MAX bytes: the one that is read */
	struct {
		int (*f)(void *arg, const struct ax_tapped *p, const uint8_t *data);
		void *arg;
		int result;
	} reader;
};

/* --- packets --- */

static int runs(const struct generation *g, const uint8_t *frame, size_t len, uint32_t *action)
{
	struct ax_explain x = {.state = AX_STATE_UNASKED, .minute = AX_TIME_UNKNOWN};
	autofree uint8_t *out = NULL;
	size_t out_len;

	return generation_explain(g, frame, len, &x, action, &out, &out_len);
}

/* 1: the filter wants it; 0 or a negative errno. */
static int is_wanted(const struct xdp_foreign_tap *t, size_t len)
{
	uint32_t action = XDP_DROP;
	int r;

	if (t->wanted.prog < 0)
		return 1;
	if (len < ETHER_HDR_LEN)
		return 0;
	r = runs(&t->wanted, t->frame, len, &action);
	if (r == -EINVAL && len > RUN_MAX)
		r = runs(&t->wanted, t->frame, RUN_MAX, &action);
	return r ? r : action == XDP_PASS;
}

static int on_packet(struct xdp_foreign_tap *t, struct ax_tapped *p)
{
	/* that of what goes out, the reader knows by its number */
	if (p->kind == AX_TAPPED_IN) {
		int r = is_wanted(t, p->captured);

		if (r <= 0)
			return r;
		t->packets += p->sample;
		t->bytes += (uint64_t)p->sample * p->frame_len;
	}
	if (p->captured > t->snap)
		p->captured = t->snap;
	return t->reader.f(t->reader.arg, p, t->frame);
}

static int on_record(void *arg, void *data, size_t size)
{
	struct xdp_foreign_tap *t = arg;
	struct ax_tapped p;

	if (size < sizeof(p) || t->reader.result)
		return 0;
	memcpy(&p, data, sizeof(p));
	if (p.captured > size - sizeof(p) || p.captured > AX_CAPTURE_MAX)
		return 0;
	memcpy(t->frame, (const uint8_t *)data + sizeof(p), p.captured);
	t->reader.result = on_packet(t, &p);
	return t->reader.result ? -1 : 0;
}

int xdp_foreign_tap_read(struct xdp_foreign_tap *t,
			 int (*f)(void *arg, const struct ax_tapped *p, const uint8_t *data),
			 void *arg)
{
	int r;

	t->reader.f = f;
	t->reader.arg = arg;
	t->reader.result = 0;
	r = datapath_foreign_read(&t->d);
	return t->reader.result ? t->reader.result : r < 0 ? r : 0;
}

void xdp_foreign_tap_sample(struct xdp_foreign_tap *t, uint32_t n)
{
	datapath_foreign_sample(&t->d, n);
}

int xdp_foreign_tap_came(struct xdp_foreign_tap *t, struct ax_tap_count *ret)
{
	return datapath_foreign_count(&t->d, ret);
}

int xdp_foreign_tap_count(struct xdp_foreign_tap *t, struct ax_tap_count *ret)
{
	int r = datapath_foreign_count(&t->d, ret);

	if (t->wanted.prog >= 0) {
		ret->packets = t->packets;
		ret->bytes = t->bytes;
	}
	return r;
}

const struct xdp_program_info *xdp_foreign_tap_by(const struct xdp_foreign_tap *t,
						  const struct ax_tapped *p)
{
	size_t place = p->told.rule;

	if (p->told.key != t->d.options.target)
		return NULL;
	if (!t->now.dispatcher || t->now.n == 1)
		return t->now.programs;
	return place && place <= t->now.n ? &t->now.programs[place - 1] : NULL;
}

/* --- what is attached --- */

/* libxdp has a program that is alone take the place of the whole dispatcher (by freplace), which
 * cannot be watched then: -EBUSY. */
static int watch_either(struct xdp_foreign_tap *t, const struct xdp_foreign *f)
{
	autoclose int only = -1;
	uint32_t ids[PARTS_MAX] = {0};
	size_t n = 0;
	int r;

	for (; f->dispatcher && n < f->n && n < PARTS_MAX; n++)
		ids[n] = f->programs[n].id;
	r = datapath_foreign_watch(&t->d, f->prog, ids, n);
	if (r != -EBUSY || n != 1)
		return r;
	only = bpf_prog_get_fd_by_id(ids[0]);
	return only < 0 ? -errno : datapath_foreign_watch(&t->d, only, NULL, 0);
}

static int watch(struct xdp_foreign_tap *t, struct xdp_foreign *f, struct error *e)
{
	const char *name = f->dispatcher && f->n > 1 ? "libxdp's dispatcher" : f->programs[0].name;
	int r = watch_either(t, f);

	if (!r) {
		xdp_foreign_close(&t->now);
		t->now = *f;
		return 0;
	}
	if (r == -ENODATA)
		return error_set(e, r,
				 "what %s on %s makes of packets cannot be seen: it was loaded "
				 "without BTF, by which the kernel knows what a program is given",
				 name, t->ifname);
	return error_set(e, r,
			 "the kernel does not let anybody see what %s on %s, which is not of this "
			 "instance, makes of packets (the line fexit of ax doctor says whether it "
			 "can): %s",
			 name, t->ifname, strerror(-r));
}

static int watch_what_is_there(struct xdp_foreign_tap *t, struct error *e)
{
	struct xdp_foreign f;
	int r = xdp_foreign_open(t->inst, t->ifname, &f, e);

	if (r)
		return r;
	r = watch(t, &f, e);
	if (r)
		xdp_foreign_close(&f);
	return r;
}

int xdp_foreign_tap_follow(struct xdp_foreign_tap *t, struct error *e)
{
	unsigned ifindex = if_nametoindex(t->ifname);
	struct error why = {0};
	uint32_t id;
	int r;

	if (ifindex != t->now.ifindex)
		return error_set(e, -ENOENT, "%s is gone: nothing comes any more", t->ifname);
	r = xdp_foreign_id(t->ifname, ifindex, &id, e);
	if (!r && id == t->now.id)
		return 0;
	if (!r)
		r = watch_what_is_there(t, &why);
	if (r == -ENOENT)
		return error_set(e, r, "the program was taken off %s: nothing comes any more",
				 t->ifname);
	if (r && why.text[0])
		*e = why;
	return r ? r : 1;
}

/* --- from the first to the last packet --- */

/* There are no sets: those are a list's. */
static int load_filter(struct xdp_foreign_tap *t, const struct rule *filter, struct error *e)
{
	struct xdp here = {.inst = t->inst, .ifindex = t->now.ifindex};

	here.g.layout.since_boot = time_boot_ns();
	here.g.layout.hz = xdp_ticks_per_second();
	here.g.layout.has_frags = true;
	here.g.layout.netns_cookie = xdp_own_netns_cookie();
	return xdp_tap_filter(&here, filter, &t->wanted, e);
}

int xdp_foreign_tap_open(const struct instance *inst, const char *ifname,
			 const struct xdp_tap_options *o, struct xdp_foreign_tap **ret,
			 struct error *e)
{
	struct ax_foreign_options options = {.netns_cookie = xdp_own_netns_cookie()};
	struct xdp_foreign_tap *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return error_set(e, -ENOMEM, "out of memory");
	t->inst = inst;
	t->snap = o->snap && o->snap < AX_CAPTURE_MAX ? o->snap : AX_CAPTURE_MAX;
	t->wanted = (struct generation){.prog = -1, .arena = -1};
	t->now.prog = -1;
	t->frame = malloc(AX_CAPTURE_MAX);
	snprintf(t->ifname, sizeof(t->ifname), "%s", ifname);
	r = t->frame ? xdp_foreign_open(inst, ifname, &t->now, e)
		     : error_set(e, -ENOMEM, "out of memory");
	if (!r && o->filter)
		r = load_filter(t, o->filter, e);
	if (!r) {
		options.ifindex = t->now.ifindex;
		options.snap = o->filter ? AX_CAPTURE_MAX : t->snap; /* it is cut behind it */
		r = datapath_foreign_open(&options, o->ring, on_record, t, &t->d, e);
	}
	if (!r)
		r = watch_what_is_there(t, e);
	if (r)
		xdp_foreign_tap_close(t);
	else
		*ret = t;
	return r;
}

void xdp_foreign_tap_close(struct xdp_foreign_tap *t)
{
	datapath_foreign_close(&t->d);
	generation_close(&t->wanted);
	xdp_foreign_close(&t->now);
	free(t->frame);
	free(t);
}
