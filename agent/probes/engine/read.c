// SPDX-License-Identifier: GPL-2.0-or-later
/* What comes out of probes, but for records that are sent. */
#include "probes/engine/priv.h"

static void add_cell(struct ax_probe_cell *to, const struct ax_probe_cell *from)
{
	to->count += from->count;
	to->sum += from->sum;
	if (from->most > to->most)
		to->most = from->most;
	if (from->least > to->least)
		to->least = from->least;
}

int engine_table(struct engine *g,
		 int (*f)(void *arg, const uint64_t *key, const struct ax_probe_cell *c), void *arg)
{
	autofree struct ax_probe_cell *cells = calloc((size_t)g->n_cpus, sizeof(*cells));
	uint64_t key[AX_PROBE_KEY], *previous = NULL;
	int fd = g->maps[MAP_TABLE], r = 0;

	if (!cells)
		return -ENOMEM;
	if (!g->key_words)
		return 0;
	while (r == 0 && !bpf_map_get_next_key(fd, previous, key)) {
		struct ax_probe_cell sum = {0};

		previous = key;
		if (bpf_map_lookup_elem(fd, key, cells))
			continue;
		for (int i = 0; i < g->n_cpus; i++)
			add_cell(&sum, &cells[i]);
		r = f(arg, key, &sum);
	}
	return r;
}

size_t engine_n_probes(const struct engine *g)
{
	return g->n_probes;
}

uint32_t engine_key_words(const struct engine *g)
{
	return g->key_words;
}

static uint64_t percpu_sum(struct engine *g, enum engine_map which, uint32_t index)
{
	autofree uint64_t *v = calloc((size_t)g->n_cpus, sizeof(*v));
	uint64_t sum = 0;

	if (!v || bpf_map_lookup_elem(g->maps[which], &index, v))
		return 0;
	for (int i = 0; i < g->n_cpus; i++)
		sum += v[i];
	return sum;
}

int engine_hits(struct engine *g, uint64_t *hits, size_t n)
{
	for (uint32_t i = 0; i < n && i < g->n_probes; i++)
		hits[i] = percpu_sum(g, MAP_HITS, i);
	return 0;
}

uint64_t engine_counter(struct engine *g, enum ax_probe_counter which)
{
	return percpu_sum(g, MAP_COUNTERS, which);
}

uint64_t engine_no_variable(struct engine *g)
{
	uint64_t n = 0;
	uint32_t zero = 0;

	return bpf_map_lookup_elem(g->maps[MAP_GLOBALS], &zero, &n) ? 0 : n;
}

uint64_t engine_missed(const struct engine *g)
{
	uint64_t sum = 0;

	for (unsigned i = 0; g->skel && i < PROGRAMS; i++) {
		struct bpf_prog_info info = {0};
		uint32_t len = sizeof(info);

		if (g->uses[i] &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(g->programs[i]), &info, &len))
			sum += info.recursion_misses;
	}
	return sum;
}

int engine_stack(struct engine *g, uint64_t id, uint64_t *addresses, size_t max)
{
	uint64_t frames[AX_PROBE_FRAMES];
	uint32_t key = (uint32_t)id;
	size_t n = 0;

	if (id > UINT32_MAX || bpf_map_lookup_elem(g->maps[MAP_STACKS], &key, frames))
		return -ENOENT;
	for (; n < max && n < AX_PROBE_FRAMES && frames[n]; n++)
		addresses[n] = frames[n];
	return (int)n;
}

static int on_stack_copy(void *arg, void *data, size_t len)
{
	const struct ax_stack_copy *c = data;
	struct engine *g = arg;

	if (len < sizeof(*c) || c->stack.len > len - sizeof(*c))
		return 0;
	return g->on_copy(g->copies_arg, c);
}

int engine_copies_open(struct engine *g)
{
	g->copies = ring_buffer__new(g->maps[MAP_STACK_COPIES], on_stack_copy, g, NULL);
	return g->copies ? 0 : -errno;
}

int engine_stack_copies(struct engine *g, int (*f)(void *arg, const struct ax_stack_copy *c),
			void *arg)
{
	if (!g->copies)
		return 0;
	g->on_copy = f;
	g->copies_arg = arg;
	return ring_buffer__consume(g->copies);
}

/* --- the flight recorder --- */

struct slots {
	uint32_t n, size;
};

static int flight_size(struct engine *g, struct slots *ret)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(g->maps[MAP_FLIGHT], &info, &len))
		return -errno;
	*ret = (struct slots){.n = info.max_entries, .size = info.value_size};
	return info.value_size > sizeof(struct ax_probe_flight) ? 0 : -ENOENT;
}

/* A slot may be written while it is read: it is right when it says the same number twice. */
static bool read_slot(const struct engine *g, uint32_t index, struct ax_probe_flight *to,
		      struct ax_probe_flight *again)
{
	for (int tries = 0; tries < 3; tries++) {
		if (bpf_map_lookup_elem(g->maps[MAP_FLIGHT], &index, to) ||
		    bpf_map_lookup_elem(g->maps[MAP_FLIGHT], &index, again))
			return false;
		if (to->number && to->number == again->number)
			return true;
	}
	return false;
}

/* The record `number` of all; 1: it is there, 0: it has been written over, -EAGAIN: not yet. */
static int read_record(const struct engine *g, const struct slots *slots, uint64_t number,
		       struct ax_probe_flight *slot)
{
	struct ax_probe_flight *again = (void *)((char *)slot + slots->size);
	const struct ax_probe_record *rec = (const void *)slot->record;
	size_t room = slots->size - sizeof(*slot);

	if (!read_slot(g, (uint32_t)((number - 1) % slots->n), slot, again) ||
	    slot->number < number)
		return -EAGAIN;
	return slot->number == number && slot->len <= room && slot->len >= sizeof(*rec) &&
	       slot->len >= sizeof(*rec) + rec->n_values * sizeof(rec->values[0]);
}

/* Whether a record that could not be read is being written over, not being written. */
static bool is_lost(const struct engine *g, const struct slots *slots, uint64_t seen)
{
	uint32_t zero = 0;
	uint64_t total = 0;

	return !bpf_map_lookup_elem(g->maps[MAP_FLIGHT_NUMBER], &zero, &total) &&
	       total > slots->n && seen < total - slots->n;
}

int engine_flight(struct engine *g,
		  int (*f)(void *arg, const struct ax_probe_record *r, size_t len, size_t full_len),
		  void *arg, uint64_t *seen)
{
	autofree struct ax_probe_flight *slot = NULL;
	struct slots slots = {0};
	uint64_t total = 0;
	uint32_t zero = 0;
	int r = flight_size(g, &slots);

	if (r < 0)
		return r;
	slot = malloc(2 * (size_t)slots.size);
	if (!slot)
		return -ENOMEM;
	if (bpf_map_lookup_elem(g->maps[MAP_FLIGHT_NUMBER], &zero, &total))
		return -errno;
	if (total > slots.n && *seen < total - slots.n)
		*seen = total - slots.n;
	for (; r >= 0 && *seen < total; ++*seen) {
		r = read_record(g, &slots, *seen + 1, slot);
		if (r == -EAGAIN && !is_lost(g, &slots, *seen))
			return 0;
		if (r == -EAGAIN)
			r = 0;
		if (r > 0)
			r = f(arg, (const void *)slot->record, slot->len, slot->full_len);
	}
	return r < 0 ? r : 0;
}
