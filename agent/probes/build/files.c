// SPDX-License-Identifier: GPL-2.0-or-later
/* Files, whatever they are called at the time. */
#include "probes/build/path.h"
#include "probes/build/priv.h"

int build_file_get(struct build_files *f, const char *path, uint32_t *ret)
{
	struct build *b = f->b;

	*ret = build_map_get(&f->by_path, path, 0);
	if (*ret != BUILD_NONE)
		return 0;
	if (build_grow(&b->nodes, b->n_nodes, &f->size, sizeof(*b->nodes)) < 0)
		return -ENOMEM;
	*ret = (uint32_t)b->n_nodes;
	b->nodes[b->n_nodes++] = (struct build_node){.path = path, .same = BUILD_NONE};
	return build_map_set(&f->by_path, path, 0, *ret);
}

int build_file_remove(struct build_files *f, uint32_t file)
{
	struct build_node *n = &f->b->nodes[file];

	n->gone = true;
	return build_map_set(&f->by_path, n->path, 0, BUILD_NONE);
}

static int set_path(struct build_files *f, uint32_t file, const char *path)
{
	struct build_node *n = &f->b->nodes[file];

	if (!n->born)
		n->born = n->path;
	n->path = path;
	return build_map_set(&f->by_path, path, 0, file);
}

/* What is below a directory that has another name now. */
static int move_below(struct build_files *f, const char *from, const char *to)
{
	size_t n = strlen(from);

	for (uint32_t i = 0; i < f->b->n_nodes; i++) {
		struct build_node *node = &f->b->nodes[i];
		autofree char *path = NULL;
		const char *kept;

		if (node->gone || !path_below(node->path, from) || !node->path[n])
			continue;
		if (asprintf(&path, "%s%s", to, node->path + n) < 0)
			return -ENOMEM;
		kept = build_store_text(&f->b->store, path, strlen(path));
		if (!kept || build_map_set(&f->by_path, node->path, 0, BUILD_NONE) < 0 ||
		    set_path(f, i, kept) < 0)
			return -ENOMEM;
	}
	return 0;
}

int build_file_rename(struct build_files *f, uint32_t file, const char *path, uint32_t *replaced)
{
	struct build_node *n = &f->b->nodes[file];
	const char *from = n->path;
	int err;

	*replaced = BUILD_NONE;
	if (streq(from, path))
		return 0;
	*replaced = build_map_get(&f->by_path, path, 0);
	if (*replaced != BUILD_NONE)
		f->b->nodes[*replaced].gone = true;
	err = build_map_set(&f->by_path, from, 0, BUILD_NONE);
	if (err == 0)
		err = set_path(f, file, path);
	if (err == 0 && f->b->nodes[file].directory)
		err = move_below(f, from, path);
	return err;
}

int build_file_exchange(struct build_files *f, uint32_t a, uint32_t b)
{
	const char *path = f->b->nodes[a].path;
	int err = set_path(f, a, f->b->nodes[b].path);

	return err < 0 ? err : set_path(f, b, path);
}
