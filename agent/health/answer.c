/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>

#include "health/answer.h"
#include "config/config.h"

bool health_count(struct health_state *s, bool good, const struct service_check *c)
{
	s->successes = good ? s->successes + 1 : 0;
	s->fails = good ? 0 : s->fails + 1;
	if (s->down ? s->successes < c->rise : s->fails < c->fall)
		return false;
	s->down = !s->down;
	s->successes = s->fails = 0;
	return true;
}

char *health_http_request(const struct service_check *c, const char *host)
{
	char *text;

	if (asprintf(&text,
		     "GET %s HTTP/1.0\r\nHost: %s\r\nUser-Agent: ax-check\r\nAccept: */*\r\n"
		     "Connection: close\r\n\r\n",
		     c->path ? c->path : "/", host) < 0)
		return NULL;
	return text;
}

/* "HTTP/1.1 204 No Content": one digit on each side of the dot (RFC 9112), then the status. */
int health_http_status(const char *data, size_t len)
{
	static const char form[] = "HTTP/d.d ddd";
	int status = 0;

	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		if (i == len)
			return 0;
		if (form[i] == 'd' ? !isdigit((unsigned char)data[i]) : data[i] != form[i])
			return -EBADMSG;
		if (i >= 9)
			status = status * 10 + (data[i] - '0');
	}
	if (len == sizeof(form) - 1)
		return 0;
	if (!strchr(" \r\n", data[sizeof(form) - 1]) || !data[sizeof(form) - 1])
		return -EBADMSG;
	return status >= 100 && status <= 599 ? status : -EBADMSG;
}

bool health_status_good(int status, const struct service_check *c)
{
	return c->status ? status == c->status : status >= 200 && status <= 399;
}
