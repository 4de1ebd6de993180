// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/close_range.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "etcd/priv.h"

/* A host that is gone without a word is noticed by the kernel, too: where nothing is sent, as on a
 * watch's connection, after 10 + 3 * 5 s, and where something is after 20 s. */
#define QUIET_S	   10L
#define PROBE_S	   5L
#define UNHEARD_MS 20000
/* A stream may have a whole line of max_answer, and what libcurl reads in one go. */
#define SLACK (2 << 20)

/* --- what libcurl calls --- */

struct etcd_socket {
	struct loop_item item;
	struct etcd *e;
	struct etcd_socket *next, **link;
};

static void socket_free(struct etcd_socket *s)
{
	loop_del(s->e->epoll, &s->item);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	free(s);
}

static struct etcd_socket *socket_new(struct etcd *e, int fd)
{
	struct etcd_socket *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->item = (struct loop_item){.kind = LOOP_ETCD, .fd = fd};
	s->e = e;
	if (loop_add(e->epoll, &s->item, 0) < 0) {
		free(s);
		return NULL;
	}
	s->next = e->sockets;
	s->link = &e->sockets;
	if (s->next)
		s->next->link = &s->next;
	e->sockets = s;
	return s;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct etcd_socket *s = known;
	struct etcd *e = arg;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			socket_free(s);
		return 0;
	}
	if (!s) {
		s = socket_new(e, fd);
		if (!s)
			return -1;
		e->curl->multi_assign(e->multi, fd, s);
	}
	return loop_mod(e->epoll, &s->item,
			(what & CURL_POLL_IN ? EPOLLIN : 0u) |
				(what & CURL_POLL_OUT ? EPOLLOUT : 0u));
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	struct etcd *e = arg;

	(void)multi;
	e->curl_ns = ms < 0 ? NEVER : time_mono_ns() + (uint64_t)ms * NS_PER_MS;
	return 0;
}

/* Not to be inherited by what the agent executes. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	unsigned unheard = UNHEARD_MS;
	int fd = socket(a->family, a->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->protocol);

	(void)arg;
	(void)purpose;
	if (fd < 0)
		return CURL_SOCKET_BAD;
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof(unheard));
	return fd;
}

static size_t on_read(char *to, size_t size, size_t n, void *arg)
{
	struct etcd_transfer *t = arg;
	size_t len = t->body_len - t->body_at;

	if (len > size * n)
		len = size * n;
	memcpy(to, t->body + t->body_at, len);
	t->body_at += len;
	t->began = true;
	return len;
}

/* libcurl begins anew when a connection that it used again turns out to have ended. But the
 * endpoint may have done by then what it was told. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
	struct etcd_transfer *t = arg;

	if (origin != SEEK_SET || offset < 0 || (size_t)offset > t->body_len ||
	    (t->once && t->began))
		return CURL_SEEKFUNC_FAIL;
	t->body_at = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

static void make_ready(struct etcd_transfer *t)
{
	if (t->is_ready)
		return;
	t->is_ready = true;
	t->next_ready = NULL;
	*t->e->ready_end = t;
	t->e->ready_end = &t->next_ready;
}

static size_t on_write(char *from, size_t size, size_t n, void *arg)
{
	struct etcd_transfer *t = arg;
	size_t len = size * n, max = t->e->o.max_answer + (t->stream ? SLACK : 0), want;
	char *in;

	if (len > max - t->in_len) {
		t->too_large = true;
		return 0; /* ends it */
	}
	want = t->in_len + len + 1;
	if (want > t->in_size) {
		want = want < t->in_size * 2 ? t->in_size * 2 : want;
		in = realloc(t->in, want);
		if (!in)
			return 0;
		t->in = in;
		t->in_size = want;
	}
	memcpy(t->in + t->in_len, from, len);
	t->in_len += len;
	t->in[t->in_len] = 0;
	if (t->stream && !t->http)
		t->e->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->http);
	if (t->stream)
		make_ready(t);
	return len;
}

/* --- a transfer --- */

static void set_tls(const struct etcd *e, CURL *easy)
{
	const struct curl_library *c = e->curl;

	c->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	c->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	c->easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (e->o.ca) {
		c->easy_setopt(easy, CURLOPT_CAINFO, e->o.ca);
		c->easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
	/* a file that was replaced holds from the next connection on */
	c->easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, e->o.ca ? 0L : 3600L);
	if (e->o.cert) {
		c->easy_setopt(easy, CURLOPT_SSLCERT, e->o.cert);
		c->easy_setopt(easy, CURLOPT_SSLKEY, e->o.key);
	}
}

/* Nothing of the environment (proxies) or of the answer (redirects) leads elsewhere. */
void transfer_set_way(const struct etcd *e, CURL *easy, const char *url, uint64_t timeout_ms)
{
	const struct curl_library *c = e->curl;

	c->easy_setopt(easy, CURLOPT_URL, url);
	c->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, starts_with(url, "https:") ? "https" : "http");
	c->easy_setopt(easy, CURLOPT_PROXY, "");
	c->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	c->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	c->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	c->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* nobody waits for a thread that resolves */
	c->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)e->o.connect_ms);
	c->easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	c->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	c->easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, QUIET_S);
	c->easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, PROBE_S);
	c->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	set_tls(e, easy);
}

static void set_data(struct etcd_transfer *t, bool any_member)
{
	const struct curl_library *c = t->e->curl;
	CURL *easy = t->easy;

	c->easy_setopt(easy, CURLOPT_PRIVATE, t);
	c->easy_setopt(easy, CURLOPT_ERRORBUFFER, t->why);
	c->easy_setopt(easy, CURLOPT_HTTPHEADER, any_member ? t->e->headers_any : t->e->headers);
	c->easy_setopt(easy, CURLOPT_POST, 1L);
	c->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body_len);
	c->easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
	c->easy_setopt(easy, CURLOPT_READDATA, t);
	c->easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
	c->easy_setopt(easy, CURLOPT_SEEKDATA, t);
	c->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	c->easy_setopt(easy, CURLOPT_WRITEDATA, t);
}

