// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions at addresses. They are named when they are seen, since a process may execute another
 * program later, or end. */
#include "probes/process/process.h"
#include "tools/trace/profile/profile.h"

#define KNOWN_MAX (1u << 20)
#define KERNEL	  UINT64_MAX

static uint64_t hash_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3ull; /* FNV-1a */
	return (h ^ 0xff) * 0x100000001b3ull;
}

static uint64_t hash_name(const char *text, const char *file)
{
	uint64_t h = hash_text(hash_text(0xcbf29ce484222325ull, text), file);

	return h ^ h >> 32;
}

static size_t place_of(const struct profile_names *n, const char *text, const char *file)
{
	size_t at = hash_name(text, file) & (n->index_size - 1);

	while (n->index[at] && !(streq(n->v[n->index[at] - 1].text, text) &&
				 streq(n->v[n->index[at] - 1].file, file)))
		at = (at + 1) & (n->index_size - 1);
	return at;
}

static bool grow_names(struct profile_names *n)
{
	size_t size = n->size ? n->size * 2 : 128;
	struct function_name *v;
	uint32_t *index;

	if (n->n < n->size)
		return true;
	v = reallocarray(n->v, size, sizeof(*v));
	if (!v)
		return false;
	n->v = v;
	index = calloc(4 * size, sizeof(*index));
	if (!index)
		return false;
	free(n->index);
	n->index = index;
	n->index_size = 4 * size;
	n->size = size;
	for (uint32_t i = 0; i < n->n; i++)
		index[place_of(n, v[i].text, v[i].file)] = i + 1;
	return true;
}

uint32_t names_number(struct profile_names *n, const char *text, const char *file)
{
	struct function_name *added;
	size_t at;

	if (!grow_names(n))
		return UINT32_MAX;
	at = place_of(n, text, file);
	if (n->index[at])
		return n->index[at] - 1;
	added = &n->v[n->n];
	added->text = strdup(text);
	added->file = strdup(file);
	if (!added->text || !added->file) {
		free(added->text);
		free(added->file);
		return UINT32_MAX;
	}
	n->index[at] = (uint32_t)++n->n;
	return (uint32_t)n->n - 1;
}

/* --- addresses that were asked for before --- */

static struct known_address *slot(const struct profile_names *n, uint64_t owner, uint64_t address)
{
	uint64_t h = (address ^ owner * 0x2545f4914f6cdd1dull) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (h >> 32) & (n->known_size - 1);

	while (n->known[at].owner &&
	       (n->known[at].owner != owner || n->known[at].address != address))
		at = (at + 1) & (n->known_size - 1);
	return &n->known[at];
}

static bool grow_known(struct profile_names *n)
{
	struct profile_names more = {.known_size = n->known_size ? n->known_size * 2 : 1024};

	if (2 * (n->n_known + 1) <= n->known_size)
		return true;
	if (more.known_size > KNOWN_MAX)
		return false;
	more.known = calloc(more.known_size, sizeof(*more.known));
	if (!more.known)
		return false;
	for (size_t i = 0; i < n->known_size; i++)
		if (n->known[i].owner)
			*slot(&more, n->known[i].owner, n->known[i].address) = n->known[i];
	free(n->known);
	n->known = more.known;
	n->known_size = more.known_size;
	return true;
}

static void remember(struct profile_names *n, uint64_t owner, uint64_t address, uint32_t function)
{
	struct known_address *k;

	if (function == UINT32_MAX || !grow_known(n))
		return;
	k = slot(n, owner, address);
	n->n_known += !k->owner;
	*k = (struct known_address){.owner = owner, .address = address, .function = function + 1};
}

static uint32_t recall(const struct profile_names *n, uint64_t owner, uint64_t address)
{
	return n->known_size ? slot(n, owner, address)->function : 0;
}

static const char *last_part(const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	return !file ? "" : slash && slash[1] ? slash + 1 : file;
}

uint32_t names_of_kernel(struct profile_names *n, uint64_t address)
{
	uint32_t known = recall(n, KERNEL, address), function;
	char name[WATCH_NAME_MAX], text[WATCH_NAME_MAX + 8] = "[kernel]";
	const char *module = "kernel";

	if (known)
		return known - 1;
	if (watch_kernel_name(n->watch, address, name, &module) == 0)
		snprintf(text, sizeof(text), "%s_[k]", name);
	function = names_number(n, text, module);
	remember(n, KERNEL, address, function);
	return function;
}

uint32_t names_of_process(struct profile_names *n, uint32_t pid, const char *comm, uint64_t address)
{
	uint64_t owner = ((uint64_t)pid << 32 | (uint32_t)hash_text(0, comm)) >> 1 | 1;
	uint32_t known = recall(n, owner, address), function;
	struct place_name place = {0};
	char unknown[512] = "[unknown]";
	const char *file;
	int r;

	if (known)
		return known - 1;
	r = processes_symbolise(n->processes, (int)pid, address, &place);
	file = r == 0 ? last_part(place.file) : "";
	if (r == 0 && place.function) {
		function = names_number(n, place.function, file);
		remember(n, owner, address, function);
		return function;
	}
	/* later there may be a name: compilers at run time write theirs when they have time */
	if (*file)
		snprintf(unknown, sizeof(unknown), "%s%s%s", *file == '[' ? "" : "[", file,
			 *file == '[' ? "" : "]");
	return names_number(n, unknown, "");
}

void profile_names_free(struct profile_names *n)
{
	for (size_t i = 0; i < n->n; i++) {
		free(n->v[i].text);
		free(n->v[i].file);
	}
	free(n->v);
	free(n->index);
	free(n->known);
	processes_freep(&n->processes);
}
