// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads pieces of ELF files whose every number may be a lie. */
#include <sys/stat.h>

#include "probes/elf/image.h"

int image_read(const struct image *im, uint64_t offset, void *buf, size_t len)
{
	uint8_t *to = buf;

	if (offset > im->size || len > im->size - offset)
		return -ENOEXEC;
	if (im->mem) {
		memcpy(to, im->mem + offset, len);
		return 0;
	}
	while (len) {
		ssize_t n = pread(im->fd, to, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) /* it became shorter */
			return -ENOEXEC;
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int image_load(const struct image *im, uint64_t offset, uint64_t len, void **ret)
{
	autofree char *buf = NULL;
	int r;

	if (offset > im->size || len > im->size - offset)
		return -ENOEXEC;
	if (len > IMAGE_LOAD_MAX)
		return -EFBIG;
	buf = malloc(len + 1);
	if (!buf)
		return -ENOMEM;
	r = image_read(im, offset, buf, len);
	if (r < 0)
		return r;
	buf[len] = 0;
	*ret = take_ptr(&buf);
	return 0;
}

static int read_segments(struct image *im, const Elf64_Ehdr *h)
{
	void *p;
	int r;

	if (!h->e_phnum)
		return 0;
	/* programs have about a dozen; every look-up goes through them */
	if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum > 512)
		return -ENOEXEC;
	r = image_load(im, h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr), &p);
	if (r < 0)
		return r;
	im->segments = p;
	im->n_segments = h->e_phnum;
	return 0;
}

static int read_sections(struct image *im, const Elf64_Ehdr *h)
{
	uint64_t n = h->e_shnum, index = h->e_shstrndx;
	Elf64_Shdr first, *names;
	void *p;
	int r;

	if (!h->e_shoff)
		return 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr))
		return -ENOEXEC;
	r = image_read(im, h->e_shoff, &first, sizeof(first));
	if (r < 0)
		return r;
	if (!n)
		n = first.sh_size;
	if (index == SHN_XINDEX)
		index = first.sh_link;
	if (n > 1u << 20 || index >= n)
		return -ENOEXEC;
	r = image_load(im, h->e_shoff, n * sizeof(Elf64_Shdr), &p);
	if (r < 0)
		return r;
	im->sections = p;
	im->n_sections = n;
	names = &im->sections[index];
	if (names->sh_type != SHT_STRTAB)
		return -ENOEXEC;
	r = image_load(im, names->sh_offset, names->sh_size, &p);
	if (r < 0)
		return r;
	im->names = p;
	im->names_len = names->sh_size;
	return 0;
}

static int not_elf(const struct image *im, const char *path, struct error *e)
{
	char first[64] = "";
	size_t n = im->size < sizeof(first) - 1 ? im->size : sizeof(first) - 1;

	if (!image_read(im, 0, first, n) && starts_with(first, "#!")) {
		first[strcspn(first, "\n")] = 0;
		return error_set(e, -ENOEXEC,
				 "%s is a script, not a program: name its interpreter (%s)", path,
				 first + 2 + strspn(first + 2, " "));
	}
	return error_set(e, -ENOEXEC, "%s is no ELF file: name a program or a shared library",
			 path);
}

