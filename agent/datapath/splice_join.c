/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets of connections: described, and made members. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/splice_priv.h"
#include "splicing.skel.h"

struct each {
	int (*f)(void *arg, const struct ax_splice_conn *c);
	void *arg;
};

static int each_conn(void *arg, const void *record)
{
	struct each *c = arg;

	return c->f(c->arg, record);
}

int datapath_splice_conns_each(struct splice *s, int netns_fd,
			       int (*f)(void *arg, const struct ax_splice_conn *c), void *arg)
{
	struct each c = {.f = f, .arg = arg};

	return datapath_iter_each(s->conns, netns_fd, sizeof(struct ax_splice_conn), each_conn, &c);
}

/* --- joining --- */

/* The ends of some pairs, by cookie. */
struct ends {
	struct splice_end_ref **by_cookie;
	size_t n;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = (*(struct splice_end_ref *const *)a)->cookie;
	uint64_t y = (*(struct splice_end_ref *const *)b)->cookie;

	return x < y ? -1 : x > y;
}

static int on_joined(void *arg, const void *record)
{
	const struct ax_splice_joined *j = record;
	struct splice_end_ref key = {.cookie = j->cookie}, *at = &key, **end;
	struct ends *ends = arg;

	end = bsearch(&at, ends->by_cookie, ends->n, sizeof(*end), compare);
	if (end)
		(*end)->result = j->result;
	return 0;
}

/* peer: NULL: none. */
static int want(struct splice *s, struct splice_end_ref *end, const struct splice_end_ref *peer)
{
	struct ax_splice_wanted w = {0};

	if (peer)
		w = (struct ax_splice_wanted){.peer = peer->cookie, .peer_sk = peer->sk};

	end->result = -ENOENT;
	return bpf_map_update_elem(bpf_map__fd(s->skel->maps.splice_wanted), &end->cookie, &w,
				   BPF_ANY)
		       ? -errno
		       : 0;
}

static void want_no_more(struct splice *s, const struct ends *ends)
{
	int fd = bpf_map__fd(s->skel->maps.splice_wanted);

	for (size_t i = 0; i < ends->n; i++)
		bpf_map_delete_elem(fd, &ends->by_cookie[i]->cookie);
}

/* Each namespace that they name once. */
static int walk(struct splice *s, struct ends *ends)
{
	autofree int *done = calloc(ends->n, sizeof(*done));
	size_t n = 0;

	if (!done)
		return -ENOMEM;
	for (size_t i = 0; i < ends->n; i++) {
		int netns_fd = ends->by_cookie[i]->netns_fd, r;
		size_t k = 0;

		while (k < n && done[k] != netns_fd)
			k++;
		if (k < n)
			continue;
		done[n++] = netns_fd;
		r = datapath_iter_each(s->join, netns_fd, sizeof(struct ax_splice_joined),
				       on_joined, ends);
		if (r)
			return r;
	}
	return 0;
}

static int tie_some(struct splice *s, struct splice_pair *pairs, size_t n, bool join)
{
	autofree struct splice_end_ref **by_cookie = calloc(2 * n, sizeof(struct splice_end_ref *));
	struct ends ends = {.by_cookie = by_cookie};
	int r = by_cookie ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !r; i++) {
		by_cookie[ends.n++] = &pairs[i].a;
		by_cookie[ends.n++] = &pairs[i].b;
		r = want(s, &pairs[i].a, join ? &pairs[i].b : NULL);
		r = r ? r : want(s, &pairs[i].b, join ? &pairs[i].a : NULL);
	}
	if (!r) {
		qsort(by_cookie, ends.n, sizeof(struct splice_end_ref *), compare);
		r = walk(s, &ends);
	}
	want_no_more(s, &ends);
	return r;
}

static int tie(struct splice *s, struct splice_pair *pairs, size_t n, bool join)
{
	const size_t most = AX_SPLICE_WANTED_MAX / 2;
	int r = 0;

	for (size_t i = 0; i < n && !r; i += most)
		r = tie_some(s, pairs + i, n - i < most ? n - i : most, join);
	return r;
}

int datapath_splice_join(struct splice *s, struct splice_pair *pairs, size_t n)
{
	return tie(s, pairs, n, true);
}

int datapath_splice_part(struct splice *s, struct splice_pair *pairs, size_t n)
{
	return tie(s, pairs, n, false);
}

/* --- counters --- */

int datapath_splice_counters(struct splice *s, struct ax_splice_counted ret[AX_SPLICE_COUNTS])
{
	int cpus = libbpf_num_possible_cpus(), fd = bpf_map__fd(s->skel->maps.splice_count);
	autofree struct ax_splice_counted *values = NULL;

	if (cpus < 0)
		return cpus;
	values = calloc((size_t)cpus, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < AX_SPLICE_COUNTS; i++) {
		ret[i] = (struct ax_splice_counted){0};
		if (bpf_map_lookup_elem(fd, &i, values)) {
			if (errno == ENOENT) /* younger than the map */
				continue;
			return -errno;
		}
		for (int c = 0; c < cpus; c++) {
			ret[i].messages += values[c].messages;
			ret[i].bytes += values[c].bytes;
		}
	}
	return 0;
}
