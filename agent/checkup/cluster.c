// SPDX-License-Identifier: GPL-2.0-or-later
/* This node's way to its cluster's etcd. */
#include "checkup/checkup.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>

#include "checkup/certificate.h"
#include "checkup/priv.h"
#include "etcd/look.h"

#define LOOK_MS	  3000
#define DAY_S	  86400
#define SOON_DAYS 14
#define TIME_MAX  32

void checkup_found(struct check *c, enum finding_state state, const char *what, const char *fix,
		   const char *fmt, ...)
{
	struct finding f = {.state = state, .what = what};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f.why, sizeof(f.why), fmt, ap);
	va_end(ap);
	snprintf(f.fix, sizeof(f.fix), "%s", fix ? fix : "");
	c->bad += state == FINDING_BAD;
	c->report(c->arg, c->node, &f);
}

enum finding_state checkup_clock(int64_t ahead_s)
{
	int64_t by = ahead_s < 0 ? -ahead_s : ahead_s;

	return by >= CLOCK_BAD_S ? FINDING_BAD : by >= CLOCK_NOTE_S ? FINDING_NOTE : FINDING_OK;
}

/* --- what the agent says --- */

static void check_agent(struct check *c)
{
	const char *state = c->c->state ? c->c->state : "unknown", *why = c->c->why;

	if (streq(state, "connected"))
		checkup_found(c, FINDING_OK, "etcd", NULL, "the agent is connected to %s",
			      c->c->member ? c->c->member : "it");
	else
		checkup_found(c, FINDING_BAD, "etcd", NULL,
			      "the agent is not in the cluster (%s)%s%s", state, why ? ": " : "",
			      why ? why : "");
	if (c->c->lease && streq(state, "connected"))
		checkup_found(c, FINDING_OK, "lease", NULL,
			      "this node is registered, under lease %s", c->c->lease);
	else
		checkup_found(c, FINDING_BAD, "lease", NULL,
			      "this node is not registered%s: the others take it for away",
			      c->c->lease ? " now" : ", and has no lease");
	if (c->c->unwritten)
		checkup_found(c, FINDING_BAD, "etcd", NULL,
			      "etcd does not take this node's apps: %s", c->c->unwritten);
	if (c->c->no_address6)
		checkup_found(c, FINDING_BAD, "address6", NULL,
			      "other nodes have no way to its blocks of IPv6: %s",
			      c->c->no_address6);
	if (c->c->untold)
		checkup_found(c, FINDING_BAD, "apps", NULL,
			      "some apps of other nodes cannot be reached: %s", c->c->untold);
}

static void check_peers(struct check *c)
{
	for (size_t i = 0; i < c->c->n_peers; i++) {
		const struct checkup_peer *p = &c->c->peers[i];

		if (streq(p->state, "connected"))
			checkup_found(c, FINDING_OK, "peer", NULL, "the peer %s is read, from %s",
				      p->name, p->member ? p->member : "its etcd");
		else
			checkup_found(c, streq(p->state, "reading") ? FINDING_NOTE : FINDING_BAD,
				      "peer", NULL, "the peer %s is not read (%s)%s%.180s", p->name,
				      p->state, p->why ? ": " : "", p->why ? p->why : "");
	}
}

/* --- certificates --- */

static char *day_of(time_t at, char text[TIME_MAX])
{
	struct tm tm;

	gmtime_r(&at, &tm);
	strftime(text, TIME_MAX, "%Y-%m-%d %H:%M UTC", &tm);
	return text;
}

static void check_file(struct check *c, const char *what, const char *path)
{
	time_t from, until, now = time(NULL);
	struct error e = {0};
	char day[TIME_MAX];
	int r;

	if (!path)
		return;
	r = certificate_read(path, &from, &until, &e);
	if (r == -EACCES || r == -ENOTSUP)
		checkup_found(c, FINDING_NOTE, what, NULL, "%s%s", e.text,
			      r == -EACCES ? " by you: run it with sudo" : "");
	else if (r)
		checkup_found(c, FINDING_BAD, what, NULL, "%s", e.text);
	else if (until <= now)
		checkup_found(c, FINDING_BAD, what, NULL,
			      "%s ended at %s: etcd is not reached by it", path,
			      day_of(until, day));
	else if (from > now)
		checkup_found(c, FINDING_BAD, what, NULL,
			      "%s begins at %s: until then etcd is not reached by it", path,
			      day_of(from, day));
	else
		checkup_found(c, until - now < SOON_DAYS * DAY_S ? FINDING_NOTE : FINDING_OK, what,
			      NULL, "%s holds until %s%s", path, day_of(until, day),
			      until - now < SOON_DAYS * DAY_S ? ": replace it soon" : "");
}

