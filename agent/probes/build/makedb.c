// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/build/makedb.h"
#include "probes/build/path.h"
#include "probes/build/priv.h"

struct edge {
	uint32_t to, next; /* of the same target; BUILD_NONE: no more */
};
struct name {
	uint32_t edges;
	bool needed; /* by the target in question */
	bool is_target;
};
struct makedb {
	struct build_store *store;
	struct build_map by_path;
	struct name *names;
	size_t n, size;
	struct edge *edges;
	size_t n_edges, edges_size;
	uint32_t *queue; /* of makedb_target() */
	size_t queue_size;
};
struct reader {
	struct makedb *db;
	char *curdir;
	bool inside, in_define, any;
};

static int name_of(struct makedb *db, const char *dir, const char *word, size_t len, uint32_t *ret)
{
	autofree char *path = path_join(dir, word, len);
	char *kept;

	if (!path)
		return -ENOMEM;
	*ret = build_map_get(&db->by_path, path, 0);
	if (*ret != BUILD_NONE)
		return 0;
	kept = build_store_text(&db->store, path, strlen(path));
	if (!kept || build_grow(&db->names, db->n, &db->size, sizeof(*db->names)) < 0)
		return -ENOMEM;
	*ret = (uint32_t)db->n;
	db->names[db->n++] = (struct name){.edges = BUILD_NONE};
	return build_map_set(&db->by_path, kept, 0, *ret);
}

static int add_edge(struct makedb *db, uint32_t from, uint32_t to)
{
	if (build_grow(&db->edges, db->n_edges, &db->edges_size, sizeof(*db->edges)) < 0)
		return -ENOMEM;
	db->edges[db->n_edges] = (struct edge){.to = to, .next = db->names[from].edges};
	db->names[from].edges = (uint32_t)db->n_edges++;
	return 0;
}

/* The next word of a line, its length 0: there is none. */
static const char *next_word(const char **at, const char *end, size_t *len)
{
	const char *word;

	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
	word = *at;
	while (*at < end && **at != ' ' && **at != '\t')
		++*at;
	*len = (size_t)(*at - word);
	return word;
}

static int add_needs(struct reader *rd, uint32_t target, const char *at, const char *end)
{
	for (;;) {
		size_t len;
		const char *word = next_word(&at, end, &len);
		uint32_t to;

		if (!len || (len == 1 && *word == '|'))
			return 0;
		if (name_of(rd->db, rd->curdir, word, len, &to) < 0 ||
		    add_edge(rd->db, target, to) < 0)
			return -ENOMEM;
	}
}

/* "targets: needs": the colon is no part of an assignment, and there is none behind it. */
static const char *rule_colon(const char *line, const char *end)
{
	const char *colon = memchr(line, ':', (size_t)(end - line)), *at;

	if (!colon || memchr(line, '=', (size_t)(colon - line)) ||
	    memchr(line, '%', (size_t)(end - line)))
		return NULL;
	for (at = colon + 1; at < end && *at == ':'; at++)
		;
	return at < end && memchr(at, '=', (size_t)(end - at)) ? NULL : colon;
}

static int take_rule(struct reader *rd, const char *line, const char *end)
{
	const char *colon = rule_colon(line, end), *at = line, *needs;

	if (!colon || colon == line || *line == '.')
		return 0;
	needs = colon + 1 + (colon + 1 < end && colon[1] == ':');
	for (;;) {
		size_t len;
		const char *word = next_word(&at, colon, &len);
		uint32_t target;

		if (!len)
			return 0;
		if (name_of(rd->db, rd->curdir, word, len, &target) < 0)
			return -ENOMEM;
		rd->db->names[target].is_target = true;
		if (add_needs(rd, target, needs, end) < 0)
			return -ENOMEM;
	}
}

static bool begins(const char *line, const char *end, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(end - line) >= n && !memcmp(line, with, n);
}

static int take_line(struct reader *rd, const char *line, const char *end)
{
	static const char curdir[] = "CURDIR := ";

	if (begins(line, end, "# Make data base")) {
		rd->inside = rd->any = true;
		rd->in_define = false;
	} else if (begins(line, end, "# Finished Make data base")) {
		rd->inside = false;
	} else if (begins(line, end, "define ")) {
		rd->in_define = true;
	} else if (begins(line, end, "endef")) {
		rd->in_define = false;
	} else if (rd->inside && begins(line, end, curdir)) {
		free(rd->curdir);
		line += sizeof(curdir) - 1;
		rd->curdir = strndup(line, (size_t)(end - line));
		return rd->curdir ? 0 : -ENOMEM;
	} else if (rd->inside && !rd->in_define && line < end && !strchr("#\t ", *line)) {
		return take_rule(rd, line, end);
	}
	return 0;
}

int makedb_read(const char *text, size_t len, struct makedb **ret, struct error *e)
{
	struct reader rd = {.db = calloc(1, sizeof(*rd.db))};
	const char *end = text + len, *line_end;
	int err = rd.db ? 0 : -ENOMEM;

	for (const char *line = text; err == 0 && line < end; line = line_end + 1) {
		line_end = memchr(line, '\n', (size_t)(end - line));
		if (!line_end)
			line_end = end;
		if (memchr(line, '\0', (size_t)(line_end - line)))
			continue;
		err = take_line(&rd, line, line_end);
	}
	free(rd.curdir);
	if (err == 0 && rd.any) {
		*ret = rd.db;
		return 0;
	}
	makedb_free(rd.db);
	if (err < 0)
		return error_set(e, err, "out of memory");
	return error_set(e, -EINVAL,
			 "there is no database of make in it: 'make -pq >FILE' in the directory of "
			 "the build writes one (with LC_ALL=C)");
}

void makedb_free(struct makedb *db)
{
	if (!db)
		return;
	build_store_free(db->store);
	free(db->by_path.v);
	free(db->names);
	free(db->edges);
	free(db->queue);
	free(db);
}

static bool push(struct makedb *db, size_t *n, uint32_t name)
{
	if (db->names[name].needed)
		return true;
	if (build_grow(&db->queue, *n, &db->queue_size, sizeof(*db->queue)) < 0)
		return false;
	db->names[name].needed = true;
	db->queue[(*n)++] = name;
	return true;
}

bool makedb_target(struct makedb *db, const char *path)
{
	uint32_t target = build_map_get(&db->by_path, path, 0);
	size_t n = 0;

	for (size_t i = 0; i < db->n; i++)
		db->names[i].needed = false;
	if (target == BUILD_NONE || !db->names[target].is_target || !push(db, &n, target))
		return false;
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = db->names[db->queue[i]].edges; k != BUILD_NONE;
		     k = db->edges[k].next)
			if (!push(db, &n, db->edges[k].to))
				return false;
	return true;
}

bool makedb_needs(const struct makedb *db, const char *path)
{
	uint32_t name = build_map_get(&db->by_path, path, 0);

	return name != BUILD_NONE && db->names[name].needed;
}
