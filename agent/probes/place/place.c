// SPDX-License-Identifier: GPL-2.0-or-later
/* Where a probe goes, and why there. */
#include <inttypes.h>
#include <sys/utsname.h>

#include "probes/elf/symbols.h"
#include "probes/place/priv.h"

#define SLIDE_MAX 12 /* instructions */

struct place_kernel place_kernel_now(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return (struct place_kernel){0};
	return (struct place_kernel){
		.long_nops = major > 6 || (major == 6 && minor >= 16),
		.nop5 = major > 6 || (major == 6 && minor >= 18),
		.arm64_nop = major > 6 || (major == 6 && minor >= 13),
	};
}

struct candidate {
	struct x86_insn i;
	size_t at; /* in the code */
	enum place_cost cost;
	const char *why;
};

static bool judge(const struct code *c, size_t at, struct candidate *ret)
{
	ret->at = at;
	if (!x86_decode(c->bytes + at, c->len - at, &ret->i))
		return false;
	ret->cost = x86_cost(&ret->i, c->bytes + at, (unsigned)((c->address + at) & 4095),
			     place_kernel_now(), &ret->why);
	return true;
}

static void describe(const struct code *c, const struct candidate *p, struct place *ret)
{
	ret->cost = p->cost;
	x86_text(&p->i, c->bytes + p->at, c->address + p->at, ret->instruction,
		 sizeof(ret->instruction));
}

static bool is_readable(const struct binary *b, const struct code *c, const struct candidate *p)
{
	uint64_t to = c->address + p->at + p->i.len + (uint64_t)(int64_t)p->i.disp;

	return x86_rip_relative(&p->i) && image_readable(&b->image, to, 8);
}

/*
 * Where an indirect jump leads is not known, but not to before a push of a register that belongs to
 * the caller: it would push once more on each round, and return to what it pushed.
 */
static bool is_prologue_push(const struct x86_insn *i)
{
	unsigned reg = (i->opcode & 7) | (i->rex & 1) << 3;

	return i->map == 0 && !i->vex && (i->opcode & 0xf8) == 0x50 &&
	       (reg == 3 || reg == 5 || reg >= 12);
}

/*
 * How Go's functions start: a comparison of the stack pointer with the limit of the goroutine
 * (R14), and a jump to what grows the stack and then starts the function anew. Behind it a call is
 * seen once.
 */
static size_t go_prologue(const struct code *c)
{
	static const uint8_t compare[] = {0x49, 0x3b, 0x66, 0x10}; /* cmp 0x10(%r14),%rsp */
	static const uint8_t large[] = {0x4d, 0x3b, 0x66, 0x10};   /* cmp 0x10(%r14),%r12 */
	struct x86_insn i;
	size_t at = 0;

	if (!x86_decode(c->bytes, c->len, &i))
		return 0;
	/* lea -N(%rsp),%r12 */
	if (i.map == 0 && i.opcode == 0x8d && x86_reg(&i) == 12 && (i.modrm & 7) == 4 &&
	    i.sib == 0x24 && !(i.rex & 1))
		at = i.len;
	if (c->len - at < 4 || memcmp(c->bytes + at, at ? large : compare, 4) != 0)
		return 0;
	at += 4;
	/* jbe */
	if (!x86_decode(c->bytes + at, c->len - at, &i) || i.flow != FLOW_BRANCH ||
	    i.opcode != (i.map ? 0x86 : 0x76))
		return 0;
	return at + i.len < c->len ? at + i.len : 0;
}

static bool is_better(const struct candidate *p, const struct jumps *j, bool only_nops)
{
	/* nothing that could be below the stack pointer has been put there */
	if (p->cost == PLACE_NOP5)
		return only_nops && !j->to[p->at] && (!p->at || !j->anywhere);
	if (p->cost != PLACE_EMULATED)
		return false;
	return !p->at || !j->anywhere || is_prologue_push(&p->i);
}

struct slide {
	struct candidate entry, best;
	struct jumps jumps;
	const char *stop; /* why it goes no further */
};

static void slide(struct binary *b, const struct code *c, size_t from, struct slide *s)
{
	bool only_nops = from == 0;
	struct candidate p;
	size_t at = from;

	s->stop = "no cheaper instruction follows before the first that must not be passed";
	for (unsigned n = 0; n < SLIDE_MAX && at < c->len; n++, at += p.i.len) {
		if (at && at < JUMPS_KNOWN && s->jumps.to[at]) {
			s->stop = "a jump leads to the instruction behind";
			return;
		}
		if (at >= JUMPS_KNOWN || !judge(c, at, &p))
			return;
		if (is_better(&p, &s->jumps, only_nops)) {
			s->best = p;
			return;
		}
		/* the first place that the kernel takes at all */
		if (s->best.cost == PLACE_REFUSED && p.cost == PLACE_STEPPED && !s->jumps.anywhere)
			s->best = p;
		if (p.cost == PLACE_EMULATED && s->jumps.anywhere) {
			s->stop = "jumps through registers may lead to the instructions behind";
			return;
		}
		if (!x86_slides(&p.i, b->go, is_readable(b, c, &p)))
			return;
		only_nops &= x86_is_endbr(&p.i) || x86_is_nop(&p.i);
	}
}

