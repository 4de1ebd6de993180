// SPDX-License-Identifier: GPL-2.0-or-later
#include "etcd/look.h"
#include "etcd/priv.h"

int64_t etcd_clock_ahead(time_t said, uint64_t from_ns, uint64_t to_ns)
{
	/* (it was any time of that second) */
	int64_t least = (int64_t)said * (int64_t)NS_PER_S - (int64_t)to_ns;
	int64_t most = ((int64_t)said + 1) * (int64_t)NS_PER_S - (int64_t)from_ns;

	return (least > 0 ? least : most < 0 ? most : 0) / (int64_t)NS_PER_S;
}

struct asked {
	CURL *easy;
	uint64_t asked_ns;
	char why[CURL_ERROR_SIZE];
	struct etcd_look *ret;
};

struct looking {
	struct etcd e; /* its library and options alone */
	CURLM *multi;
	struct asked *v;
	size_t n;
};

static void looking_free(struct looking *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (!l->v[i].easy)
			continue;
		l->e.curl->multi_remove_handle(l->multi, l->v[i].easy);
		l->e.curl->easy_cleanup(l->v[i].easy);
	}
	if (l->multi)
		l->e.curl->multi_cleanup(l->multi);
	free(l->v);
}

static size_t leave(char *from, size_t size, size_t n, void *arg)
{
	(void)from;
	(void)arg;
	return size * n;
}

static int ask(struct looking *l, struct asked *a, const char *endpoint, unsigned timeout_ms)
{
	const struct curl_library *c = l->e.curl;
	char url[512];

	a->easy = c->easy_init();
	if (!a->easy)
		return -ENOMEM;
	snprintf(url, sizeof(url), "%.480s/version", endpoint);
	transfer_set_way(&l->e, a->easy, url, timeout_ms);
	c->easy_setopt(a->easy, CURLOPT_PRIVATE, a);
	c->easy_setopt(a->easy, CURLOPT_ERRORBUFFER, a->why);
	c->easy_setopt(a->easy, CURLOPT_CERTINFO, 1L);
	c->easy_setopt(a->easy, CURLOPT_WRITEFUNCTION, leave);
	a->asked_ns = time_real_ns();
	return c->multi_add_handle(l->multi, a->easy) == CURLM_OK ? 0 : -ENOMEM;
}

/* Of those that it showed the one that ends first. */
static time_t ends(const struct curl_library *c, CURL *easy)
{
	static const char key[] = "Expire date:";
	struct curl_certinfo *info = NULL;
	time_t first = 0, at;

	if (c->easy_getinfo(easy, CURLINFO_CERTINFO, &info) != CURLE_OK || !info)
		return 0;
	for (int i = 0; i < info->num_of_certs; i++) {
		for (const struct curl_slist *s = info->certinfo[i]; s; s = s->next) {
			if (!starts_with(s->data, key))
				continue;
			at = c->getdate(s->data + strlen(key), NULL);
			first = at > 0 && (!first || at < first) ? at : first;
		}
	}
	return first;
}

static void take(struct looking *l, CURL *easy, CURLcode code)
{
	const struct curl_library *c = l->e.curl;
	struct asked *a = NULL;

	c->easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&a);
	a->ret->answered = code == CURLE_OK;
	if (code != CURLE_OK) {
		snprintf(a->ret->why, sizeof(a->ret->why), "%s",
			 a->why[0] ? a->why : c->easy_strerror(code));
		return;
	}
	a->ret->until = ends(c, easy);
	a->ret->clock_known = transfer_clock(&l->e, easy, a->asked_ns, &a->ret->clock_s);
}

static void collect(struct looking *l)
{
	struct CURLMsg *m;
	int left;

	while ((m = l->e.curl->multi_info_read(l->multi, &left)))
		if (m->msg == CURLMSG_DONE)
			take(l, m->easy_handle, m->data.result);
}

int etcd_look(const struct etcd_options *o, unsigned timeout_ms, struct etcd_look *ret,
	      struct error *e)
{
	CLEANUP(looking_free) struct looking l = {.e.o = *o};
	int running = 1, r = 0;

	memset(ret, 0, o->n_endpoints * sizeof(*ret));
	l.e.curl = curl_library(e);
	if (!l.e.curl)
		return e->code;
	l.e.o.connect_ms = timeout_ms;
	l.multi = l.e.curl->multi_init();
	l.v = calloc(o->n_endpoints + 1, sizeof(*l.v));
	if (!l.multi || !l.v)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < o->n_endpoints && !r; i++) {
		l.v[l.n++].ret = &ret[i];
		r = ask(&l, &l.v[i], o->endpoints[i], timeout_ms);
	}
	/* (each has a time-out of its own) */
	while (!r && running) {
		if (l.e.curl->multi_perform(l.multi, &running) != CURLM_OK)
			break;
		collect(&l);
		if (running)
			l.e.curl->multi_poll(l.multi, NULL, 0, 100, NULL);
	}
	return r ? error_set(e, r, "out of memory") : 0;
}
