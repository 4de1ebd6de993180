// SPDX-License-Identifier: GPL-2.0-or-later
/* Events that perf compressed (perf record -z): one zstd stream through all COMPRESSED events. It
 * is decompressed piece by piece, so that a few bytes that stand for many cost no memory. */
#include <zstd.h>

#include "probes/perfdata/priv.h"

struct unpack {
	ZSTD_DStream *stream;
	ZSTD_inBuffer in;
	bool more; /* the library may have output that did not fit */
	size_t at, n;
	uint8_t buf[UNPACKED_MAX];
};

void unpack_free(struct unpack *u)
{
	if (!u)
		return;
	ZSTD_freeDStream(u->stream);
	free(u);
}

int unpack_give(struct unpack **up, const uint8_t *data, size_t len, struct error *e)
{
	struct unpack *u = *up;

	if (!u) {
		u = calloc(1, sizeof(*u));
		if (u)
			u->stream = ZSTD_createDStream();
		if (!u || !u->stream) {
			free(u);
			return error_set(e, -ENOMEM, "out of memory");
		}
		/* of zstd's level 22, the highest that perf takes: 128 MiB */
		ZSTD_DCtx_setParameter(u->stream, ZSTD_d_windowLogMax, 27);
		*up = u;
	}
	u->in = (ZSTD_inBuffer){.src = data, .size = len};
	u->more = true;
	return 0;
}

int unpack_need(struct unpack *u, size_t len, const uint8_t **ret, struct error *e)
{
	while (u->n - u->at < len) {
		ZSTD_outBuffer out;
		size_t r;

		if (!u->more)
			return 0;
		memmove(u->buf, u->buf + u->at, u->n - u->at);
		u->n -= u->at;
		u->at = 0;
		out = (ZSTD_outBuffer){.dst = u->buf, .size = sizeof(u->buf), .pos = u->n};
		r = ZSTD_decompressStream(u->stream, &out, &u->in);
		if (ZSTD_isError(r))
			return error_set(e, -EBADMSG, "%s", ZSTD_getErrorName(r));
		/* a full buffer may mean that there is more */
		u->more = u->in.pos < u->in.size || out.pos == out.size;
		u->n = out.pos;
	}
	*ret = u->buf + u->at;
	return 1;
}

void unpack_take(struct unpack *u, size_t len)
{
	u->at += len;
}

size_t unpack_left(const struct unpack *u)
{
	return u ? u->n - u->at : 0;
}
