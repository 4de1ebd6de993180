// SPDX-License-Identifier: GPL-2.0-or-later
/* An ELF file to put probes into. */
#include "probes/elf/priv.h"

static bool detect_go(const struct image *im)
{
	static const char *const sections[] = {".go.buildinfo", ".gopclntab",
					       ".data.rel.ro.gopclntab", ".note.go.buildid"};

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (image_section(im, sections[i]))
			return true;
	return false;
}

/* A debug file has the headers of its program, and says that the code is not there. */
static bool has_code(const struct image *im)
{
	bool mapped = false, absent = false;

	for (size_t i = 0; i < im->n_segments; i++)
		mapped |= im->segments[i].p_type == PT_LOAD && (im->segments[i].p_flags & PF_X);
	for (size_t i = 0; i < im->n_sections; i++) {
		const Elf64_Shdr *s = &im->sections[i];

		if (!(s->sh_flags & SHF_EXECINSTR))
			continue;
		if (s->sh_type != SHT_NOBITS)
			return mapped;
		absent = true;
	}
	return mapped && !absent;
}

static int check_kind(const struct binary *b, struct error *e)
{
	const struct image *im = &b->image;

	if (im->type != ET_EXEC && im->type != ET_DYN)
		return error_set(e, -ENOEXEC,
				 "%s is %s, which no process runs: name a program or a shared "
				 "library",
				 b->path,
				 im->type == ET_REL    ? "an object file"
				 : im->type == ET_CORE ? "a core dump"
						       : "an ELF file of an unknown type");
	if (has_code(im))
		return 0;
	return error_set(e, -ENOEXEC, "%s has no code: is it a debug file?", b->path);
}

static int open_file(struct binary *b, int fd, struct error *e)
{
	int r = image_open(&b->image, fd, b->path, e);

	if (!r)
		r = check_kind(b, e);
	if (!r)
		b->go = detect_go(&b->image);
	return r;
}

int binary_open(const char *name, int pid, struct binary **ret, struct error *e)
{
	struct binary *b CLEANUP(binary_closep) = calloc(1, sizeof(*b));
	autoclose int fd = -1;
	int r;

	if (!b)
		return error_set(e, -ENOMEM, "out of memory");
	b->image.fd = -1;
	r = binary_find(name ? name : "", pid, &b->path, &b->root, &fd, e);
	if (!r)
		r = open_file(b, take_fd(&fd), e);
	if (r < 0)
		return r;
	*ret = take_ptr(&b);
	return 0;
}

int binary_open_fd(int fd_in, const char *path, const char *root, struct binary **ret,
		   struct error *e)
{
	autoclose int fd = fd_in;
	struct binary *b CLEANUP(binary_closep) = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return error_set(e, -ENOMEM, "out of memory");
	b->image.fd = -1;
	b->path = strdup(path);
	b->root = strdup(root);
	if (!b->path || !b->root)
		return error_set(e, -ENOMEM, "out of memory");
	r = open_file(b, take_fd(&fd), e);
	if (r < 0)
		return r;
	*ret = take_ptr(&b);
	return 0;
}

int binary_look_in(struct binary *b, const char *path)
{
	free(b->look_in);
	b->look_in = strdup(path);
	return b->look_in ? 0 : -ENOMEM;
}

void binary_close(struct binary *b)
{
	image_close(&b->image);
	for (size_t i = 0; i < b->n_functions; i++)
		free(b->functions[i].demangled);
	for (size_t i = 0; i < b->n_texts; i++)
		free(b->texts[i]);
	for (size_t i = 0; i < TARGETS_BLOCKS; i++)
		free(b->targets[i].v);
	free(b->functions);
	free(b->imports);
	free(b->texts);
	free(b->path);
	free(b->root);
	free(b->look_in);
	free(b);
}

const char *binary_path(const struct binary *b)
{
	return b->path;
}

int binary_fd(const struct binary *b)
{
	return b->image.fd;
}

bool binary_is_go(const struct binary *b)
{
	return b->go;
}

uint16_t binary_machine(const struct binary *b)
{
	return b->image.machine;
}

bool binary_may_read(struct binary *b, uint64_t len)
{
	const uint64_t most = 4 * b->image.size + (64u << 20);

	b->read = len < most - b->read ? b->read + len : most;
	return b->read < most;
}