static int read_header(struct image *im, const char *path, struct error *e)
{
	Elf64_Ehdr h;
	int r;

	if (im->size < EI_NIDENT || image_read(im, 0, h.e_ident, EI_NIDENT) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return not_elf(im, path, e);
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
		return error_set(e, -ENOEXEC,
				 "%s is a %s file; only 64-bit little-endian ones can be probed",
				 path, h.e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "big-endian");
	r = image_read(im, 0, &h, sizeof(h));
	if (!r) {
		im->machine = h.e_machine;
		im->type = h.e_type;
		r = read_segments(im, &h);
	}
	/* some tools remove all sections, which the kernel does not need; broken ones are as none
	 */
	if (!r && read_sections(im, &h) == -ENOMEM)
		r = -ENOMEM;
	if (r < 0)
		return error_set(e, r, "the headers of %s cannot be read: %s", path, strerror(-r));
	if (!im->names)
		im->n_sections = 0;
	return 0;
}

int image_open(struct image *im, int fd, const char *path, struct error *e)
{
	struct stat st;

	*im = (struct image){.fd = fd};
	if (fstat(fd, &st))
		return error_set(e, -errno, "%s cannot be read: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, -EINVAL, "%s is no regular file: name a program or a library",
				 path);
	im->size = (uint64_t)st.st_size;
	return read_header(im, path, e);
}

int image_open_memory(struct image *im, uint8_t *mem, size_t size, const char *path,
		      struct error *e)
{
	*im = (struct image){.fd = -1, .mem = mem, .size = size};
	return read_header(im, path, e);
}

void image_close(struct image *im)
{
	close_fd(&im->fd);
	free(im->mem);
	free(im->segments);
	free(im->sections);
	free(im->names);
	*im = (struct image){.fd = -1};
}

const Elf64_Shdr *image_section(const struct image *im, const char *name)
{
	for (size_t i = 0; i < im->n_sections; i++)
		if (im->sections[i].sh_name < im->names_len &&
		    streq(im->names + im->sections[i].sh_name, name))
			return &im->sections[i];
	return NULL;
}

int image_section_load(const struct image *im, const Elf64_Shdr *s, void **ret, size_t *len)
{
	if (s->sh_type == SHT_NOBITS || (s->sh_flags & SHF_COMPRESSED))
		return -ENOEXEC;
	*len = s->sh_size;
	return image_load(im, s->sh_offset, s->sh_size, ret);
}

bool image_offset(const struct image *im, uint64_t address, bool executable, uint64_t *offset)
{
	for (size_t i = 0; i < im->n_segments; i++) {
		const Elf64_Phdr *p = &im->segments[i];

		if (p->p_type != PT_LOAD || (executable && !(p->p_flags & PF_X)) ||
		    address < p->p_vaddr || address - p->p_vaddr >= p->p_filesz)
			continue;
		*offset = p->p_offset + (address - p->p_vaddr);
		return *offset >= p->p_offset && *offset < im->size;
	}
	return false;
}

bool image_address(const struct image *im, uint64_t offset, uint64_t *address)
{
	const Elf64_Phdr *found = NULL;

	/* a page of the file can be in two segments; code is what is asked for */
	for (size_t i = 0; i < im->n_segments; i++) {
		const Elf64_Phdr *p = &im->segments[i];

		if (p->p_type == PT_LOAD && offset >= p->p_offset &&
		    offset - p->p_offset < p->p_filesz && (!found || (p->p_flags & PF_X)))
			found = p;
	}
	if (!found)
		return false;
	*address = found->p_vaddr + (offset - found->p_offset);
	return true;
}

bool image_readable(const struct image *im, uint64_t address, uint64_t len)
{
	for (size_t i = 0; i < im->n_segments; i++) {
		const Elf64_Phdr *p = &im->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_R) && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_memsz && len <= p->p_memsz - (address - p->p_vaddr))
			return true;
	}
	return false;
}

static size_t aligned4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

bool note_next(const uint8_t *notes, size_t len, size_t *at, struct note *ret)
{
	size_t left, name_len, desc_len;
	const uint8_t *p;

	if (*at > len || len - *at < sizeof(Elf64_Nhdr))
		return false;
	p = notes + *at;
	left = len - *at - sizeof(Elf64_Nhdr);
	name_len = get_u32(p);
	desc_len = get_u32(p + 4);
	if (name_len > left || aligned4(name_len) > left || desc_len > left - aligned4(name_len))
		return false;
	ret->type = get_u32(p + 8);
	ret->name = (const char *)p + sizeof(Elf64_Nhdr);
	ret->name_len = name_len;
	ret->desc = p + sizeof(Elf64_Nhdr) + aligned4(name_len);
	ret->desc_len = desc_len;
	left -= aligned4(name_len);
	*at = len - left + (aligned4(desc_len) < left ? aligned4(desc_len) : left);
	return true;
}

static size_t build_id_of(const struct image *im, uint64_t offset, uint64_t size, uint8_t *id,
			  size_t max)
{
	autofree void *notes = NULL;
	struct note n;
	size_t at = 0;

	/* notes of programs take some hundred bytes */
	if (size > 1u << 20 || image_load(im, offset, size, &notes))
		return 0;
	while (note_next(notes, size, &at, &n)) {
		if (n.type != NT_GNU_BUILD_ID || n.name_len != 4 || memcmp(n.name, "GNU", 4) != 0)
			continue;
		if (n.desc_len < 2 || n.desc_len > max)
			return 0;
		memcpy(id, n.desc, n.desc_len);
		return n.desc_len;
	}
	return 0;
}

size_t image_build_id(const struct image *im, uint8_t *id, size_t max)
{
	const Elf64_Shdr *s = image_section(im, ".note.gnu.build-id");
	size_t n = 0;

	/* the segments of a debug file are not in it, but its notes are */
	if (s && s->sh_type == SHT_NOTE)
		return build_id_of(im, s->sh_offset, s->sh_size, id, max);
	for (size_t i = 0; !n && i < im->n_segments; i++)
		if (im->segments[i].p_type == PT_NOTE)
			n = build_id_of(im, im->segments[i].p_offset, im->segments[i].p_filesz, id,
					max);
	return n;
}
