// SPDX-License-Identifier: GPL-2.0-or-later
/* Captures, slots and triggers of an interface, read from its rings. */
#include <fcntl.h>
#include <sys/file.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "iface/priv.h"

/* --- captures --- */

static const char *rule_of_counter(struct xdp *x, uint16_t counter)
{
	const struct ax_action *a = (const void *)(x->g.data + x->g.layout.actions);

	for (uint32_t i = 0; i <= x->g.layout.rules; i++)
		if (a[i].counter == counter && a[i].rule < x->names.n)
			return x->names.v[a[i].rule];
	return "(a former rule)";
}

/* A record, if it is whole. */
static const struct ax_capture *record(void *data, size_t size)
{
	const struct ax_capture *c = data;

	return size < sizeof(*c) || c->captured > size - sizeof(*c) ? NULL : c;
}

static int on_capture(void *arg, void *data, size_t size)
{
	const struct ax_capture *c = record(data, size);
	struct xdp *x = arg;

	if (!c || x->reader.result)
		return 0;
	x->reader.result = x->reader.capture(x->reader.arg, c, (const uint8_t *)(c + 1),
					     rule_of_counter(x, c->counter));
	return x->reader.result ? -1 : 0; /* a negative result ends the reading */
}

int xdp_capture_open(struct xdp *x, struct error *e)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/xdp-%.31s.capture", x->inst->run_dir, x->ifname);
	x->capture_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (x->capture_lock < 0)
		return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
	if (flock(x->capture_lock, LOCK_EX | LOCK_NB) < 0)
		return error_set(e, -EBUSY, "another command reads the captures of %s", x->ifname);
	x->captures = ring_buffer__new(x->d.map[XDP_MAP_CAPTURES], on_capture, x, NULL);
	return x->captures ? 0
			   : error_set(e, -errno, "cannot read the captures of %s: %s", x->ifname,
				       strerror(errno));
}

int xdp_capture_read(struct xdp *x,
		     int (*f)(void *arg, const struct ax_capture *c, const uint8_t *data,
			      const char *rule),
		     void *arg)
{
	int r = xdp_refresh(x);

	if (r)
		return r;
	x->reader = (struct xdp_reader){.capture = f, .arg = arg};
	r = ring_buffer__consume(x->captures);
	return x->reader.result ? x->reader.result : r < 0 ? r : 0;
}

int xdp_slots_each(struct xdp *x, int (*f)(void *arg, const char *name, const struct ax_slot *slot),
		   void *arg, struct error *e)
{
	bool seen[AX_SLOTS] = {false};
	int r = xdp_refresh(x);

	for (size_t i = 0; i < x->list.n_rules && !r; i++) {
		const struct ax_action *act = x->list.rules[i].slot ? xdp_action(&x->g, i) : NULL;
		struct ax_slot slot;
		uint32_t key;

		if (!act || act->slot >= AX_SLOTS || seen[act->slot])
			continue;
		seen[act->slot] = true;
		key = act->slot;
		if (bpf_map_lookup_elem_flags(x->d.map[XDP_MAP_SLOTS], &key, &slot, BPF_F_LOCK) < 0)
			r = -errno;
		else
			r = f(arg, x->list.rules[i].slot, &slot);
	}
	return r < 0 ? error_set(e, r, "cannot read the slots of %s: %s", x->ifname, strerror(-r))
		     : r;
}

/* --- triggers --- */

static int on_trigger(void *arg, void *data, size_t size)
{
	const struct ax_capture *c = record(data, size);
	struct xdp *x = arg;

	if (!c || x->reader.result)
		return 0;
	x->reader.result = x->reader.trigger(x->reader.arg, c, (const uint8_t *)(c + 1));
	return x->reader.result ? -1 : 0;
}

int xdp_triggers_fd(struct xdp *x)
{
	if (!x->triggers)
		x->triggers = ring_buffer__new(x->d.map[XDP_MAP_TRIGGERS], on_trigger, x, NULL);
	return x->triggers ? ring_buffer__epoll_fd(x->triggers) : -errno;
}

int xdp_triggers_read(struct xdp *x,
		      int (*f)(void *arg, const struct ax_capture *c, const uint8_t *data),
		      void *arg)
{
	int r;

	x->reader = (struct xdp_reader){.trigger = f, .arg = arg};
	r = ring_buffer__consume(x->triggers);
	return x->reader.result ? x->reader.result : r < 0 ? r : 0;
}
