// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of registers, and where the kernel's struct pt_regs has them. */
#include <elf.h>

#include "probes/fetch/fetch.h"

/* "xmm0" and so on: of so many */
static int vector_find(const char *name, const char *prefix, unsigned long n,
		       struct fetch_register *ret)
{
	size_t len = strlen(prefix);
	unsigned long i;
	char *end;

	if (strncmp(name, prefix, len) != 0 || name[len] < '0' || name[len] > '9')
		return -ENOENT;
	i = strtoul(name + len, &end, 10);
	if (i >= n || *end || (name[len] == '0' && name[len + 1]))
		return -ENOENT;
	*ret = (struct fetch_register){.offset = FETCH_VECTORS_AT + (uint32_t)i * 16, .size = 8};
	return 0;
}

/* --- x86-64 --- */

#define X86_IP	  128
#define X86_FLAGS 144
#define X86_SP	  152

/* The eight that have had names of their own since 16 bits. */
static const struct {
	char name[3];
	uint8_t offset;
	bool halves; /* its second byte has a name too: %ah */
} x86_old[] = {
	{"ax", 80, true},   {"bx", 40, true},	{"cx", 88, true},  {"dx", 96, true},
	{"si", 104, false}, {"di", 112, false}, {"bp", 32, false}, {"sp", X86_SP, false},
};
static const uint8_t x86_numbered[] = {72, 64, 56, 48, 24, 16, 8, 0}; /* r8 ... r15 */

static int found(uint32_t offset, uint8_t size, uint8_t shift, struct fetch_register *ret)
{
	*ret = (struct fetch_register){.offset = offset, .size = size, .shift = shift};
	return 0;
}

static int x86_parts(const char *name, size_t i, struct fetch_register *ret)
{
	const char *old = x86_old[i].name;
	uint8_t offset = x86_old[i].offset;

	if (streq(name, old)) /* as ftrace names the whole */
		return found(offset, 8, 0, ret);
	if ((name[0] == 'r' || name[0] == 'e') && streq(name + 1, old))
		return found(offset, name[0] == 'r' ? 8 : 4, 0, ret);
	if (x86_old[i].halves && name[0] == old[0] && strlen(name) == 2) {
		if (name[1] == 'l')
			return found(offset, 1, 0, ret);
		if (name[1] == 'h')
			return found(offset, 1, 8, ret);
	}
	if (!x86_old[i].halves && strlen(name) == 3 && starts_with(name, old) && name[2] == 'l')
		return found(offset, 1, 0, ret);
	return -ENOENT;
}

static int x86_number(const char *name, struct fetch_register *ret)
{
	char *end;
	unsigned long n;
	uint8_t size;

	if (name[0] != 'r' || name[1] < '0' || name[1] > '9')
		return -ENOENT;
	n = strtoul(name + 1, &end, 10);
	if (n < 8 || n > 15 || (*end && end[1]))
		return -ENOENT;
	switch (*end) {
	case '\0':
		size = 8;
		break;
	case 'd':
		size = 4;
		break;
	case 'w':
		size = 2;
		break;
	case 'b':
	case 'l':
		size = 1;
		break;
	default:
		return -ENOENT;
	}
	return found(x86_numbered[n - 8], size, 0, ret);
}

static int x86_find(const char *name, struct fetch_register *ret)
{
	if (streq(name, "ip") || streq(name, "rip"))
		return found(X86_IP, 8, 0, ret);
	if (streq(name, "flags") || streq(name, "eflags") || streq(name, "rflags"))
		return found(X86_FLAGS, 8, 0, ret);
	for (size_t i = 0; i < ARRAY_SIZE(x86_old); i++)
		if (!x86_parts(name, i, ret))
			return 0;
	if (!vector_find(name, "xmm", 16, ret))
		return 0;
	return x86_number(name, ret);
}

/* --- arm64 --- */

static int arm64_find(const char *name, struct fetch_register *ret)
{
	char *end;
	unsigned long n;

	if (streq(name, "sp"))
		return found(248, 8, 0, ret);
	if (streq(name, "pc") || streq(name, "ip"))
		return found(256, 8, 0, ret);
	if (streq(name, "pstate"))
		return found(264, 8, 0, ret);
	if (streq(name, "lr"))
		return found(240, 8, 0, ret);
	if (streq(name, "fp"))
		return found(232, 8, 0, ret);
	if (!vector_find(name, "v", 32, ret))
		return 0;
	if ((name[0] != 'x' && name[0] != 'w') || name[1] < '0' || name[1] > '9')
		return -ENOENT;
	n = strtoul(name + 1, &end, 10);
	if (n > 30 || *end)
		return -ENOENT;
	return found((uint32_t)n * 8, name[0] == 'x' ? 8 : 4, 0, ret);
}

int fetch_register_find(uint16_t machine, const char *name, struct fetch_register *ret)
{
	return machine == EM_AARCH64 ? arm64_find(name, ret) : x86_find(name, ret);
}
