// SPDX-License-Identifier: GPL-2.0-or-later
/* What was asked for, as the text that is kept with a named probe: JSON. */
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "config/probes.h"
#include "probes/named/priv.h"

#define VERSION 1

static inline void json_unref(json_t **j)
{
	json_decref(*j);
}
#define autojson CLEANUP(json_unref)

void kept_free(struct kept *k)
{
	config_probe_free(&k->probe);
	for (size_t i = 0; i < k->n_files; i++)
		free(k->files[i].path);
	*k = (struct kept){0};
}

static bool has_file(const struct kept *k, const char *path)
{
	for (size_t i = 0; i < k->n_files; i++)
		if (streq(k->files[i].path, path))
			return true;
	return false;
}

/* FNV-1a, by words; 0 if the file cannot be read. */
static uint64_t sum_of(const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint64_t sum = UINT64_C(0xcbf29ce484222325), words[8192];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, words, sizeof(words))) > 0) {
		memset((char *)words + n, 0, (sizeof(words) - (size_t)n) % sizeof(*words));
		for (size_t i = 0; i < ((size_t)n + 7) / sizeof(*words); i++)
			sum = (sum ^ words[i]) * UINT64_C(0x100000001b3);
	}
	return fd < 0 || n < 0 ? 0 : sum ? sum : 1;
}

static uint64_t changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
}

/* Links and rights change the time, too: only then its bytes are looked at. */
bool kept_file_is_overwritten(const struct kept_file *f, const struct stat *now)
{
	return f->sum && changed_ns(now) != f->changed_ns && sum_of(f->path) != f->sum;
}

int kept_take_files(struct kept *k, const struct session *s)
{
	for (size_t i = 0; i < k->n_files; i++)
		free(k->files[i].path);
	k->n_files = 0;
	for (size_t i = 0; i < session_n_probes(s); i++) {
		const char *path = session_path(s, session_probe(s, i));
		struct kept_file *f = &k->files[k->n_files];
		struct stat st;

		if (!path || has_file(k, path) || k->n_files == ARRAY_SIZE(k->files) ||
		    stat(path, &st))
			continue;
		f->path = strdup(path);
		if (!f->path)
			return -ENOMEM;
		f->device = st.st_dev;
		f->inode = st.st_ino;
		f->changed_ns = changed_ns(&st);
		f->sum = sum_of(path);
		k->n_files++;
	}
	return 0;
}

/* --- writing --- */

static void put_text(json_t *j, const char *key, const char *text)
{
	if (text)
		json_object_set_new(j, key, json_string(text));
}

static void put_texts(json_t *j, const char *key, const struct strv *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n; i++)
		json_array_append_new(list, json_string(v->v[i]));
	json_object_set_new(j, key, list);
}

char *kept_format(const struct kept *k)
{
	const struct config_probe *p = &k->probe;
	autojson json_t *j = json_pack(
		"{s:i, s:s, s:s, s:s, s:I, s:[I, I, I], s:I, s:b, s:b, s:b, s:b, s:I, s:I}",
		"version", VERSION, "name", p->name, "probe", p->probe, "action",
		config_probe_action_name(p->action), "last", (json_int_t)p->last, "linear",
		(json_int_t)p->linear[0], (json_int_t)p->linear[1], (json_int_t)p->linear[2], "pid",
		(json_int_t)p->pid, "per-thread", p->per_thread, "exact", p->exact, "enabled",
		p->enabled, "config", k->by_config, "made", (json_int_t)k->made, "of-cgroup",
		(json_int_t)k->cgroup);
	json_t *files = json_array();

	/* texts of a config are UTF-8, those of a command line need not be */
	if (!j) {
		json_decref(files);
		return NULL;
	}
	put_text(j, "app", p->app);
	put_text(j, "cgroup", p->cgroup);
	put_text(j, "types", p->types);
	put_texts(j, "armed-by", &p->armed_by);
	put_texts(j, "disarmed-by", &p->disarmed_by);
	for (size_t i = 0; i < k->n_files; i++)
		json_array_append_new(files, json_pack("[s, I, I, I, I]", k->files[i].path,
						       (json_int_t)k->files[i].device,
						       (json_int_t)k->files[i].inode,
						       (json_int_t)k->files[i].sum,
						       (json_int_t)k->files[i].changed_ns));
	json_object_set_new(j, "files", files);
	return json_dumps(j, JSON_COMPACT | JSON_ENSURE_ASCII);
}

/* --- reading --- */

static int take_text(const json_t *j, const char *key, char **to)
{
	const char *text = json_string_value(json_object_get(j, key));

	*to = text ? strdup(text) : NULL;
	return text && !*to ? -ENOMEM : 0;
}

static int take_texts(const json_t *j, const char *key, struct strv *to)
{
	const json_t *list = json_object_get(j, key);
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		r = strv_add(to, text ? text : "");
	}
	return r;
}

static int take_files(const json_t *list, struct kept *k)
{
	for (size_t i = 0; i < json_array_size(list) && i < ARRAY_SIZE(k->files); i++) {
		const json_t *j = json_array_get(list, i);
		const char *path = json_string_value(json_array_get(j, 0));

		k->files[i].path = strdup(path ? path : "");
		if (!k->files[i].path)
			return -ENOMEM;
		k->files[i].device = (uint64_t)json_integer_value(json_array_get(j, 1));
		k->files[i].inode = (uint64_t)json_integer_value(json_array_get(j, 2));
		k->files[i].sum = (uint64_t)json_integer_value(json_array_get(j, 3));
		k->files[i].changed_ns = (uint64_t)json_integer_value(json_array_get(j, 4));
		k->n_files++;
	}
	return 0;
}

static int take_all(const json_t *j, struct kept *k)
{
	struct config_probe *p = &k->probe;
	const char *action = json_string_value(json_object_get(j, "action"));
	int r = take_text(j, "name", &p->name);

	r = r ? r : take_text(j, "probe", &p->probe);
	r = r ? r : take_text(j, "app", &p->app);
	r = r ? r : take_text(j, "cgroup", &p->cgroup);
	r = r ? r : take_text(j, "types", &p->types);
	r = r ? r : take_texts(j, "armed-by", &p->armed_by);
	r = r ? r : take_texts(j, "disarmed-by", &p->disarmed_by);
	r = r ? r : take_files(json_object_get(j, "files"), k);
	if (r)
		return r;
	if (!p->name || !p->probe || !action ||
	    config_probe_parse_action(action, &p->action, NULL) < 0)
		return -EPROTO;
	p->last = (uint32_t)json_integer_value(json_object_get(j, "last"));
	p->pid = (uint32_t)json_integer_value(json_object_get(j, "pid"));
	for (size_t i = 0; i < 3; i++)
		p->linear[i] = json_integer_value(json_array_get(json_object_get(j, "linear"), i));
	p->per_thread = json_is_true(json_object_get(j, "per-thread"));
	p->exact = json_is_true(json_object_get(j, "exact"));
	p->enabled = json_is_true(json_object_get(j, "enabled"));
	k->by_config = json_is_true(json_object_get(j, "config"));
	k->made = json_integer_value(json_object_get(j, "made"));
	k->cgroup = (uint64_t)json_integer_value(json_object_get(j, "of-cgroup"));
	return 0;
}

int kept_parse(const char *text, struct kept *k)
{
	autojson json_t *j = json_loads(text, 0, NULL);
	int r = -EPROTO;

	*k = (struct kept){0};
	if (json_integer_value(json_object_get(j, "version")) == VERSION)
		r = take_all(j, k);
	if (r < 0)
		kept_free(k);
	return r;
}
