/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_CTF_PRIV_H
#define AX_CTF_PRIV_H

#include "ctf/ctf.h"

#define CTF_PACKET_BYTES  (64u << 10) /* from there on a packet is written */
#define CTF_WAITING_BYTES (32u << 20) /* if it is more, nothing waits any more */
#define CTF_STREAMS	  8	      /* one, and others for what comes too late */
#define CTF_MAGIC	  UINT32_C(0xc1fc1fc1)
#define CTF_UUID	  16

struct bytes {
	char *v;
	size_t n, size;
};
/* Where n more bytes may be written, which count from then on; NULL: memory is out. */
char *bytes_add(struct bytes *b, size_t n);

/* An event that waits for its turn. */
struct waiting {
	uint64_t time_ns, number;
	size_t at, len;
};

struct stream {
	int fd;
	struct bytes packet; /* its events */
	uint64_t begin_ns, end_ns;
	uint64_t written;   /* bytes, of whole packets */
	uint64_t discarded; /* as the last packet says */
};

struct ctf {
	int directory;
	int error; /* errno of what failed: nothing more is written */
	uint8_t uuid[CTF_UUID];
	struct bytes metadata;
	size_t metadata_written;
	int events; /* kinds */
	struct bytes arena;
	struct waiting *v;
	size_t n, size;
	uint64_t number, late, discarded;
	struct stream streams[CTF_STREAMS];
	size_t n_streams;
};

/* --- metadata.c --- */

int metadata_begin(struct ctf *c, int64_t offset_ns);
int metadata_add(struct ctf *c, const char *name, const struct ctf_field *fields, size_t n);
int metadata_write(struct ctf *c);

/* --- stream.c --- */

/* Puts an event that is encoded into a packet. */
int stream_put(struct ctf *c, const struct waiting *w);
int stream_write(struct ctf *c, struct stream *s);
/* The first one begins, with a packet that has no events: from it on losses count. */
int stream_begin(struct ctf *c, uint64_t time_ns);
/* Whether its next packet says more than the last one did. */
bool stream_has_news(const struct ctf *c, const struct stream *s);

#endif
