// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The errno of a thread that waits. Where it is, its C library tells by __errno_location(): a few
 * instructions on the thread's own pointer, which are done here, so that the thread has to execute
 * nothing for it.
 */
#include "probes/elf/binary.h"
#include "probes/place/place.h"
#include "tools/trace/step/change.h"

#define INSTRUCTIONS_MAX 16

#if defined(__x86_64__)
#define FS_WORD 21 /* of what ptrace tells: the thread's pointer */

/* --- where the function is --- */

struct search {
	int pid;
	const char *program; /* its path */
	struct change_errno *ret;
};

static int on_function(void *arg, const struct symbol *s)
{
	*(uint64_t *)arg = s->offset;
	return 1;
}

/* A C library, or a program that has its own inside. */
static bool may_have_it(const struct search *s, const char *path)
{
	static const char *const names[] = {"libc.so", "libc-", "libc.musl", "ld-musl", NULL};
	const char *name = strrchr(path, '/');

	for (size_t i = 0; name && names[i]; i++)
		if (starts_with(name + 1, names[i]))
			return true;
	return streq(path, s->program);
}

static int on_mapping(void *arg, const struct step_mapping *m)
{
	CLEANUP(binary_closep) struct binary *b = NULL;
	struct search *s = arg;
	struct error e = {0};
	uint64_t offset = 0;
	size_t n = sizeof(s->ret->code);

	if (!m->executable || !may_have_it(s, m->path) ||
	    binary_open(m->path, s->pid, &b, &e) < 0 ||
	    binary_functions(b, "__errno_location", on_function, &offset, &e) < 0 ||
	    offset < m->offset || offset - m->offset >= m->to - m->from ||
	    place_bytes(b, offset, s->ret->code, &n) < 0)
		return 0;
	s->ret->n = n;
	s->ret->address = m->from + (offset - m->offset);
	return 1;
}

static bool find_function(int pid, struct change_errno *ret)
{
	char path[64], program[sizeof(((struct step_mapping *)0)->path)] = "";
	struct search s = {pid, program, ret};

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (readlink(path, program, sizeof(program) - 1) < 0)
		*program = 0;
	*ret = (struct change_errno){.pid = pid};
	return step_mappings(pid, on_mapping, &s) > 0;
}

/* --- what it would return --- */

enum action { NOTHING, SET, ADD, SUBTRACT, LOAD, LOAD_OWN, ADD_OWN, RETURN };
/* All forms that glibc and musl have, built with and without frame pointers. */
static const struct form {
	uint8_t n, bytes[5];
	uint8_t operand; /* bytes of it behind those, with a sign */
	enum action action;
} forms[] = {
	{4, {0xf3, 0x0f, 0x1e, 0xfa}, 0, NOTHING},	  /* endbr64 */
	{1, {0x55}, 0, NOTHING},			  /* push %rbp */
	{3, {0x48, 0x89, 0xe5}, 0, NOTHING},		  /* mov %rsp,%rbp */
	{1, {0x5d}, 0, NOTHING},			  /* pop %rbp */
	{1, {0xc9}, 0, NOTHING},			  /* leave */
	{3, {0x48, 0xc7, 0xc0}, 4, SET},		  /* mov $N,%rax */
	{2, {0x48, 0x05}, 4, ADD},			  /* add $N,%rax */
	{3, {0x48, 0x83, 0xc0}, 1, ADD},		  /* the same */
	{2, {0x48, 0x2d}, 4, SUBTRACT},			  /* sub $N,%rax */
	{3, {0x48, 0x83, 0xe8}, 1, SUBTRACT},		  /* the same */
	{3, {0x48, 0x8d, 0x80}, 4, ADD},		  /* lea N(%rax),%rax */
	{3, {0x48, 0x8d, 0x40}, 1, ADD},		  /* the same */
	{3, {0x48, 0x8b, 0x05}, 4, LOAD},		  /* mov N(%rip),%rax */
	{5, {0x64, 0x48, 0x8b, 0x04, 0x25}, 4, LOAD_OWN}, /* mov %fs:N,%rax */
	{5, {0x64, 0x48, 0x03, 0x04, 0x25}, 4, ADD_OWN},  /* add %fs:N,%rax */
	{1, {0xc3}, 0, RETURN},
	{2, {0xf3, 0xc3}, 0, RETURN},
};

static const struct form *form_at(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (n >= (size_t)forms[i].n + forms[i].operand &&
		    !memcmp(code, forms[i].bytes, forms[i].n))
			return &forms[i];
	return NULL;
}

static uint64_t operand_of(const struct form *f, const uint8_t *code)
{
	int32_t wide = 0;

	if (f->operand == 1)
		return (uint64_t)(int8_t)code[f->n];
	memcpy(&wide, code + f->n, f->operand);
	return (uint64_t)wide;
}

static int run_function(const struct change_errno *c, int tid, uint64_t own, uint64_t *ret)
{
	uint64_t at = 0, ax = 0, word;

	for (int i = 0; i < INSTRUCTIONS_MAX; i++) {
		const struct form *f = form_at(c->code + at, c->n - at);
		uint64_t operand = f ? operand_of(f, c->code + at) : 0;

		if (!f)
			return -ENOTSUP;
		at += f->n + f->operand;
		switch (f->action) {
		case NOTHING:
			break;
		case SET:
			ax = operand;
			break;
		case ADD:
			ax += operand;
			break;
		case SUBTRACT:
			ax -= operand;
			break;
		case LOAD:
		case LOAD_OWN:
		case ADD_OWN:
			operand += f->action == LOAD ? c->address + at : own;
			if (step_read(tid, operand, &word, sizeof(word)) < 0)
				return -EFAULT;
			ax = f->action == ADD_OWN ? ax + word : word;
			break;
		case RETURN:
			*ret = ax;
			return 0;
		}
	}
	return -ENOTSUP;
}

const char *change_find_errno(struct change_errno *c, int pid, int tid, uint64_t *address)
{
	struct step_registers r;

	if (c->pid != pid && !find_function(pid, c)) {
		c->pid = 0;
		return "errno cannot be set, since no C library of the process has a function "
		       "__errno_location that could be found";
	}
	if (step_get_registers(tid, &r) < 0 || run_function(c, tid, r.v[FS_WORD], address) < 0)
		return "errno cannot be set, since the C library's __errno_location is none of "
		       "those that are known";
	return NULL;
}
#else
const char *change_find_errno(struct change_errno *c, int pid, int tid, uint64_t *address)
{
	(void)c;
	(void)pid;
	(void)tid;
	(void)address;
	return "errno cannot be set on this kind of machine";
}
#endif

/* --- names --- */

#define ERRNO_MAX 4095

int change_errno_of(const char *name)
{
	for (int i = 1; i <= ERRNO_MAX; i++) {
		const char *other = strerrorname_np(i);

		if (other && streq(other, name))
			return i;
	}
	return 0;
}

const char *change_errno_name(int number, char buf[CHANGE_ERRNO_TEXT])
{
	const char *name = number > 0 ? strerrorname_np(number) : NULL;

	if (name)
		return name;
	snprintf(buf, CHANGE_ERRNO_TEXT, "%d", number);
	return buf;
}
