/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What others have written, for an agent that starts while etcd is away: it knows them, and the
 * ways to them, as the one before it did. It is kept where this node's blocks are, written beside
 * and renamed, some time after something has changed. The file's time says when all of it was known
 * to be so last.
 */
#include <fcntl.h>
#include <search.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "cluster/remembered.h"
#include "machine/instance.h"
#include "registry/state.h"

#define DELAY_MS   1000	      /* what changes within is written at once */
#define REST_MS	   5000	      /* between two times */
#define REST_TIMES 50	      /* as long as one took */
#define RETRY_MS   60000      /* after one that failed */
#define FRESH_MS   60000      /* so often the file's time is set */
#define SLICE	   256	      /* apps; then others have their turn */
#define SIZE_MAX_B (64 << 20) /* bytes: it is in memory, mostly; what is beyond is left out */

#define PATH_SIZE 256

struct remembering {
	FILE *f;
	struct peer_app **apps; /* yet to be written */
	size_t n_apps;
	uint64_t began_ns;
	bool cut;
};

static void file_path(const struct cluster *c, const char *end, char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "%s/cluster-others%s%s%s", c->a->inst->run_dir,
		 c->home ? "-" : "", c->home ? c->conf.name : "", end);
}

/* --- writing --- */

static void write_record(struct cluster *c, const struct remembered *r)
{
	struct remembering *m = c->remembering;

	if (!r->value || m->cut)
		return;
	if (ftello(m->f) + (off_t)(strlen(r->value) + RECORD_KEY_MAX) > SIZE_MAX_B) {
		log_warn("the cluster %s is too large to be remembered whole: an agent that starts "
			 "while etcd is away does not know all of it",
			 c->conf.name);
		m->cut = true;
		return;
	}
	remembered_write(m->f, r);
}

static void write_node(const void *at, VISIT which, void *arg)
{
	const struct peer_node *n = *(struct peer_node *const *)at;
	struct cluster *c = arg;
	struct remembered r = {.at = n->at, .away = n->up ? 0 : n->seen, .lease = n->lease};
	char key[RECORD_KEY_MAX];
	autofree char *text = NULL;

	if ((which != postorder && which != leaf) || !n->rec.id[0] || streq(n->rec.name, c->node) ||
	    (!n->up && !n->n_blocks && !n->n_apps))
		return;
	text = record_node_text(&n->rec);
	r.key = record_node_key(c->conf.name, n->rec.name, key);
	r.value = text;
	write_record(c, &r);
}

static void write_block(struct cluster *c, struct peer_block *b)
{
	struct remembered r = {.at = b->at};
	char key[RECORD_KEY_MAX];
	autofree char *text = NULL;

	if (!is_others(c, b))
		return;
	text = record_block_text(&b->rec);
	r.key = record_block_key(c->conf.name, &b->rec.prefix, key);
	r.value = text;
	write_record(c, &r);
}

static void write_app(struct cluster *c, const struct peer_app *app)
{
	struct remembered r = {.at = app->at,
			       .away = app->lost_ns ? cluster_unix_of(app->lost_ns) : 0,
			       .lease = app->lease};
	autofree char *text = app->gone ? NULL : record_app_text(&app->rec);
	char key[RECORD_KEY_MAX];

	r.key = record_app_key(c->conf.name, app->rec.node, app->rec.id, key);
	r.value = text;
	write_record(c, &r);
}

static void note_app(const void *at, VISIT which, void *arg)
{
	struct peer_app *app = *(struct peer_app *const *)at;
	struct cluster *c = arg;

	if ((which != postorder && which != leaf) || streq(app->rec.node, c->node))
		return;
	app->refs++;
	c->remembering->apps[c->remembering->n_apps++] = app;
}

static void forget_writing(struct cluster *c)
{
	struct remembering *m = c->remembering;

	c->remembering = NULL;
	while (m->n_apps)
		peer_app_put(m->apps[--m->n_apps]);
	free(m->apps);
	if (m->f)
		fclose(m->f);
	free(m);
}

static void failed(struct cluster *c, int err)
{
	char path[PATH_SIZE];

	file_path(c, ".new", path);
	unlink(path);
	file_path(c, "", path);
	if (!c->remember_failed)
		log_error("%s cannot be written (%s): an agent that starts while etcd is away does "
			  "not know the other nodes as they are",
			  path, strerror(err));
	c->remember_failed = true;
	c->remember_stale = true;
	if (c->remembering)
		forget_writing(c);
	cluster_at(c, &c->remember_at_ns, RETRY_MS);
}

static FILE *open_new(struct cluster *c)
{
	char path[PATH_SIZE];
	FILE *f;
	int fd;

	file_path(c, ".new", path);
	unlink(path); /* of an agent that was killed */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !f)
		close(fd);
	return f;
}

static bool begin(struct cluster *c)
{
	struct remembered_head h = {.revision = c->revision};
	struct remembering *m = calloc(1, sizeof(*m));
	autofree char *head = NULL;

	errno = 0;
	if (!m)
		return false;
	c->remembering = m;
	c->remember_stale = false;
	m->began_ns = time_mono_ns();
	snprintf(h.cluster, sizeof(h.cluster), "%.63s", c->conf.name);
	snprintf(h.id, sizeof(h.id), "%s", c->id);
	head = remembered_head_text(&h);
	m->apps = calloc(c->peers.n_apps + 1, sizeof(struct peer_app *));
	m->f = head && m->apps ? open_new(c) : NULL;
	if (!m->f)
		return false;
	fprintf(m->f, "%s\n", head);
	twalk_r(c->peers.nodes, write_node, c);
	peers_each_block(c, write_block);
	twalk_r(c->peers.apps, note_app, c);
	return true;
}