/* `chmod 600 PATH` where that can be pasted. */
static void check_key(struct check *c)
{
	const struct etcd_options *o = c->c->etcd;
	struct error e = {0};
	char fix[256] = "";
	struct stat st;
	int r;

	if (!o->key)
		return;
	if (!strpbrk(o->key, " '\"\\$`&;|<>()*?[]#~") && strlen(o->key) < 200)
		snprintf(fix, sizeof(fix), "chmod go= %s", o->key);
	r = stat(o->key, &st) < 0 ? -errno : 0;
	if (!r && st.st_mode & (S_IRWXG | S_IRWXO))
		checkup_found(
			c, FINDING_BAD, "key", fix,
			"%s can be opened by others than its owner (mode %04o): who reads it is "
			"this node for etcd",
			o->key, st.st_mode & 07777);
	r = r ? error_set(&e, r, "%s cannot be looked at: %s", o->key, strerror(-r))
	      : certificate_has_key(o->cert, o->key, &e);
	if (r == -EACCES || r == -ENOTSUP)
		checkup_found(c, FINDING_NOTE, "key", NULL, "%s%s", e.text,
			      r == -EACCES ? " by you: run it with sudo" : "");
	else if (r)
		checkup_found(c, FINDING_BAD, "key", NULL, "%s", e.text);
	else if (!(st.st_mode & (S_IRWXG | S_IRWXO)))
		checkup_found(c, FINDING_OK, "key", NULL,
			      "%s is its certificate's, and its owner's alone", o->key);
}

/* --- etcd's members --- */

static void check_member(struct check *c, const char *url, const struct etcd_look *l)
{
	bool tls = starts_with(url, "https:");
	time_t now = time(NULL);
	char day[TIME_MAX];

	if (!l->answered)
		checkup_found(c, FINDING_BAD, "member", NULL, "%s: %.180s", url, l->why);
	else if (!tls)
		checkup_found(
			c, FINDING_NOTE, "member", NULL,
			"%s answers, without TLS: who is on the way reads and changes all of it",
			url);
	else if (!l->until)
		checkup_found(c, FINDING_OK, "member", NULL, "%s answers, and proves who it is",
			      url);
	else
		checkup_found(c, l->until - now < SOON_DAYS * DAY_S ? FINDING_NOTE : FINDING_OK,
			      "member", NULL,
			      "%s answers, and proves who it is; its certificate holds until %s%s",
			      url, day_of(l->until, day),
			      l->until - now < SOON_DAYS * DAY_S ? ": replace it soon" : "");
	if (l->clock_known)
		checkup_found(c, checkup_clock(l->clock_s), "clock", NULL,
			      l->clock_s
				      ? "the clock of %s is %lld s %s this node's: keep both by NTP"
				      : "%s has this node's time",
			      url, (long long)(l->clock_s < 0 ? -l->clock_s : l->clock_s),
			      l->clock_s < 0 ? "behind" : "ahead of");
}

static int check_members(struct check *c, struct error *e)
{
	const struct etcd_options *o = c->c->etcd;
	autofree struct etcd_look *list = calloc(o->n_endpoints + 1, sizeof(*list));
	int r;

	if (!list)
		return error_set(e, -ENOMEM, "out of memory");
	if (o->key && access(o->key, R_OK) < 0 && errno == EACCES) {
		checkup_found(c, FINDING_NOTE, "member", NULL,
			      "etcd cannot be asked by you, who may not read %s: run it with sudo",
			      o->key);
		return 0;
	}
	r = etcd_look(o, LOOK_MS, list, e);
	for (size_t i = 0; i < o->n_endpoints && !r; i++)
		check_member(c, o->endpoints[i], &list[i]);
	return r;
}

int checkup_cluster(const struct checkup_cluster *cluster, checkup_fn report, void *arg,
		    struct error *e)
{
	struct check c = {.c = cluster, .report = report, .arg = arg};
	int r;

	check_agent(&c);
	check_peers(&c);
	check_file(&c, "ca", cluster->etcd->ca);
	check_file(&c, "certificate", cluster->etcd->cert);
	check_key(&c);
	r = check_members(&c, e);
	r = r ? r : checkup_nodes(&c, e);
	return r ? r : c.bad;
}
