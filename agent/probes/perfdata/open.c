// SPDX-License-Identifier: GPL-2.0-or-later
/* The header of perf.data: what kind of file it is, and where its parts are. */
#include "probes/perfdata/priv.h"

#define MAGIC1	     0x454c494646524550ull /* "PERFFILE" */
#define MAGIC2	     0x32454c4946524550ull /* "PERFILE2" */
#define PIPE_HEADER  16
#define FILE_HEADER  104
#define SECTION_SIZE 16
#define HOSTNAME     3

static int bad(const struct perfdata *p, struct error *e, const char *what)
{
	return error_set(e, -EBADMSG, "%.200s is no perf.data that can be read: %s", p->path, what);
}

static int failed(const struct perfdata *p, struct error *e, int r)
{
	return error_set(e, r, "%.200s cannot be read: %s", p->path, strerror(-r));
}

/* --- attributes --- */

static int read_attr(struct perfdata *p, struct cursor *c, struct error *e)
{
	autofree uint8_t *ids = NULL;
	struct perfdata_attr *a;
	uint64_t offset, size;
	struct cursor own;
	int r = attr_add(p, c, p->h.attr_size - SECTION_SIZE, &a);

	if (r < 0)
		return bad(p, e, "its attributes are cut off");
	offset = take_u64(c);
	size = take_u64(c);
	if (!size)
		return 0;
	r = source_load(&p->source, offset, size, IDS_MAX * sizeof(uint64_t), &ids);
	if (r == -EBADMSG || r == -EFBIG)
		return bad(p, e, "the ids of its attributes lie outside of it");
	if (r < 0)
		return failed(p, e, r);
	own = cursor_of(p, ids, size);
	r = attr_ids(p, a, &own, size / sizeof(uint64_t));
	return r < 0 ? failed(p, e, r) : 0;
}

