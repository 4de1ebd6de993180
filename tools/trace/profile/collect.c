// SPDX-License-Identifier: GPL-2.0-or-later
/* Call stacks, each once. */
#include "tools/trace/profile/profile.h"

#define STACKS_MAX    (1u << 18)
#define ADDRESSES_MAX (1u << 22)
#define APPS_MAX      8192

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t hash_of(const struct stack *s, const uint64_t *kernel, const uint64_t *user)
{
	uint64_t comm[2], h = mix(s->pid, s->n_kernel << 8 | s->n_user);

	memcpy(comm, s->comm, sizeof(comm));
	h = mix(mix(h, comm[0]), comm[1]);
	for (size_t i = 0; i < s->n_kernel; i++)
		h = mix(h, kernel[i]);
	for (size_t i = 0; i < s->n_user; i++)
		h = mix(h, user[i]);
	return h ^ h >> 32;
}

static bool same_addresses(const uint64_t *a, const uint64_t *b, size_t n)
{
	return !n || !memcmp(a, b, n * sizeof(*a));
}

static bool alike(const struct collection *c, const struct stack *a, const struct stack *b,
		  const uint64_t *kernel, const uint64_t *user)
{
	const uint64_t *at = c->addresses + a->from;

	return a->pid == b->pid && a->n_kernel == b->n_kernel && a->n_user == b->n_user &&
	       a->cut == b->cut && !memcmp(a->comm, b->comm, sizeof(a->comm)) &&
	       same_addresses(at, kernel, a->n_kernel) &&
	       same_addresses(at + a->n_kernel, user, a->n_user);
}

static int grow(void *array, size_t *max, size_t want, size_t size)
{
	void **a = array;
	size_t more = *max ? *max : 64;
	void *bigger;

	if (want <= *max)
		return 0;
	while (more < want)
		more *= 2;
	bigger = reallocarray(*a, more, size);
	if (!bigger)
		return -ENOMEM;
	*a = bigger;
	*max = more;
	return 0;
}

static uint64_t hash_again(const struct collection *c, const struct stack *s)
{
	const uint64_t *at = c->addresses + s->from;

	return hash_of(s, at, at + s->n_kernel);
}

static int grow_index(struct collection *c)
{
	size_t size = c->index_size ? c->index_size * 2 : 256;
	uint32_t *index = calloc(size, sizeof(*index));

	if (!index)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		size_t at = hash_again(c, &c->v[i]) & (size - 1);

		while (index[at])
			at = (at + 1) & (size - 1);
		index[at] = i + 1;
	}
	free(c->index);
	c->index = index;
	c->index_size = size;
	return 0;
}

static int append(struct collection *c, const struct stack *s, const uint64_t *kernel,
		  const uint64_t *user, size_t at)
{
	struct stack *added;

	if (grow(&c->v, &c->size, c->n + 1, sizeof(*c->v)) < 0 ||
	    grow(&c->addresses, &c->addresses_size, c->n_addresses + s->n_kernel + s->n_user + 1,
		 sizeof(*c->addresses)) < 0)
		return -ENOMEM;
	added = &c->v[c->n];
	*added = *s;
	added->from = c->n_addresses;
	for (size_t i = 0; i < s->n_kernel; i++)
		c->addresses[c->n_addresses++] = kernel[i];
	for (size_t i = 0; i < s->n_user; i++)
		c->addresses[c->n_addresses++] = user[i];
	c->index[at] = (uint32_t)++c->n;
	return 0;
}

int collection_add(struct collection *c, const struct stack *s, const uint64_t *kernel,
		   const uint64_t *user)
{
	struct stack without = *s;
	size_t at;

	if (c->n >= STACKS_MAX || c->n_addresses >= ADDRESSES_MAX) {
		without.n_kernel = without.n_user = 0; /* that they were there is counted */
		without.cut = true;
	}
	if (2 * (c->n + 1) > c->index_size && grow_index(c) < 0)
		return -ENOMEM;
	at = hash_of(&without, kernel, user) & (c->index_size - 1);
	while (c->index[at]) {
		struct stack *known = &c->v[c->index[at] - 1];

		if (alike(c, known, &without, kernel, user)) {
			known->times += s->times;
			known->ns += s->ns;
			return 0;
		}
		at = (at + 1) & (c->index_size - 1);
	}
	return append(c, &without, kernel, user, at);
}

const char *collection_app(const struct collection *c, uint32_t pid)
{
	for (size_t i = c->n_apps; i > 0; i--)
		if (c->apps[i - 1].pid == pid)
			return c->apps[i - 1].app;
	return NULL;
}

int collection_note_app(struct collection *c, const struct ax_watch_head *h)
{
	char buf[AX_EVENT_APP];
	const char *app = ready_app_name(h, buf), *known = collection_app(c, h->pid);
	struct process_app *v;
	char *copy;

	if (!app || (known && streq(known, app)) || c->n_apps == APPS_MAX)
		return 0;
	v = reallocarray(c->apps, c->n_apps + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	c->apps = v;
	copy = strdup(app);
	if (!copy)
		return -ENOMEM;
	v[c->n_apps++] = (struct process_app){.pid = h->pid, .app = copy};
	return 0;
}

void collection_free(struct collection *c)
{
	for (size_t i = 0; i < c->n_apps; i++)
		free(c->apps[i].app);
	free(c->apps);
	free(c->v);
	free(c->addresses);
	free(c->index);
}
