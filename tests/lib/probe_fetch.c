// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/probe_fetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#ifdef __x86_64__
#define BUFFER_SHOWN 64 /* bytes */

static union {
	struct ax_probe_record record;
	char bytes[16384];
} room;

static int read_stopped(void *arg, uint64_t address, void *to, size_t len)
{
	const struct stopped *s = arg;
	struct iovec own = {.iov_base = to, .iov_len = len}, its = {.iov_len = len};

	memcpy(&its.iov_base, &address, sizeof(address));
	return process_vm_readv(s->pid, &own, 1, &its, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

/* Between an entry and its return the kernel keeps values: here they are constants. */
static void evaluate(const struct fetch_run *r, const struct fetch *f)
{
	struct stopped s = *r->s;
	const struct fetch_thread t = {.registers = &s.regs,
				       .n_registers = sizeof(s.regs),
				       .pid = (uint32_t)s.pid,
				       .tid = (uint32_t)s.pid,
				       .read = read_stopped,
				       .arg = &s};

	for (size_t i = 0; i < f->n_ops; i++)
		if (f->ops[i].code == AX_CODE_SAVED) {
			f->ops[i].code = AX_CODE_CONST;
			f->ops[i].value = r->saved[f->ops[i].value];
		}
	assert_true(fetch_evaluate(f, &t, &room.record, sizeof(room)) > 0);
}

void run_entry(struct fetch_run *r, const struct fetch *f)
{
	const struct fetch kept = {
		.ops = f->entry_ops, .n_ops = f->n_entry_ops, .n_values = f->n_kept};

	for (size_t i = 0; i < f->n_entry_ops; i++)
		if (f->entry_ops[i].flags & AX_OP_KEEP)
			f->entry_ops[i].flags ^= AX_OP_KEEP | AX_OP_STORE;
	assert_true(f->n_kept <= AX_PROBE_SAVED);
	evaluate(r, &kept);
	memcpy(r->saved, room.record.values, f->n_kept * sizeof(r->saved[0]));
}

static void show(struct fetch_run *r, const struct fetch_shown *s, uint64_t v, bool fault)
{
	size_t len = strlen(r->text), size = sizeof(r->text) - len, n;
	enum value_type type = s ? s->type : VALUE_STRING;
	const char *bytes = room.bytes + AX_BYTES_OFF(v);
	char *to = r->text + len;

	n = (size_t)snprintf(to, size, "%s%s=", len ? " " : "", s ? s->name : "hidden");
	to += n;
	size -= n;
	if (fault)
		snprintf(to, size, "?");
	else if (type == VALUE_FLOAT || type == VALUE_HEX)
		snprintf(to, size, "0x%llx", (unsigned long long)v);
	else if (type == VALUE_SIGNED)
		snprintf(to, size, "%lld", (long long)v);
	else if (type == VALUE_CHAR)
		snprintf(to, size, "'%c'", (int)v);
	else if (type == VALUE_STRING)
		snprintf(to, size, "\"%.*s\"", (int)AX_BYTES_LEN(v), bytes);
	else if (type == VALUE_BUFFER)
		for (n = 0; n < AX_BYTES_LEN(v) && n < BUFFER_SHOWN; n++)
			snprintf(to + 2 * n, size - 2 * n, "%02x", (uint8_t)bytes[n]);
	else
		snprintf(to, size, "%llu", (unsigned long long)v);
}

void run_values(struct fetch_run *r, const struct fetch *f)
{
	evaluate(r, f);
	for (size_t i = 0; i < f->n_ops; i++) {
		uint8_t to = f->ops[i].to;

		if (f->ops[i].flags & AX_OP_STORE)
			show(r, to < f->n_values ? &f->values[to] : NULL, room.record.values[to],
			     room.record.faults & 1u << to);
	}
}
#endif