static int read_attrs(struct perfdata *p, uint64_t offset, uint64_t size, struct error *e)
{
	autofree uint8_t *all = NULL;
	struct cursor c;
	uint64_t n;
	int r;

	if (p->h.attr_size < ATTR_MIN + SECTION_SIZE || p->h.attr_size > 4096)
		return bad(p, e, "the size of its attributes cannot be");
	n = size / p->h.attr_size;
	if (n > ATTRS_MAX)
		return bad(p, e, "it has too many attributes");
	r = source_load(&p->source, offset, size, ATTRS_MAX * 4096u, &all);
	if (r == -EBADMSG)
		return bad(p, e, "its attributes lie outside of it");
	if (r < 0)
		return failed(p, e, r);
	c = cursor_of(p, all, size);
	while (n--) {
		r = read_attr(p, &c, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- features --- */

static bool has_bit(const struct perfdata *p, unsigned bit)
{
	return p->h.features[bit / 64] >> bit % 64 & 1;
}

/* A machine of 32 bits with the other order wrote them as words of 32 bits; each file has a
 * host name. */
static void read_bits(struct perfdata *p, struct cursor *c)
{
	uint64_t *v = p->h.features;

	for (unsigned i = 0; i < 4; i++)
		v[i] = take_u64(c);
	if (!c->swap || has_bit(p, HOSTNAME))
		return;
	for (unsigned i = 0; i < 4; i++)
		v[i] = v[i] >> 32 | v[i] << 32;
}

/* The names of events are in a feature. What is wrong with it is said when it is asked for. */
static int read_names(struct perfdata *p, struct error *e)
{
	enum { EVENT_DESC = 12 };
	const struct perfdata_section *s = &p->sections[EVENT_DESC];
	autofree uint8_t *desc = NULL;
	struct cursor c;
	int r;

	if (!s->size)
		return 0;
	r = source_load(&p->source, s->offset, s->size, FEATURE_MAX, &desc);
	if (r < 0)
		return r == -EBADMSG || r == -EFBIG ? 0 : failed(p, e, r);
	c = cursor_of(p, desc, s->size);
	return attr_names(p, &c) == -ENOMEM ? failed(p, e, -ENOMEM) : 0;
}

static int read_sections(struct perfdata *p, struct error *e)
{
	autofree uint8_t *table = NULL;
	struct cursor c;
	size_t n = 0;

	for (unsigned bit = 0; bit < 256; bit++)
		n += has_bit(p, bit);
	if (!n || p->h.unfinished)
		return 0;
	/* a file that is cut off has events all the same */
	if (source_load(&p->source, p->data_end, n * SECTION_SIZE, 256 * SECTION_SIZE, &table))
		return 0;
	c = cursor_of(p, table, n * SECTION_SIZE);
	for (unsigned bit = 0; bit < 256; bit++) {
		if (!has_bit(p, bit))
			continue;
		p->sections[bit].offset = take_u64(&c);
		p->sections[bit].size = take_u64(&c);
	}
	return read_names(p, e);
}

/* --- the whole --- */

static int read_file_header(struct perfdata *p, struct error *e)
{
	uint64_t offset, size;
	struct cursor c;
	int r = source_need(&p->source, FILE_HEADER);

	if (r <= 0)
		return r < 0 ? failed(p, e, r) : bad(p, e, "it ends in its header");
	if (!p->source.regular)
		return error_set(e, -ESPIPE,
				 "%.200s is a perf.data file in a pipe: save it to a file, or have "
				 "perf write to a pipe (perf record -o -)",
				 p->path);
	c = cursor_of(p, p->source.buf + PIPE_HEADER, FILE_HEADER - PIPE_HEADER);
	p->h.attr_size = take_u64(&c);
	offset = take_u64(&c);
	size = take_u64(&c);
	p->h.data_offset = take_u64(&c);
	p->h.data_size = take_u64(&c);
	take(&c, SECTION_SIZE); /* names of events, of perf's first versions */
	read_bits(p, &c);
	r = read_attrs(p, offset, size, e);
	if (r < 0)
		return r;
	p->h.unfinished = !p->h.data_size;
	if (p->h.data_offset > INT64_MAX || p->h.data_size > INT64_MAX - p->h.data_offset)
		return bad(p, e, "its events lie outside of it");
	p->data_end = p->h.unfinished ? INT64_MAX : p->h.data_offset + p->h.data_size;
	r = read_sections(p, e);
	source_seek(&p->source, p->h.data_offset);
	return r;
}

static int read_header(struct perfdata *p, struct error *e)
{
	int r = source_need(&p->source, PIPE_HEADER);
	struct cursor c;
	uint64_t magic;

	if (r < 0)
		return failed(p, e, r);
	if (r == 0)
		return bad(p, e, "it is too short");
	c = cursor_of(p, p->source.buf, PIPE_HEADER);
	magic = take_u64(&c);
	p->h.swapped = magic == bswap_64(MAGIC2);
	if (magic != MAGIC2 && magic != MAGIC1 && !p->h.swapped)
		return bad(p, e, "it does not begin with PERFILE2");
	p->h.version = magic == MAGIC1 ? 1 : 2;
	c.swap = p->h.swapped;
	p->h.size = take_u64(&c);
	p->h.pipe = p->h.size == PIPE_HEADER;
	if (!p->h.pipe)
		return read_file_header(p, e);
	p->data_end = UINT64_MAX;
	p->h.data_offset = PIPE_HEADER;
	source_take(&p->source, PIPE_HEADER);
	return 0;
}

static int begin(struct perfdata *p, int fd, const char *path, struct error *e)
{
	int r;

	p->path = strdup(path);
	r = source_open(&p->source, fd);
	if (!p->path)
		return error_set(e, -ENOMEM, "out of memory");
	if (r == -EISDIR)
		return error_set(e, r,
				 "%.200s is a directory: its attributes and the first events are "
				 "in the file %.200s/data",
				 path, path);
	if (r < 0)
		return failed(p, e, r);
	r = read_header(p, e);
	attrs_sort(p);
	return r;
}

int perfdata_open(int fd, const char *path, struct perfdata **ret, struct error *e)
{
	struct perfdata *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		close(fd);
		return error_set(e, -ENOMEM, "out of memory");
	}
	r = begin(p, fd, path, e);
	if (r < 0) {
		perfdata_close(p);
		return r;
	}
	*ret = p;
	return 0;
}

void perfdata_close(struct perfdata *p)
{
	source_close(&p->source);
	attrs_free(p);
	unpack_free(p->unpack);
	free(p->packed);
	free(p->path);
	free(p);
}

const struct perfdata_header *perfdata_header(const struct perfdata *p)
{
	return &p->h;
}

const struct perfdata_attr *perfdata_attr(const struct perfdata *p, size_t i)
{
	return i < p->n_attrs ? &p->attrs[i] : NULL;
}

uint16_t perfdata_u16(const struct perfdata *p, const void *at)
{
	struct cursor c = cursor_of(p, at, 2);

	return take_u16(&c);
}

uint32_t perfdata_u32(const struct perfdata *p, const void *at)
{
	struct cursor c = cursor_of(p, at, 4);

	return take_u32(&c);
}

uint64_t perfdata_u64(const struct perfdata *p, const void *at)
{
	struct cursor c = cursor_of(p, at, 8);

	return take_u64(&c);
}

int perfdata_feature(struct perfdata *p, unsigned *bit, const struct perfdata_sink *to,
		     struct error *e)
{
	autofree uint8_t *data = NULL;
	const struct perfdata_section *s;
	struct cursor c;
	int r;

	while (*bit < 256 && !has_bit(p, *bit))
		++*bit;
	if (*bit == 256)
		return 0;
	s = &p->sections[(*bit)++];
	r = source_load(&p->source, s->offset, s->size, FEATURE_MAX, &data);
	if (r == -EFBIG)
		return error_set(e, r, "feature %u is too large to be read: %llu bytes", *bit - 1,
				 (unsigned long long)s->size);
	if (r < 0 || (!s->offset && !s->size))
		return error_set(e, -EBADMSG, "feature %u lies outside of the file", *bit - 1);
	c = cursor_of(p, data, s->size);
	describe_feature(&c, *bit - 1, to);
	if (c.bad)
		return error_set(e, -ENODATA, "feature %u is shorter than what it says it has",
				 *bit - 1);
	return 1;
}
