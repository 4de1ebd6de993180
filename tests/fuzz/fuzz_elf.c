// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as a program: its functions, USDT probes, places of probes and returns lie inside of
 * the file, in order, and are explained. */
#include <fcntl.h>
#include <sys/mman.h>

#include "probes/elf/symbols.h"
#include "probes/elf/usdt.h"
#include "probes/place/place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PLACED_MAX 32

static void check(bool good)
{
	if (!good)
		abort();
}

struct walk {
	struct binary *b;
	size_t size;
	uint64_t last;
	unsigned n;
};

static void check_place(const struct walk *w, const struct symbol *s, uint64_t offset, bool exact)
{
	struct place p;
	struct error e = {0};

	if (binary_place(w->b, s, offset, exact, &p, &e)) {
		check(*e.text);
		return;
	}
	check(p.offset < w->size && p.offset == offset + p.slid && *p.why);
	check(!exact || p.slid == 0);
	check(!s || !s->size || p.slid < s->size);
}

static void check_returns(const struct walk *w, const struct symbol *s)
{
	autofree uint64_t *v = NULL;
	struct error e = {0};
	size_t n = 0;

	if (binary_returns(w->b, s, &v, &n, &e)) {
		check(*e.text);
		return;
	}
	check(n > 0);
	for (size_t i = 0; i < n; i++)
		check(v[i] >= s->offset && v[i] < w->size && (!i || v[i] > v[i - 1]));
}

static int on_function(void *arg, const struct symbol *s)
{
	struct walk *w = arg;
	struct symbol found;

	check(s->name && *s->name && s->offset < w->size);
	check(!w->n || s->address > w->last);
	w->last = s->address;
	if (w->n++ >= PLACED_MAX)
		return 0;
	check_place(w, s, s->offset, false);
	check_place(w, s, s->offset + 1, false);
	check_place(w, NULL, s->offset, true);
	check_returns(w, s);
	if (binary_symbolise(w->b, s->offset, &found) == 0)
		check(found.offset <= s->offset && *found.name);
	return 0;
}

static int on_usdt(void *arg, const struct usdt *u)
{
	const struct walk *w = arg;

	check(u->provider && u->name && u->args_text && u->offset < w->size);
	check(u->n_args <= USDT_ARGS_MAX && u->semaphore < w->size);
	for (size_t i = 0; i < u->n_args; i++)
		check(u->args[i].size >= 1 && u->args[i].size <= 8);
	return 0;
}

static void look(struct binary *b, size_t size)
{
	static const char *const globs[] = {"main", "ns::f", "a*", "*::*", "*"};
	struct walk w = {.b = b, .size = size};
	struct error e = {0};

	for (size_t i = 0; i < ARRAY_SIZE(globs); i++) {
		w.n = 0;
		if (binary_functions(b, globs[i], on_function, &w, &e) < 0)
			check(*e.text);
	}
	if (binary_usdts(b, NULL, NULL, on_usdt, &w, &e) < 0)
		check(*e.text);
	for (uint64_t offset = 0; offset < size; offset += 1 + size / 16)
		check_place(&w, NULL, offset, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int file = -1;
	struct binary *b = NULL;
	struct error e = {0};

	if (file < 0)
		file = memfd_create("program", MFD_CLOEXEC);
	check(file >= 0 && ftruncate(file, 0) == 0);
	check(pwrite(file, data, size, 0) == (ssize_t)size);
	if (binary_open_fd(fcntl(file, F_DUPFD_CLOEXEC, 3), "/nowhere/program", "", &b, &e)) {
		check(*e.text);
		return 0;
	}
	look(b, size);
	binary_close(b);
	return 0;
}
