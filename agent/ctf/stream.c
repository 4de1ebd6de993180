// SPDX-License-Identifier: GPL-2.0-or-later
/* Streams of packets. Numbers are written as this machine has them; everything begins at a byte. */
#include <fcntl.h>

#include "ctf/priv.h"

/* What the text says of each packet, and of the stream of it. */
struct packet {
	uint32_t magic;
	uint8_t uuid[CTF_UUID];
	uint32_t stream_id;
	uint64_t begin_ns, end_ns;
	uint64_t content_bits, packet_bits;
	uint64_t discarded;
};
_Static_assert(sizeof(struct packet) == 64, "there is nothing between its members");

static int write_at(int fd, const void *bytes, size_t n, uint64_t at)
{
	const char *p = bytes;

	while (n) {
		ssize_t r = pwrite(fd, p, n, (off_t)at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		p += r;
		at += (uint64_t)r;
		n -= (size_t)r;
	}
	return 0;
}

/* At once, so that only what ends us in its midst can leave half of it. */
static int write_packet(struct stream *s, const struct packet *p)
{
	char *whole = malloc(sizeof(*p) + s->packet.n);
	int r;

	if (!whole)
		return -ENOMEM;
	memcpy(whole, p, sizeof(*p));
	if (s->packet.n)
		memcpy(whole + sizeof(*p), s->packet.v, s->packet.n);
	r = write_at(s->fd, whole, sizeof(*p) + s->packet.n, s->written);
	free(whole);
	/* what was written of it would keep readers from the end */
	if (r < 0 && ftruncate(s->fd, (off_t)s->written) < 0)
		return r;
	if (r < 0)
		return r;
	s->written += sizeof(*p) + s->packet.n;
	return 0;
}

int stream_write(struct ctf *c, struct stream *s)
{
	uint64_t bits = 8 * (sizeof(struct packet) + s->packet.n);
	struct packet p = {
		.magic = CTF_MAGIC,
		.begin_ns = s->begin_ns,
		.end_ns = s->end_ns,
		.content_bits = bits,
		.packet_bits = bits,
		/* readers take what the first packet has for what was before it */
		.discarded = s == c->streams && s->written ? c->discarded : 0,
	};
	int r = metadata_write(c);

	memcpy(p.uuid, c->uuid, sizeof(p.uuid));
	if (r == 0)
		r = write_packet(s, &p);
	s->packet.n = 0;
	s->begin_ns = s->end_ns;
	s->discarded = p.discarded;
	return r;
}

bool stream_has_news(const struct ctf *c, const struct stream *s)
{
	return s->packet.n || (s == c->streams && s->discarded != c->discarded);
}

static struct stream *add_stream(struct ctf *c)
{
	struct stream *s = &c->streams[c->n_streams];
	char name[32];

	if (c->n_streams == CTF_STREAMS)
		return NULL;
	snprintf(name, sizeof(name), c->n_streams ? "late-%zu" : "events", c->n_streams);
	s->fd = openat(c->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (s->fd < 0)
		return NULL;
	c->n_streams++;
	return s;
}

int stream_begin(struct ctf *c, uint64_t time_ns)
{
	struct stream *s = add_stream(c);

	if (!s)
		return -errno;
	s->begin_ns = time_ns;
	s->end_ns = time_ns;
	return stream_write(c, s);
}

/* Times in a stream never go back. */
static struct stream *find_stream(struct ctf *c, uint64_t time_ns)
{
	for (size_t i = 0; i < c->n_streams; i++)
		if (c->streams[i].end_ns <= time_ns)
			return &c->streams[i];
	return add_stream(c);
}

int stream_put(struct ctf *c, const struct waiting *w)
{
	struct stream *s = find_stream(c, w->time_ns);
	char *at;

	if (!s)
		return c->n_streams == CTF_STREAMS ? -EOVERFLOW : -errno;
	c->late += s != c->streams;
	if (!s->packet.n)
		s->begin_ns = w->time_ns;
	at = bytes_add(&s->packet, w->len);
	if (!at)
		return -ENOMEM;
	memcpy(at, c->arena.v + w->at, w->len);
	s->end_ns = w->time_ns;
	return s->packet.n >= CTF_PACKET_BYTES ? stream_write(c, s) : 0;
}