/* As of when all was known. */
static struct timespec known_at(const struct cluster *c)
{
	return (struct timespec){
		.tv_sec = c->current || !c->known_ns ? time(NULL) : cluster_unix_of(c->known_ns)};
}

static void end(struct cluster *c)
{
	struct remembering *m = c->remembering;
	const struct timespec at = known_at(c), times[] = {at, at};
	uint64_t took = time_mono_ns() - m->began_ns, rest;
	char path[PATH_SIZE], beside[PATH_SIZE];
	FILE *f = m->f;
	int err = 0;

	file_path(c, "", path);
	file_path(c, ".new", beside);
	if (fflush(f) || ferror(f) || futimens(fileno(f), times))
		err = errno ? errno : EIO;
	m->f = NULL;
	if (fclose(f) && !err)
		err = errno;
	if (!err && rename(beside, path))
		err = errno;
	if (err) {
		failed(c, err);
		return;
	}
	c->remember_failed = false;
	forget_writing(c);
	rest = REST_TIMES * took / NS_PER_MS;
	rest = rest > REST_MS ? rest : REST_MS;
	c->remember_rest_ns = time_mono_ns() + rest * NS_PER_MS;
	cluster_at(c, &c->remember_at_ns, c->remember_stale ? rest : FRESH_MS);
}

static void write_slice(struct cluster *c, size_t n)
{
	struct remembering *m = c->remembering;

	for (size_t i = 0; i < n && m->n_apps; i++) {
		struct peer_app *app = m->apps[--m->n_apps];

		write_app(c, app);
		peer_app_put(app);
	}
	if (ferror(m->f))
		failed(c, errno ? errno : EIO);
	else if (m->n_apps)
		cluster_at(c, &c->remember_at_ns, 0);
	else
		end(c);
}

/* Nothing has changed, and (as long as it can be asked) etcd still says so. */
static void freshen(struct cluster *c)
{
	char path[PATH_SIZE];

	file_path(c, "", path);
	if (!c->current || utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0)
		cluster_at(c, &c->remember_at_ns, FRESH_MS);
	else
		remember(c);
}

void remember(struct cluster *c)
{
	uint64_t now = time_mono_ns(), ms = DELAY_MS;

	if (!c->was_read || c->remember_stale)
		return; /* (half of what there is would not be better than all that there was) */
	c->remember_stale = true;
	if (c->remember_rest_ns > now + ms * NS_PER_MS)
		ms = (c->remember_rest_ns - now) / NS_PER_MS + 1;
	if (!c->remembering)
		cluster_at(c, &c->remember_at_ns, ms);
}

void remember_due(struct cluster *c)
{
	if (!c->remembering && !c->remember_stale)
		freshen(c);
	else if (c->remembering || begin(c))
		write_slice(c, SLICE);
	else
		failed(c, errno ? errno : ENOMEM);
}

void remember_end(struct cluster *c)
{
	if (c->remember_stale && c->remembering)
		forget_writing(c);
	if (c->remember_stale && !begin(c))
		failed(c, errno ? errno : ENOMEM);
	if (c->remembering)
		write_slice(c, SIZE_MAX);
	else
		freshen(c);
	c->remember_stale = false;
}

void remember_forget(struct cluster *c)
{
	char path[PATH_SIZE];

	if (c->remembering)
		forget_writing(c);
	c->remember_stale = false;
	file_path(c, ".new", path);
	unlink(path);
	file_path(c, "", path);
	unlink(path);
}

/* --- reading --- */

static void take_line(struct cluster *c, char *line, size_t len, int64_t at)
{
	struct remembered r;
	struct etcd_kv kv = {0};

	if (len && line[len - 1] == '\n')
		line[--len] = 0;
	if (remembered_read(line, len, &r)) {
		c->peers.refused++;
		snprintf(c->peers.why, sizeof(c->peers.why),
			 "a line of what an earlier agent remembered: it is none");
		return;
	}
	if (!r.at || r.at > at)
		r.at = at;
	kv.key = bytes_of(r.key);
	kv.value = bytes_of(r.value);
	kv.lease = r.lease;
	peers_recall(c, &kv, &r);
}

static bool take_head(struct cluster *c, const char *line, size_t len)
{
	struct remembered_head h;

	if (remembered_head_read(line, len, &h) || !streq(h.cluster, c->conf.name) ||
	    !streq(h.id, c->id))
		return false;
	c->revision = h.revision;
	return true;
}

static void take(struct cluster *c, FILE *f, int64_t at)
{
	autofree char *line = NULL;
	size_t room = 0;
	ssize_t len = getline(&line, &room, f);

	if (len <= 0 || !take_head(c, line, (size_t)len))
		return;
	while ((len = getline(&line, &room, f)) > 0)
		take_line(c, line, (size_t)len, at);
	c->recalled_nodes = c->peers.n_nodes;
	c->recalled_apps = c->peers.n_apps;
	if (!c->recalled_nodes)
		return;
	c->by_memory = true;
	c->known_ns = cluster_mono_of(at);
	log_info("the cluster %s: %zu nodes and %zu apps of theirs are known from before",
		 c->conf.name, c->recalled_nodes, c->recalled_apps);
}

void remember_read(struct cluster *c)
{
	char path[PATH_SIZE];
	struct stat st;
	FILE *f;

	if (c->recalled)
		return;
	c->recalled = true;
	file_path(c, "", path);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= SIZE_MAX_B)
		take(c, f, st.st_mtim.tv_sec);
	fclose(f);
}
