// SPDX-License-Identifier: GPL-2.0-or-later
/* Parties and rules in the dataplane's maps; see include/party.h. */
#include <arpa/inet.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "awaited.h"
#include "question.h"
#include "seen.h"
#include "datapath/policy.h"
#include "datapath/priv.h"

static int put(struct datapath *dp, enum datapath_map m, uint32_t key, const void *value)
{
	return bpf_map_update_elem(dp->map[m], &key, value, BPF_ANY) ? -errno : 0;
}

int datapath_party_set(struct datapath *dp, uint32_t party, const struct ax_party *p)
{
	return put(dp, MAP_PARTIES, party, p);
}

int datapath_party_get(struct datapath *dp, uint32_t party, struct ax_party *ret)
{
	return bpf_map_lookup_elem(dp->map[MAP_PARTIES], &party, ret) ? -errno : 0;
}

int datapath_party_rules_set(struct datapath *dp, unsigned set, uint32_t party,
			     const struct ax_party_rules *r)
{
	return put(dp, MAP_PARTY_RULES, set * AX_PARTIES_MAX + party, r);
}

/* --- the tables of a set --- */

static int put_ports(struct datapath *dp, unsigned set, const struct datapath_rules *r)
{
	int code = 0;

	for (unsigned i = 0; i < 2 * AX_PORT_BLOCKS && !code; i++) {
		struct ax_port_block b;

		memcpy(b.class_of, r->class_of + i * AX_PORT_BLOCK, sizeof(b.class_of));
		code = put(dp, MAP_RULE_PORTS, set * 2 * AX_PORT_BLOCKS + i, &b);
	}
	for (unsigned i = 0; i < r->n_classes && !code; i++)
		code = put(dp, MAP_PORT_RULES, set * AX_PORT_CLASSES + i, &r->classes[i]);
	return code;
}

/* What the set had before. (The next one is asked for first: behind an entry that was deleted the
 * walk would begin anew.) */
static int forget_outside(struct datapath *dp, unsigned set)
{
	int fd = dp->map[MAP_OUTSIDE_RULES];
	struct ax_outside_key key, next;
	bool more = bpf_map_get_next_key(fd, NULL, &key) == 0;

	while (more) {
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (!more && errno != ENOENT)
			return -errno;
		if (key.set == htonl(set) && bpf_map_delete_elem(fd, &key))
			return -errno;
		key = next;
	}
	return 0;
}

int datapath_outside_add(struct datapath *dp, unsigned set, const struct ax_addr *addr,
			 unsigned len, const struct ax_party_rules *r)
{
	struct ax_outside_key key = {.len = 32 + len, .set = htonl(set), .addr = *addr};

	return bpf_map_update_elem(dp->map[MAP_OUTSIDE_RULES], &key, r, BPF_ANY) ? -errno : 0;
}

int datapath_outside_del(struct datapath *dp, unsigned set, const struct ax_addr *addr,
			 unsigned len)
{
	struct ax_outside_key key = {.len = 32 + len, .set = htonl(set), .addr = *addr};

	return map_del(dp, MAP_OUTSIDE_RULES, &key);
}

static void learnt_key(const struct ax_addr *addr, const char *name, struct ax_learnt_key *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->addr = *addr;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
}

int datapath_learnt_set(struct datapath *dp, const struct ax_addr *addr, const char *name,
			uint64_t until_ns, uint32_t app)
{
	struct ax_learnt v = {.until_ns = until_ns, .app = app};
	struct ax_learnt_key key;

	learnt_key(addr, name, &key);
	return map_set(dp, MAP_LEARNT, &key, &v);
}

int datapath_learnt_del(struct datapath *dp, const struct ax_addr *addr, const char *name)
{
	struct ax_learnt_key key;

	learnt_key(addr, name, &key);
	return map_del(dp, MAP_LEARNT, &key);
}

struct learnt_walk {
	int (*f)(void *arg, const struct ax_addr *addr, const char *name, uint64_t until_ns,
		 uint32_t app);
	void *arg;
};

static int learnt_one(void *arg, const void *key, const void *value)
{
	const struct ax_learnt_key *k = key;
	const struct ax_learnt *v = value;
	struct learnt_walk *w = arg;
	char name[sizeof(k->name) + 1] = "";

	memcpy(name, k->name, sizeof(k->name));
	return w->f(w->arg, &k->addr, name, v->until_ns, v->app);
}

int datapath_learnt_each(struct datapath *dp,
			 int (*f)(void *arg, const struct ax_addr *addr, const char *name,
				  uint64_t until_ns, uint32_t app),
			 void *arg)
{
	struct learnt_walk w = {f, arg};

	return map_walk(dp, MAP_LEARNT, sizeof(struct ax_learnt_key), sizeof(struct ax_learnt),
			learnt_one, &w);
}

