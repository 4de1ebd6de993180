// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/build/priv.h"

#define CHUNK (256u << 10)

struct build_store {
	struct build_store *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

void *build_store_room(struct build_store **s, size_t size)
{
	size_t room = (size + 7) & ~(size_t)7;
	struct build_store *c = *s;
	void *at;

	if (!c || room > c->size - c->used) {
		size_t bytes = room > CHUNK ? room : CHUNK;

		c = malloc(sizeof(*c) + bytes);
		if (!c)
			return NULL;
		c->next = *s;
		c->used = 0;
		c->size = bytes;
		*s = c;
	}
	at = c->bytes + c->used;
	c->used += room;
	return at;
}

char *build_store_text(struct build_store **s, const char *text, size_t len)
{
	char *copy = build_store_room(s, len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

void build_store_free(struct build_store *s)
{
	while (s) {
		struct build_store *next = s->next;

		free(s);
		s = next;
	}
}

int build_grow(void *array, size_t n, size_t *size, size_t item)
{
	void **v = array, *more;
	size_t want = *size ? 2 * *size : 64;

	if (n < *size)
		return 0;
	more = reallocarray(*v, want, item);
	if (!more)
		return -ENOMEM;
	*v = more;
	*size = want;
	return 0;
}

/* --- maps --- */

static uint64_t hash_of(const char *name, uint64_t number)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ number;

	for (; name && *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	h ^= h >> 32;
	return h * UINT64_C(0x9e3779b97f4a7c15);
}

static struct build_slot *find_slot(const struct build_map *m, const char *name, uint64_t hash)
{
	for (size_t i = (hash >> 20) & (m->size - 1);; i = (i + 1) & (m->size - 1)) {
		struct build_slot *s = &m->v[i];

		if (!s->used)
			return s;
		if (s->hash == hash && !s->name == !name && (!name || streq(s->name, name)))
			return s;
	}
}

uint32_t build_map_get(const struct build_map *m, const char *name, uint64_t number)
{
	const struct build_slot *s;

	if (!m->size)
		return BUILD_NONE;
	s = find_slot(m, name, hash_of(name, number));
	return s->used ? s->value : BUILD_NONE;
}

static int map_grow(struct build_map *m)
{
	struct build_map more = {.size = m->size ? 2 * m->size : 64};

	more.v = calloc(more.size, sizeof(*more.v));
	if (!more.v)
		return -ENOMEM;
	for (size_t i = 0; i < m->size; i++)
		if (m->v[i].used && m->v[i].value != BUILD_NONE) {
			*find_slot(&more, m->v[i].name, m->v[i].hash) = m->v[i];
			more.n++;
		}
	free(m->v);
	*m = more;
	return 0;
}

int build_map_set(struct build_map *m, const char *name, uint64_t number, uint32_t value)
{
	uint64_t hash = hash_of(name, number);
	struct build_slot *s;

	if (2 * (m->n + 1) > m->size && map_grow(m) < 0)
		return -ENOMEM;
	s = find_slot(m, name, hash);
	if (!s->used)
		m->n++;
	*s = (struct build_slot){.hash = hash, .name = name, .value = value, .used = true};
	return 0;
}
