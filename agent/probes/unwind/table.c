// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The entry of .eh_frame that an instruction belongs to, by the sorted table in .eh_frame_hdr,
 * which every linker writes. Of the file only what is looked at is read.
 */
#include "probes/unwind/priv.h"

#define ENTRY_MAX      16384 /* bytes of an entry; the greatest of Debian's have some thousand */
#define TABLE_ENCODING 0x3b  /* relative to the header, 32 bits with sign */
#define TABLE_LINE     8
#define LINES_AT_ONCE  256

struct table {
	uint64_t address, offset; /* of the header */
	uint64_t lines, n;	  /* where its lines are in the file */
	uint64_t frames;	  /* .eh_frame, in the file */
};

/* How many bytes a pointer takes that is not relative to anything but itself. */
static size_t width(uint8_t encoding)
{
	switch (encoding & ENCODED_FORM) {
	case 0x02:
	case 0x0a:
		return 2;
	case 0x03:
	case 0x0b:
		return 4;
	case 0x00:
	case 0x04:
	case 0x0c:
		return 8;
	default:
		return 0;
	}
}

static int open_table(const struct image *im, const Elf64_Phdr *p, struct table *t)
{
	uint8_t head[32] = {0};
	struct reader r = {.at = head + 4, .end = head + sizeof(head)};
	uint64_t frames, left;

	if (image_read(im, p->p_offset, head, 12))
		return -ENOEXEC;
	if (p->p_filesz >= sizeof(head) && image_read(im, p->p_offset, head, sizeof(head)))
		return -ENOEXEC;
	if (head[0] != 1 || head[3] != TABLE_ENCODING || !width(head[1]) || !width(head[2]))
		return -ENOENT;
	frames = reader_pointer(&r, head[1], p->p_vaddr + 4);
	t->n = reader_pointer(&r, head[2], p->p_vaddr + (uint64_t)(r.at - head));
	t->address = p->p_vaddr;
	t->offset = p->p_offset;
	t->lines = p->p_offset + (uint64_t)(r.at - head);
	left = p->p_filesz - (uint64_t)(r.at - head);
	if (r.bad || (uint64_t)(r.at - head) > p->p_filesz ||
	    !image_offset(im, frames, false, &t->frames))
		return -ENOEXEC;
	if (t->n > left / TABLE_LINE)
		t->n = left / TABLE_LINE;
	return t->n ? 0 : -ENOENT;
}

static int find_table(const struct image *im, struct table *t)
{
	for (size_t i = 0; i < im->n_segments; i++)
		if (im->segments[i].p_type == PT_GNU_EH_FRAME)
			return open_table(im, &im->segments[i], t);
	return -ENOENT;
}

struct line {
	int32_t code, entry; /* from the header */
};

static bool is_above(const struct table *t, const struct line *l, uint64_t address)
{
	return t->address + (uint64_t)(int64_t)l->code > address;
}

/* Lines low to high, of which one may be the last that is not above the address: until they are so
 * few that they are read at once. */
static int narrow(const struct image *im, const struct table *t, uint64_t address, uint64_t *low,
		  uint64_t *high)
{
	struct line l;

	while (*high - *low > LINES_AT_ONCE) {
		uint64_t mid = *low + (*high - *low) / 2;

		if (image_read(im, t->lines + mid * sizeof(l), &l, sizeof(l)))
			return -ENOEXEC;
		if (is_above(t, &l, address))
			*high = mid;
		else
			*low = mid;
	}
	return 0;
}

/* The entry of the last line that is not above the address. */
static int find_line(const struct image *im, const struct table *t, uint64_t address,
		     uint64_t *entry)
{
	uint64_t low = 0, high = t->n;
	struct line v[LINES_AT_ONCE];
	size_t n;

	if (narrow(im, t, address, &low, &high) < 0)
		return -ENOEXEC;
	n = (size_t)(high - low);
	if (image_read(im, t->lines + low * sizeof(*v), v, n * sizeof(*v)))
		return -ENOEXEC;
	while (n && is_above(t, &v[n - 1], address))
		n--;
	if (!n)
		return -ENOENT;
	*entry = t->address + (uint64_t)(int64_t)v[n - 1].entry;
	return 0;
}

