// SPDX-License-Identifier: GPL-2.0-or-later
/* The names that were taken out of a file: .gnu_debugdata, or a file of debug data beside it. */
#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <sys/stat.h>
#include <zlib.h>

#include "probes/elf/priv.h"

#define DEBUG_DIR      "/usr/lib/debug"
#define UNPACKED_MAX   (32u << 20)
#define UNPACK_MEM_MAX (128u << 20)
#define BUILD_ID_MAX   64

static int unpack_step(lzma_stream *s, uint8_t **buf, size_t *size)
{
	lzma_ret r;

	do {
		if (!s->avail_out) {
			size_t more = *size ? *size * 2 : 1u << 16;
			uint8_t *bigger = more <= UNPACKED_MAX ? realloc(*buf, more) : NULL;

			if (!bigger)
				return more <= UNPACKED_MAX ? -ENOMEM : -EFBIG;
			s->next_out = bigger + *size;
			s->avail_out = more - *size;
			*buf = bigger;
			*size = more;
		}
		r = lzma_code(s, LZMA_FINISH);
	} while (r == LZMA_OK);
	return r == LZMA_STREAM_END ? 0 : -ENOEXEC;
}

static int unpack(const uint8_t *in, size_t in_len, uint8_t **ret, size_t *len)
{
	lzma_stream s = LZMA_STREAM_INIT;
	autofree uint8_t *buf = NULL;
	size_t size = 0;
	int r;

	if (lzma_stream_decoder(&s, UNPACK_MEM_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	s.next_in = in;
	s.avail_in = in_len;
	r = unpack_step(&s, &buf, &size);
	*len = (size_t)s.total_out;
	lzma_end(&s);
	if (!r)
		*ret = take_ptr(&buf);
	return r;
}

/* MiniDebugInfo: an ELF file with little but a .symtab, packed by xz. */
static int mini_symbols(struct binary *b)
{
	const Elf64_Shdr *s = image_section(&b->image, ".gnu_debugdata");
	struct image im CLEANUP(image_close) = {.fd = -1};
	autofree void *packed = NULL;
	uint8_t *mem = NULL;
	struct error e = {0};
	size_t len;
	int r;

	if (!s)
		return -ENOENT;
	r = image_section_load(&b->image, s, &packed, &len);
	if (!r)
		r = unpack(packed, len, &mem, &len);
	if (!r)
		r = image_open_memory(&im, mem, len, b->path, &e);
	return r ? r : symbols_of_image(b, &im);
}

static int open_image(const char *root, const char *path, struct image *im)
{
	char full[PATH_MAX + 64];
	struct error e = {0};
	int fd;

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : image_open(im, fd, full, &e);
}

/* In the process' own file system, else in ours. */
static int open_debug(const struct binary *b, const char *path, struct image *im)
{
	int r = open_image(b->root, path, im);

	if (r < 0 && *b->root) {
		image_close(im);
		r = open_image("", path, im);
	}
	return r;
}

static bool same_build(const struct image *im, const uint8_t *id, size_t n)
{
	uint8_t other[BUILD_ID_MAX];

	return n && image_build_id(im, other, sizeof(other)) == n && !memcmp(id, other, n);
}

static int by_build_id(struct binary *b, const uint8_t *id, size_t n)
{
	struct image im CLEANUP(image_close) = {.fd = -1};
	char path[sizeof(DEBUG_DIR) + 2 * BUILD_ID_MAX + 32];
	int len, r;

	if (!n)
		return -ENOENT;
	len = snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%02x/", id[0]);
	for (size_t i = 1; i < n; i++)
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%02x", id[i]);
	snprintf(path + len, sizeof(path) - (size_t)len, ".debug");
	r = open_debug(b, path, &im);
	if (!r && (im.machine != b->image.machine || !same_build(&im, id, n)))
		r = -ENOENT;
	return r ? r : symbols_of_image(b, &im);
}

static bool same_crc(const struct image *im, uint32_t want)
{
	uint8_t buf[1 << 16];
	uLong crc = crc32(0, NULL, 0);

	/* reading some gigabytes takes longer than anyone waits for names */
	if (im->size > 1u << 30)
		return false;
	for (uint64_t at = 0; at < im->size;) {
		size_t n = im->size - at < sizeof(buf) ? im->size - at : sizeof(buf);

		if (image_read(im, at, buf, n))
			return false;
		crc = crc32(crc, buf, (uInt)n);
		at += n;
	}
	return crc == want;
}

static int try_link(struct binary *b, const char *path, uint32_t crc, const uint8_t *id, size_t n)
{
	struct image im CLEANUP(image_close) = {.fd = -1};
	int r = open_debug(b, path, &im);

	if (r < 0)
		return r;
	if (im.machine != b->image.machine || (!same_build(&im, id, n) && !same_crc(&im, crc)))
		return -ENOENT;
	return symbols_of_image(b, &im);
}

/* .gnu_debuglink: a file's name, padded to four bytes, and the CRC of its content. */
static int by_link(struct binary *b, const uint8_t *id, size_t n)
{
	const Elf64_Shdr *s = image_section(&b->image, ".gnu_debuglink");
	autofree void *link = NULL;
	char path[PATH_MAX + NAME_MAX + 64];
	const char *dir = b->path, *name;
	uint32_t crc;
	size_t len, at;
	int dir_len, r;

	if (!s || s->sh_size > PATH_MAX || image_section_load(&b->image, s, &link, &len))
		return -ENOENT;
	name = link;
	at = (strlen(name) + 4) & ~(size_t)3;
	if (!*name || strchr(name, '/') || streq(name, "..") || at + 4 > len)
		return -ENOENT;
	crc = get_u32((const uint8_t *)link + at);
	if (*b->root && starts_with(dir, b->root))
		dir += strlen(b->root);
	dir_len = (int)(strrchr(dir, '/') ? strrchr(dir, '/') - dir : 0);
	snprintf(path, sizeof(path), "%.*s/%s", dir_len, dir, name);
	r = try_link(b, path, crc, id, n);
	if (r < 0) {
		snprintf(path, sizeof(path), "%.*s/.debug/%s", dir_len, dir, name);
		r = try_link(b, path, crc, id, n);
	}
	if (r < 0) {
		snprintf(path, sizeof(path), DEBUG_DIR "%.*s/%s", dir_len, dir, name);
		r = try_link(b, path, crc, id, n);
	}
	return r;
}

/* Who names a file knows better than where files lie. One of another build has other addresses. */
static int by_name(struct binary *b, const uint8_t *id, size_t n)
{
	struct image im CLEANUP(image_close) = {.fd = -1};
	int r = b->look_in ? open_image("", b->look_in, &im) : -ENOENT;

	if (!r && (im.machine != b->image.machine || !same_build(&im, id, n)))
		r = -ENOENT;
	return r ? r : symbols_of_image(b, &im);
}

int binary_debug_symbols(struct binary *b)
{
	uint8_t id[BUILD_ID_MAX];
	size_t n = image_build_id(&b->image, id, sizeof(id));
	int r = by_name(b, id, n);

	if (r < 0 && r != -ENOMEM)
		r = by_build_id(b, id, n);
	if (r < 0 && r != -ENOMEM)
		r = by_link(b, id, n);
	if (r < 0 && r != -ENOMEM)
		r = mini_symbols(b);
	return r == -ENOMEM ? r : 0; /* none, or broken ones: then there are no more names */
}