struct leavers_walk {
	int (*f)(void *arg, uint32_t app);
	void *arg;
};

static int leaver_one(void *arg, const void *key, const void *value)
{
	const struct ax_awaited_key *k = key;
	struct leavers_walk *w = arg;

	(void)value;
	return w->f(w->arg, k->app);
}

int datapath_leavers_each(struct datapath *dp, int (*f)(void *arg, uint32_t app), void *arg)
{
	struct leavers_walk w = {f, arg};

	return map_walk(dp, MAP_LEAVERS, sizeof(struct ax_awaited_key), sizeof(struct ax_awaited),
			leaver_one, &w);
}

int datapath_rules_set(struct datapath *dp, unsigned set, const struct datapath_rules *r)
{
	int code = forget_outside(dp, set);

	if (r->set->flags & AX_RULES_PORTS)
		code = code ? code : put_ports(dp, set, r);
	return code ? code : put(dp, MAP_RULE_SETS, set, r->set);
}

/* --- counts --- */

static uint32_t rule_index(unsigned set, unsigned rule)
{
	return set * AX_RULES_MAX + rule;
}

int datapath_rule_mark_get(struct datapath *dp, unsigned set, unsigned rule,
			   struct ax_rule_mark *ret)
{
	uint32_t i = rule_index(set, rule);

	return bpf_map_lookup_elem(dp->map[MAP_RULE_MARKS], &i, ret) ? -errno : 0;
}

int datapath_rule_mark_set(struct datapath *dp, unsigned set, unsigned rule,
			   const struct ax_rule_mark *m)
{
	return put(dp, MAP_RULE_MARKS, rule_index(set, rule), m);
}

static struct ax_rule_hits *per_cpu(int *n)
{
	*n = libbpf_num_possible_cpus();
	return *n > 0 ? calloc((size_t)*n, sizeof(struct ax_rule_hits)) : NULL;
}

int datapath_rule_hits(struct datapath *dp, unsigned set, unsigned rule, struct ax_rule_hits *ret)
{
	int n;
	autofree struct ax_rule_hits *v = per_cpu(&n);
	uint32_t i = rule_index(set, rule);

	*ret = (struct ax_rule_hits){0};
	if (!v)
		return -ENOMEM;
	if (bpf_map_lookup_elem(dp->map[MAP_RULE_HITS], &i, v))
		return -errno;
	for (int c = 0; c < n; c++) {
		ret->hits += v[c].hits;
		if (v[c].last_ns > ret->last_ns)
			ret->last_ns = v[c].last_ns;
	}
	return 0;
}

int datapath_rule_hits_zero(struct datapath *dp, unsigned set, unsigned n_rules)
{
	int n, r = 0;
	autofree struct ax_rule_hits *v = per_cpu(&n);

	if (!v)
		return -ENOMEM;
	for (unsigned i = 0; i < n_rules && !r; i++)
		r = put(dp, MAP_RULE_HITS, rule_index(set, i), v);
	return r;
}

/* --- questions --- */

int datapath_ask(struct datapath *dp, struct ax_question *x)
{
	struct ax_question answer = {0};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = x, .data_size_in = sizeof(*x),
		    .data_out = &answer, .data_size_out = sizeof(answer));
	int fd = datapath_program_fd(dp, "ax_explain");

	if (fd < 0)
		return -EOPNOTSUPP;
	if (bpf_prog_test_run_opts(fd, &o))
		return -errno;
	if (o.retval)
		return -EIO;
	*x = answer;
	return 0;
}

/* --- who was refused --- */

struct seen_each {
	int (*f)(void *arg, const struct ax_seen_key *key, const struct ax_seen *seen);
	void *arg;
};

static int each_seen(void *arg, const void *key, const void *value)
{
	const struct seen_each *e = arg;

	return e->f(e->arg, key, value);
}

int datapath_seen_each(struct datapath *dp,
		       int (*f)(void *arg, const struct ax_seen_key *key,
				const struct ax_seen *seen),
		       void *arg)
{
	struct seen_each e = {f, arg};

	return map_walk(dp, MAP_SEEN, sizeof(struct ax_seen_key), sizeof(struct ax_seen), each_seen,
			&e);
}

void datapath_seen_forget(struct datapath *dp, const struct ax_seen_key *key)
{
	map_del(dp, MAP_SEEN, key);
}

uint64_t datapath_seen_last(struct datapath *dp)
{
	return __atomic_load_n(dp->seen_last, __ATOMIC_SEQ_CST);
}

bool datapath_seen_many(struct datapath *dp, uint32_t n)
{
	if (__atomic_load_n(dp->seen_added, __ATOMIC_RELAXED) < n)
		return false;
	__atomic_store_n(dp->seen_added, 0, __ATOMIC_RELAXED);
	return true;
}