static bool is_passed(const struct slide *s)
{
	for (size_t i = 1; i <= s->best.at; i++)
		if (s->jumps.to[i])
			return true;
	return false;
}

/* Jumps from other functions are only looked for when it would move. */
static int slide_safely(struct binary *b, const struct code *c, size_t from, struct slide *s)
{
	const struct candidate start = s->best;
	int r;

	slide(b, c, from, s);
	if (s->best.at <= from)
		return 0;
	r = place_near_jumps(b, c, &s->jumps);
	if (r < 0 || !is_passed(s))
		return r;
	s->best = start;
	slide(b, c, from, s);
	return 0;
}

static void refuse_nop5(struct candidate *p)
{
	if (p->cost != PLACE_NOP5)
		return;
	p->cost = PLACE_REFUSED;
	p->why = "a call would take the place of this 5-byte nop and overwrite what the function "
		 "has below its stack pointer: probe the next instruction";
}

static void explain(const struct slide *s, bool go_start, struct place *ret)
{
	if (!ret->slid && s->best.cost == PLACE_STEPPED) {
		snprintf(ret->why, sizeof(ret->why), "%s; %s", s->best.why, s->stop);
	} else if (!ret->slid) {
		snprintf(ret->why, sizeof(ret->why), "%s", s->best.why);
	} else if (go_start) {
		snprintf(ret->why, sizeof(ret->why),
			 "behind the check of Go's stack, which starts the function anew when it "
			 "has grown; %s",
			 s->best.why);
	} else {
		snprintf(ret->why, sizeof(ret->why),
			 "%s; the entry's is %s, and what is between leaves the arguments alone",
			 s->best.why, s->entry.cost == PLACE_REFUSED ? "refused" : "stepped");
	}
}

/* Only the code of whole functions is looked at: beyond CODE_MAX there could be jumps. */
static int place_entry(struct binary *b, const struct code *c, bool whole, struct place *ret,
		       struct error *e)
{
	size_t go = b->go && whole ? go_prologue(c) : 0;
	struct slide s = {.stop = "its code is not known whole"};
	int r = 0;

	if (!judge(c, 0, &s.entry))
		return error_set(e, -EINVAL, "there is no known instruction at 0x%" PRIx64 " of %s",
				 c->address, b->path);
	s.best = s.entry;
	/* what can be cheaper needs all symbols, to know where functions start */
	if (whole && (go || s.best.cost != PLACE_EMULATED))
		r = place_jumps(b, c, &s.jumps);
	if (r < 0)
		return error_set(e, r, "the symbols of %s cannot be read: %s", b->path,
				 strerror(-r));
	/* a loop that starts at the entry could come back with something below the stack pointer */
	if (s.jumps.to[0])
		refuse_nop5(&s.best);
	if (go && !s.jumps.to[go] && judge(c, go, &s.best))
		refuse_nop5(&s.best);
	if (whole && (go || s.best.cost != PLACE_EMULATED))
		r = slide_safely(b, c, go, &s);
	if (r < 0)
		return error_set(e, r, "out of memory");
	ret->slid = (uint32_t)s.best.at;
	ret->offset += s.best.at;
	describe(c, &s.best, ret);
	explain(&s, go && s.best.at >= go, ret);
	return 0;
}

static int place_exactly(const struct binary *b, const struct code *c, size_t at, bool entry,
			 struct place *ret, struct error *e)
{
	struct candidate p;

	if (!judge(c, at, &p))
		return error_set(e, -EINVAL, "there is no known instruction at 0x%" PRIx64 " of %s",
				 c->address + at, b->path);
	if (!entry)
		refuse_nop5(&p);
	describe(c, &p, ret);
	snprintf(ret->why, sizeof(ret->why), "%s", p.why);
	return 0;
}

/* Between two instructions a breakpoint would be part of one of them. */
static bool is_boundary(const struct code *c, size_t at)
{
	struct x86_insn i;
	size_t k;

	for (k = 0; k < at; k += i.len)
		if (!x86_decode(c->bytes + k, c->len - k, &i))
			return true; /* not known */
	return k == at;
}