/* One record of .eh_frame: its bytes behind the length. */
struct record {
	uint8_t bytes[ENTRY_MAX];
	uint64_t offset; /* of bytes[0], in the file */
	size_t len;
};

static int read_record(const struct image *im, uint64_t offset, struct record *ret)
{
	uint32_t len;

	if (image_read(im, offset, &len, sizeof(len)) || len < 4 || len > ENTRY_MAX)
		return -ENOEXEC;
	ret->offset = offset + sizeof(len);
	ret->len = len;
	return image_read(im, ret->offset, ret->bytes, len) ? -ENOEXEC : 0;
}

static int read_augmentation(struct reader *r, const char *text, struct common *c)
{
	uint64_t len;
	struct reader own;

	c->encoding = ENCODED_ABSOLUTE;
	if (!*text)
		return 0;
	if (*text != 'z')
		return -ENOEXEC;
	c->augmented = true;
	len = reader_uleb(r);
	own = *r;
	reader_skip(r, len);
	own.end = r->at;
	for (const char *p = text + 1; *p; p++)
		switch (*p) {
		case 'R':
			c->encoding = (uint8_t)reader_fixed(&own, 1);
			break;
		case 'L':
			reader_fixed(&own, 1);
			break;
		case 'P': { /* what it points to is not asked for */
			uint8_t encoding = (uint8_t)reader_fixed(&own, 1);

			reader_pointer(&own, encoding & ENCODED_FORM, 0);
			break;
		}
		case 'S':
			c->is_signal = true;
			break;
		case 'B': /* which key return addresses are signed with */
		case 'G':
			break;
		default: /* the others are behind what is known */
			return own.bad ? -ENOEXEC : 0;
		}
	return own.bad ? -ENOEXEC : 0;
}

static int read_common(const struct record *rec, struct common *c)
{
	struct reader r = {.at = rec->bytes, .end = rec->bytes + rec->len};
	const char *augmentation;
	uint64_t id = reader_fixed(&r, 4), reg;
	uint8_t version = (uint8_t)reader_fixed(&r, 1);

	augmentation = (const char *)r.at;
	if (id != 0 || (version != 1 && version != 3) ||
	    !memchr(r.at, '\0', (size_t)(r.end - r.at)))
		return -ENOEXEC;
	reader_skip(&r, strlen(augmentation) + 1);
	c->code_align = reader_uleb(&r);
	c->data_align = reader_sleb(&r);
	reg = version == 1 ? reader_fixed(&r, 1) : reader_uleb(&r);
	if (reg >= UNWIND_REGS || read_augmentation(&r, augmentation, c) < 0 || r.bad)
		return -ENOEXEC;
	c->return_register = (uint8_t)reg;
	c->program = r;
	c->program_at = rec->offset + (uint64_t)(r.at - rec->bytes);
	return 0;
}

static int read_entry(const struct record *rec, uint64_t address, const struct common *c,
		      struct entry *e)
{
	struct reader r = {.at = rec->bytes + 4, .end = rec->bytes + rec->len};

	e->from = reader_pointer(&r, c->encoding, address + 8);
	e->len = reader_pointer(&r, c->encoding & ENCODED_FORM, 0);
	if (c->augmented)
		reader_skip(&r, reader_uleb(&r));
	e->program = r;
	e->program_at = rec->offset + (uint64_t)(r.at - rec->bytes);
	return r.bad ? -ENOEXEC : 0;
}

int unwind_find(const struct image *im, uint64_t address, struct unwind_row *ret)
{
	struct record entry, common; /* 32 KiB, of which what is there is written */
	struct table t = {0};
	struct common c = {0};
	struct entry e = {0};
	uint64_t at = 0, offset = 0, back;
	int r = find_table(im, &t);

	if (r == 0)
		r = find_line(im, &t, address, &at);
	if (r < 0)
		return r;
	if (!image_offset(im, at, false, &offset) || read_record(im, offset, &entry) < 0)
		return -ENOEXEC;
	back = get_u32(entry.bytes); /* to what is common, from here */
	if (!back || back > entry.offset || read_record(im, entry.offset - back, &common) < 0 ||
	    read_common(&common, &c) < 0 || read_entry(&entry, at, &c, &e) < 0)
		return -ENOEXEC;
	if (address < e.from || address - e.from >= e.len)
		return -ENOENT;
	return rows_make(&c, &e, t.frames, address, ret);
}
