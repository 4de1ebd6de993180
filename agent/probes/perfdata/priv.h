/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that read perf.data share with each other, and with nobody else. */
#ifndef AX_PROBES_PERFDATA_PRIV_H
#define AX_PROBES_PERFDATA_PRIV_H

#include <byteswap.h>

#include "probes/perfdata/perfdata.h"

#define HEADER_SIZE  8		 /* of an event: type (4), misc (2), size (2) */
#define ATTRS_MAX    4096	 /* perf opens one for each -e, glob or not */
#define IDS_MAX	     (4u << 20)	 /* of all attributes: one for each event and CPU */
#define FEATURE_MAX  (64u << 20) /* a larger feature is not read */
#define ATTR_MIN     64		 /* the first version of struct perf_event_attr */
#define UNPACKED_MAX (256u << 10)

/* --- numbers of a file, one after the other --- */

struct cursor {
	const uint8_t *p, *end;
	bool swap;
	bool bad; /* more was asked for than was there */
};

static inline const uint8_t *take(struct cursor *c, size_t n)
{
	const uint8_t *at = c->p;

	if ((size_t)(c->end - c->p) < n) {
		c->bad = true;
		c->p = c->end;
		return NULL;
	}
	c->p += n;
	return at;
}
static inline uint8_t take_u8(struct cursor *c)
{
	const uint8_t *at = take(c, 1);

	return at ? *at : 0;
}
static inline uint16_t take_u16(struct cursor *c)
{
	const uint8_t *at = take(c, 2);
	uint16_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return c->swap ? bswap_16(v) : v;
}
static inline uint32_t take_u32(struct cursor *c)
{
	const uint8_t *at = take(c, 4);
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return c->swap ? bswap_32(v) : v;
}
static inline uint64_t take_u64(struct cursor *c)
{
	const uint8_t *at = take(c, 8);
	uint64_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return c->swap ? bswap_64(v) : v;
}
static inline size_t left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}
/* Bit fields of a machine with the other byte order are numbered from the other end. */
uint64_t take_bits64(struct cursor *c);

/* --- source.c: the bytes of a file or a pipe --- */

struct source {
	int fd;
	bool regular;
	uint64_t size;	 /* of a regular file */
	uint64_t offset; /* of what is at `at` */
	uint8_t *buf;
	size_t at, n;
	bool ended;
};
#define SOURCE_SIZE (256u << 10)
int source_open(struct source *s, int fd);
void source_close(struct source *s);
/* Has `len` bytes (at most 64 KiB) at buf + at. 1; 0: the file ends before. */
int source_need(struct source *s, size_t len);
void source_take(struct source *s, size_t len);
/* Only of regular files. */
void source_seek(struct source *s, uint64_t offset);
/* All or nothing: -EBADMSG when the file ends before. malloc'ed, with a NUL behind. */
int source_load(const struct source *s, uint64_t offset, uint64_t len, size_t max, uint8_t **ret);

/* --- unpack.c: zstd --- */

struct unpack; /* one stream goes through all compressed events */
void unpack_free(struct unpack *u);
/* More of the stream, which stays where it is until it is used up. */
int unpack_give(struct unpack **u, const uint8_t *data, size_t len, struct error *e);
/* Has `len` bytes at *ret; 1; 0: they come with the next compressed event. */
int unpack_need(struct unpack *u, size_t len, const uint8_t **ret, struct error *e);
void unpack_take(struct unpack *u, size_t len);
size_t unpack_left(const struct unpack *u); /* of an event whose rest is missing */

/* --- the whole --- */

struct id_of {
	uint64_t id;
	uint32_t attr;
};

struct perfdata {
	char *path;
	struct source source;
	struct perfdata_header h;
	uint64_t data_end;
	struct perfdata_attr *attrs;
	size_t n_attrs;
	struct id_of *ids; /* attrs_sort() */
	size_t n_ids;
	bool sorted;
	uint64_t payload; /* still to come behind the last event */
	struct unpack *unpack;
	uint8_t *packed;    /* a copy of the event that is being decompressed */
	uint64_t packed_at; /* where it stands in the file */
	struct perfdata_section {
		uint64_t offset, size;
	} sections[256]; /* of features, by their bits */
};

static inline struct cursor cursor_of(const struct perfdata *p, const uint8_t *data, size_t len)
{
	return (struct cursor){.p = data, .end = data + len, .swap = p->h.swapped};
}

/* attr.c */
void attr_read(struct cursor *c, struct perfdata_attr *ret);
int attr_add(struct perfdata *p, struct cursor *c, size_t size, struct perfdata_attr **ret);
int attr_ids(struct perfdata *p, struct perfdata_attr *a, struct cursor *c, size_t n);
void attrs_free(struct perfdata *p);
/* For looking ids up, when some have come. */
void attrs_sort(struct perfdata *p);
/* The attribute of an event of the kernel, by the id in it. NULL: not known. */
const struct perfdata_attr *attr_of_event(const struct perfdata *p,
					  const struct perfdata_event *ev);
/* Names of attributes from the feature EVENT_DESC. */
int attr_names(struct perfdata *p, struct cursor *c);
/* What pipes have as events: attributes, features, names. */
int attr_learn(struct perfdata *p, const struct perfdata_event *ev);

/* sample.c */
size_t sample_id_size(const struct perfdata_attr *a);

/* --- fields --- */

struct describer {
	const struct perfdata *p;
	const struct perfdata_event *ev;
	const struct perfdata_attr *attr; /* NULL: not known */
	struct cursor c;
	const struct perfdata_sink *to;
};
void put_number(const struct perfdata_sink *to, const char *name, uint64_t v);
void put_signed(const struct perfdata_sink *to, const char *name, int64_t v);
void put_hex(const struct perfdata_sink *to, const char *name, uint64_t v);
void put_time(const struct perfdata_sink *to, const char *name, uint64_t v);
/* Up to a NUL in it. */
void put_text(const struct perfdata_sink *to, const char *name, const void *s, size_t len);
void put_string(const struct perfdata_sink *to, const char *name, const char *s);
void put_bytes(const struct perfdata_sink *to, const char *name, const void *s, size_t len);
void put_begin(const struct perfdata_sink *to, const char *name, enum perfdata_kind kind);
void put_end(const struct perfdata_sink *to);
/* The bits that are set as a list of names. */
void put_bits(const struct perfdata_sink *to, const char *name, uint64_t v,
	      const char *const *names, size_t n);

void describe_sample(struct describer *d);
void describe_read(struct describer *d);
void describe_sample_id(struct describer *d, size_t size);
/* own_records.c: those of perf itself. False: it is not one that it knows. */
bool describe_own(struct describer *d);
/* features.c: one feature, from its bytes. */
void describe_feature(struct cursor *c, unsigned bit, const struct perfdata_sink *to);

#endif