static int place_x86(struct binary *b, const struct symbol *s, uint64_t address, bool exact,
		     struct place *ret, struct error *e)
{
	uint64_t start = s ? s->address : address, end;
	struct code c CLEANUP(place_code_free) = {0};
	int r;

	if (s && (address < start || address - start >= CODE_MAX))
		return error_set(e, -EINVAL, "0x%" PRIx64 " is not in %.100s", address, s->name);
	end = s ? symbols_end(b, start, s->size) : UINT64_MAX;
	if (!s || end <= address)
		end = address + X86_LEN_MAX;
	r = place_load_code(b, start, end, &c, e);
	if (r < 0)
		return r;
	if (address - start >= c.len)
		return place_no_code(b, ret->offset, e);
	if (s && !exact && address == start)
		return place_entry(b, &c, c.len == end - start && end - start < CODE_MAX, ret, e);
	if (s && !is_boundary(&c, address - start)) {
		ret->cost = PLACE_REFUSED;
		snprintf(ret->why, sizeof(ret->why),
			 "%.60s+0x%" PRIx64 " is inside of an instruction: the program would crash",
			 s->name, address - start);
		return 0;
	}
	return place_exactly(b, &c, address - start, s && address == start, ret, e);
}

#define ARM64_BEFORE 128 /* bytes in which an exclusive load is looked for */
#define ARM64_AHEAD  48	 /* bytes in which Go checks its stack */

/* The instruction at c->bytes + at; the function's code from c->bytes on is before it. */
static void judge_arm64(const struct code *c, size_t at, struct place *ret)
{
	uint32_t insn = get_u32(c->bytes + at);
	const char *why;

	ret->cost = arm64_cost(insn, place_kernel_now(), &why);
	arm64_text(insn, ret->instruction, sizeof(ret->instruction));
	if (ret->cost != PLACE_REFUSED && arm64_in_exclusive(c->bytes, at)) {
		ret->cost = PLACE_REFUSED;
		why = "between an exclusive load and its store a probe would have the program try "
		      "again for ever";
	}
	snprintf(ret->why, sizeof(ret->why), "%s%s",
		 ret->slid ? "behind the check of Go's stack, which starts the function anew when "
			     "it has grown; "
			   : "",
		 why);
}

static int place_arm64(struct binary *b, const struct symbol *s, uint64_t address, bool exact,
		       struct place *ret, struct error *e)
{
	struct code c CLEANUP(place_code_free) = {0};
	uint64_t from = address, to = address + 4, end;
	size_t at;
	int r;

	if (address & 3) {
		ret->cost = PLACE_REFUSED;
		snprintf(ret->why, sizeof(ret->why),
			 "instructions of arm64 are at multiples of four");
		return 0;
	}
	if (s && address >= s->address) {
		end = symbols_end(b, s->address, s->size);
		from -= address - s->address < ARM64_BEFORE ? address - s->address : ARM64_BEFORE;
		if (!exact && from == address && end > to)
			to = end - address < ARM64_AHEAD ? end : address + ARM64_AHEAD;
	}
	r = place_load_code(b, from, to, &c, e);
	if (r < 0)
		return r;
	at = address - from;
	if (c.len < at + 4)
		return place_no_code(b, ret->offset, e);
	if (b->go && from == address)
		ret->slid = (uint32_t)arm64_go_prologue(c.bytes, c.len);
	ret->offset += ret->slid;
	judge_arm64(&c, at + ret->slid, ret);
	return 0;
}

int binary_place(struct binary *b, const struct symbol *s, uint64_t offset, bool exact,
		 struct place *ret, struct error *e)
{
	uint64_t address, again;

	*ret = (struct place){.offset = offset};
	if (!image_address(&b->image, offset, &address) ||
	    !image_offset(&b->image, address, true, &again))
		return place_no_code(b, offset, e);
	switch (b->image.machine) {
	case EM_X86_64:
		return place_x86(b, s, address, exact, ret, e);
	case EM_AARCH64:
		return place_arm64(b, s, address, exact, ret, e);
	default:
		return error_set(e, -ENOTSUP, "%s is for a processor that ax does not know",
				 b->path);
	}
}

size_t place_instruction(uint16_t machine, const uint8_t *bytes, size_t n, uint64_t address,
			 char *text, size_t len)
{
	struct x86_insn i;
	uint32_t insn;

	text[0] = 0;
	if (machine == EM_AARCH64) {
		if (n < sizeof(insn))
			return 0;
		memcpy(&insn, bytes, sizeof(insn));
		arm64_text(insn, text, len);
		return sizeof(insn);
	}
	if (!x86_decode(bytes, n, &i))
		return 0;
	x86_text(&i, bytes, address, text, len);
	return i.len;
}
