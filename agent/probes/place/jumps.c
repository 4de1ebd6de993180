// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where the jumps of a function go. A probe may only stand behind the entry if nothing but the
 * entry leads there. Jumps into a function come from the function itself, and from the cold part of
 * it that the compiler put elsewhere, which is found by following the jumps that leave.
 */
#include "probes/elf/symbols.h"
#include "probes/place/priv.h"

#define OUTSIDE_MAX 64	 /* places outside that are followed */
#define STEPS_MAX   4096 /* instructions there */

struct walk {
	struct binary *b;
	const struct code *c;
	struct jumps *j;
	uint64_t outside[OUTSIDE_MAX];
	size_t n_outside;
	unsigned steps;
};

static bool starts_function(struct walk *w, uint64_t address)
{
	const struct function *f = symbols_at(w->b, address);

	/* gcc and clang name cold parts f.cold */
	return f && f->address == address && !strstr(f->name, ".cold") &&
	       !strstr(f->name, ".part.");
}

static void leave(struct walk *w, uint64_t address)
{
	for (size_t i = 0; i < w->n_outside; i++)
		if (w->outside[i] == address)
			return;
	if (starts_function(w, address)) /* a tail call */
		return;
	if (w->n_outside == OUTSIDE_MAX) {
		w->j->anywhere = true;
		return;
	}
	w->outside[w->n_outside++] = address;
}

static void note_jump(struct walk *w, uint64_t at, const struct x86_insn *i)
{
	uint64_t to = at + i->target;

	if (i->flow == FLOW_JUMP_ANY)
		w->j->anywhere = true;
	if (i->flow != FLOW_JUMP && i->flow != FLOW_BRANCH)
		return;
	if (to - w->c->address >= w->c->len)
		leave(w, to);
	else if (to - w->c->address < JUMPS_KNOWN)
		w->j->to[to - w->c->address] = true;
}

static bool ends(const struct x86_insn *i)
{
	return i->flow != FLOW_NEXT && i->flow != FLOW_BRANCH && i->flow != FLOW_CALL;
}

static int follow(struct walk *w, uint64_t at)
{
	struct x86_insn i;
	uint8_t bytes[X86_LEN_MAX];
	uint64_t offset;
	size_t n;

	do {
		if (at - w->c->address < w->c->len) /* back in the function */
			return 0;
		if (++w->steps > STEPS_MAX || !image_offset(&w->b->image, at, true, &offset)) {
			w->j->anywhere = true;
			return 0;
		}
		n = w->b->image.size - offset;
		n = n < sizeof(bytes) ? n : sizeof(bytes);
		if (image_read(&w->b->image, offset, bytes, n) || !x86_decode(bytes, n, &i)) {
			w->j->anywhere = true;
			return 0;
		}
		note_jump(w, at, &i);
		at += i.len;
	} while (!ends(&i) && !w->j->anywhere);
	return 0;
}

int place_jumps(struct binary *b, const struct code *c, struct jumps *ret)
{
	struct walk w = {.b = b, .c = c, .j = ret};
	struct x86_insn i;
	int r = symbols_load_more(b);

	memset(ret, 0, sizeof(*ret));
	/* all instructions from the first on: also those that only exceptions lead to */
	for (size_t at = 0; !r && at < c->len; at += i.len) {
		if (!x86_decode(c->bytes + at, c->len - at, &i)) {
			ret->anywhere = true; /* data, or what we do not know */
			break;
		}
		note_jump(&w, c->address + at, &i);
	}
	for (size_t k = 0; !r && k < w.n_outside && !ret->anywhere; k++)
		r = follow(&w, w.outside[k]);
	return r;
}
