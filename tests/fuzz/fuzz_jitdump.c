// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as a jitdump: pieces lie in the file, in the order of their times, and each is found
 * where it is said to be. */
#include "probes/jit/jitdump.h"
#include "tests/lib/perf_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_piece(const struct jitdump *d, const struct jitdump_code *c, size_t size)
{
	const struct jitdump_code *found;
	uint8_t buf[64];
	char name[16];
	size_t n;

	check(c->size && c->offset <= size && c->size <= size - c->offset);
	found = jitdump_find(d, c->pid, c->address, c->time_ns);
	check(found && found->pid == c->pid && found->time_ns <= c->time_ns);
	n = jitdump_read(d, c, c->address, buf, sizeof(buf));
	check(n == (c->size < sizeof(buf) ? c->size : sizeof(buf)));
	check(jitdump_read(d, c, c->address + c->size - 1, buf, sizeof(buf)) == 1);
	check(jitdump_read(d, c, c->address + c->size, buf, sizeof(buf)) == 0);
	check(jitdump_read(d, c, c->address - 1, buf, sizeof(buf)) == 0);
	jitdump_name(d, c, name, sizeof(name));
	check(strlen(name) < sizeof(name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct jitdump_code *c;
	struct jitdump *d = NULL;
	struct error e = {0};
	uint64_t last = 0;

	if (jitdump_open(perf_memory_file(data, size), "x", &d, &e) < 0) {
		check(*e.text);
		return 0;
	}
	for (size_t i = 0; (c = jitdump_nth(d, i)) && i < 1000; i++) {
		check(c->time_ns >= last);
		last = c->time_ns;
		check_piece(d, c, size);
	}
	jitdump_close(d);
	return 0;
}
