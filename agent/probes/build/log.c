// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/build/log.h"

int build_log_begin(struct build_log *l, const void *data, size_t len, struct error *e)
{
	*l = (struct build_log){.data = data, .len = len, .at = sizeof(l->head)};
	if (len < sizeof(l->head.magic) || memcmp(data, AX_BUILD_MAGIC, sizeof(l->head.magic)) != 0)
		return error_set(e, -EINVAL,
				 "it is no trace of a build: 'ax trace build -o FILE -- COMMAND' "
				 "writes one");
	if (len < sizeof(l->head))
		return error_set(
			e, -EINVAL,
			"it ends in its header, after %zu bytes: the trace was not written "
			"to the end",
			len);
	memcpy(&l->head, data, sizeof(l->head));
	if (l->head.order != AX_BUILD_ORDER)
		return error_set(e, -EINVAL,
				 "it was written on a machine with another byte order: read it "
				 "there");
	if (l->head.version != AX_BUILD_VERSION)
		return error_set(e, -EINVAL,
				 "its format is version %u, and this ax knows version %d: read it "
				 "with the ax that wrote it",
				 l->head.version, AX_BUILD_VERSION);
	return 0;
}

static int malformed(const struct build_log *l, const char *what, struct error *e)
{
	return error_set(e, -EINVAL, "the record at byte %zu is damaged: %s", l->at, what);
}

static int read_piece(const struct build_log *l, const uint8_t *data, size_t len,
		      struct build_record *r, struct error *e)
{
	struct ax_exec_piece p;

	if (len < sizeof(p))
		return malformed(l, "it is too short", e);
	memcpy(&p, data, sizeof(p));
	if (p.len > len - sizeof(p))
		return malformed(l, "its text is longer than the record", e);
	r->pid = p.pid;
	r->piece.offset = p.offset;
	r->piece.what = p.what;
	r->piece.data = (struct build_text){(const char *)data + sizeof(p), p.len};
	return 1;
}

static int read_exec(const struct build_log *l, const uint8_t *data, size_t len,
		     struct build_record *r, struct error *e)
{
	struct ax_build_exec x;

	memcpy(&x, data, sizeof(x));
	if (x.exe_len > len - sizeof(x))
		return malformed(l, "its name is longer than the record", e);
	r->exec.argv_len = x.argv_len;
	r->exec.env_len = x.env_len;
	r->exec.flags = x.flags;
	r->exec.exe = (struct build_text){(const char *)data + sizeof(x), x.exe_len};
	return 1;
}

static int read_path(const struct build_log *l, const uint8_t *data, size_t len,
		     struct build_record *r, struct error *e)
{
	struct ax_build_path *p = &r->path.p;
	const char *at = (const char *)data + sizeof(*p);
	size_t left = len - sizeof(*p);

	memcpy(p, data, sizeof(*p));
	for (size_t i = 0; i < AX_BUILD_TEXTS; i++) {
		if (p->len[i] > left)
			return malformed(l, "its names are longer than the record", e);
		r->path.text[i] = (struct build_text){at, p->len[i]};
		at += p->len[i];
		left -= p->len[i];
	}
	return 1;
}

static size_t least_size(uint32_t type)
{
	switch (type) {
	case AX_BUILD_FORK:
		return sizeof(struct ax_build_fork);
	case AX_BUILD_EXEC:
		return sizeof(struct ax_build_exec);
	case AX_BUILD_EXIT:
		return sizeof(struct ax_build_exit);
	case AX_BUILD_END:
		return sizeof(struct ax_build_end);
	default:
		return sizeof(struct ax_build_path);
	}
}

static int read_event(const struct build_log *l, const uint8_t *data, size_t len,
		      struct build_record *r, struct error *e)
{
	struct ax_build_head h;

	if (len < sizeof(h))
		return malformed(l, "it is too short", e);
	memcpy(&h, data, sizeof(h));
	r->type = h.type;
	r->pid = h.pid;
	r->tid = h.tid;
	if (!h.type || h.type >= AX_BUILD_TYPES)
		return malformed(l, "there is no such kind", e);
	if (len < least_size(h.type))
		return malformed(l, "it is too short for its kind", e);
	data += sizeof(h);
	switch (h.type) {
	case AX_BUILD_FORK:
		memcpy(&r->child, data, sizeof(r->child));
		return 1;
	case AX_BUILD_EXIT:
		memcpy(&r->status, data, sizeof(r->status));
		return 1;
	case AX_BUILD_END:
		memcpy(&r->end, data - sizeof(h), sizeof(r->end));
		return 1;
	case AX_BUILD_EXEC:
		return read_exec(l, data - sizeof(h), len, r, e);
	default:
		return read_path(l, data - sizeof(h), len, r, e);
	}
}

int build_log_next(struct build_log *l, struct build_record *ret, struct error *e)
{
	const uint8_t *data = l->data + l->at;
	size_t left = l->len - l->at;
	uint32_t len;
	int r;

	*ret = (struct build_record){0};
	if (!left)
		return 0;
	memcpy(&len, data, left < sizeof(len) ? left : sizeof(len));
	if (left < sizeof(len) || len > left - sizeof(len))
		return error_set(e, -ENODATA,
				 "it ends within the record at byte %zu: ax trace build did not "
				 "come to its end, or the file is not whole",
				 l->at);
	if (len < sizeof(ret->time_ns))
		return malformed(l, "it is too short", e);
	data += sizeof(len);
	memcpy(&ret->time_ns, data, sizeof(ret->time_ns));
	r = ret->time_ns ? read_event(l, data, len, ret, e) : read_piece(l, data, len, ret, e);
	if (r == 1)
		l->at += sizeof(len) + len;
	return r;
}