static struct etcd_transfer *transfer_new(struct etcd *e, const struct transfer_what *what)
{
	struct etcd_transfer *t = calloc(1, sizeof(*t));

	if (!t) {
		free(what->body);
		return NULL;
	}
	t->e = e;
	t->body = what->body;
	t->body_len = what->len;
	t->once = what->once;
	t->stream = what->stream;
	t->on_ready = what->on_ready;
	t->owner = what->owner;
	t->started_ns = time_mono_ns();
	t->asked_real_ns = time_real_ns();
	t->epoch = e->at.epoch;
	t->endpoint = e->at.url[e->at.turn];
	return t;
}

struct etcd_transfer *transfer_start(struct etcd *e, const struct transfer_what *what)
{
	struct etcd_transfer *t = transfer_new(e, what);
	autofree char *url = NULL;

	if (!t)
		return NULL;
	t->easy = e->curl->easy_init();
	if (asprintf(&url, "%s%s", t->endpoint, what->path) < 0)
		url = NULL;
	if (!t->easy || !url) {
		transfer_end(t);
		return NULL;
	}
	transfer_set_way(e, t->easy, url, what->timeout_ms);
	set_data(t, what->any_member);
	if (e->curl->multi_add_handle(e->multi, t->easy) != CURLM_OK) {
		transfer_end(t);
		return NULL;
	}
	return t;
}

static void unready(struct etcd_transfer *t)
{
	struct etcd_transfer **at;

	if (!t->is_ready)
		return;
	for (at = &t->e->ready; *at != t;)
		at = &(*at)->next_ready;
	*at = t->next_ready;
	if (!*at)
		t->e->ready_end = at;
	t->is_ready = false;
}

void transfer_end(struct etcd_transfer *t)
{
	if (!t)
		return;
	unready(t);
	if (t->easy) {
		t->e->curl->multi_remove_handle(t->e->multi, t->easy);
		t->e->curl->easy_cleanup(t->easy);
	}
	free(t->body);
	free(t->in);
	free(t);
}

bool transfer_clock(const struct etcd *e, CURL *easy, uint64_t asked_ns, int64_t *ahead_s)
{
	struct curl_header *date;
	time_t said;

	if (e->curl->easy_header(easy, "Date", 0, CURLH_HEADER, -1, &date) != CURLHE_OK)
		return false;
	said = e->curl->getdate(date->value, NULL);
	if (said <= 0)
		return false;
	*ahead_s = etcd_clock_ahead(said, asked_ns, time_real_ns());
	return true;
}

static void note_clock(const struct etcd_transfer *t)
{
	int64_t ahead_s;

	if (!t->stream && t->http && transfer_clock(t->e, t->easy, t->asked_real_ns, &ahead_s))
		endpoint_clock(t->e, t->epoch, ahead_s);
}

static void collect(struct etcd *e)
{
	struct etcd_transfer *t;
	struct CURLMsg *m;
	int left;

	while ((m = e->curl->multi_info_read(e->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		t = NULL;
		e->curl->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		e->curl->easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &t->http);
		t->curl = (int)m->data.result;
		if (t->curl && !t->why[0])
			snprintf(t->why, sizeof(t->why), "%s",
				 e->curl->easy_strerror(m->data.result));
		t->over = true;
		note_clock(t);
		make_ready(t);
	}
}

void transfers_tell(struct etcd *e)
{
	struct etcd_transfer *t;

	collect(e);
	while (!e->closed && (t = e->ready)) {
		unready(t);
		t->on_ready(t);
	}
}

/* --- the loop --- */

void etcd_on_socket(struct loop_item *item, uint32_t events)
{
	struct etcd *e = LOOP_OWNER(item, struct etcd_socket, item)->e;
	int running, what = 0;

	what |= events & EPOLLIN ? CURL_CSELECT_IN : 0;
	what |= events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
	what |= events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0;
	e->inside = true;
	e->curl->multi_socket_action(e->multi, item->fd, what, &running);
	etcd_turn(e);
}

/* --- all of it --- */

int curl_open(struct etcd *e, struct error *err)
{
	static const char *const headers[] = {"Content-Type: application/json", "Expect:",
					      /* a member that has no leader says so at once */
					      "Grpc-Metadata-hasleader: true"};
	const struct curl_library *c;

	e->ready_end = &e->ready;
	e->curl = curl_library(err);
	if (!e->curl)
		return err->code;
	c = e->curl;
	e->multi = c->multi_init();
	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		e->headers = c->slist_append(e->headers, headers[i]);
		if (i + 1 < ARRAY_SIZE(headers))
			e->headers_any = c->slist_append(e->headers_any, headers[i]);
	}
	if (!e->multi || !e->headers || !e->headers_any)
		return error_set(err, -ENOMEM, "out of memory");
	/* libcurl's own descriptors would be inherited by what the agent executes */
	close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	c->multi_setopt(e->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	c->multi_setopt(e->multi, CURLMOPT_SOCKETDATA, e);
	c->multi_setopt(e->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	c->multi_setopt(e->multi, CURLMOPT_TIMERDATA, e);
	return 0;
}

void curl_close(struct etcd *e)
{
	if (!e->curl)
		return;
	if (e->multi)
		e->curl->multi_cleanup(e->multi);
	while (e->sockets)
		socket_free(e->sockets);
	e->curl->slist_free_all(e->headers);
	e->curl->slist_free_all(e->headers_any);
}
