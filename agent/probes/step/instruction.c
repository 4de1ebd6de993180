// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One instruction, so that the program does not see that it was stepped: neither by the flag that
 * makes the processor trap, nor by the signal that the kernel makes of the trap.
 */
#include "probes/step/priv.h"

bool step_status_bit(int pid, int tid, const char *line, int signal)
{
	autofree char *text = NULL;
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	if (file_read(path, 1 << 16, &text) < 0)
		return false;
	at = strstr(text, line);
	return at && strtoull(at + strlen(line), NULL, 16) >> (signal - 1) & 1;
}

/* --- the signal --- */

#define TRAP_BIT (UINT64_C(1) << (SIGTRAP - 1))

static bool get_mask(const struct step_thread *t, uint64_t *ret)
{
	return ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(*ret), ret) == 0;
}

static void set_mask(const struct step_thread *t, uint64_t mask)
{
	ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask), &mask);
}

/*
 * Where SIGTRAP is blocked or ignored, the kernel would take the program's handler away with the
 * trap, and neither block nor ignore it any more (force_sig()); and one that waits already could
 * not be told from the trap's.
 */
static enum step_prepared unblock(struct step_thread *t)
{
	uint64_t mask;

	if (!get_mask(t, &mask) || !(mask & TRAP_BIT))
		return STEP_IS_READY;
	if (step_status_bit(t->pid, t->tid, "\nSigPnd:", SIGTRAP) ||
	    step_status_bit(t->pid, t->tid, "\nShdPnd:", SIGTRAP))
		return STEP_CANNOT;
	set_mask(t, mask & ~TRAP_BIT);
	t->unblocked = true;
	return STEP_IS_READY;
}

void step_mask_back(struct step_thread *t)
{
	uint64_t mask;

	if (t->unblocked && get_mask(t, &mask))
		set_mask(t, mask | TRAP_BIT);
	t->unblocked = false;
}

/* --- the flag --- */

#if defined(__x86_64__)
#define TRAP_FLAG  0x100u
#define IP_WORD	   16 /* of struct step_registers */
#define FLAGS_WORD 18
#define SP_WORD	   19

static size_t prefix_len(const uint8_t *code)
{
	return code[0] == 0x66 || (code[0] & 0xf0) == 0x40;
}

/*
 * The kernel takes a flag that POPF is about to set for the program's own, and does not take back
 * then what it has set itself to step on (enable_single_step()): so that instruction is not stepped
 * but done here.
 */
static bool do_popf(const struct step_thread *t, struct step_registers *r, const uint8_t *code)
{
	unsigned width = code[0] == 0x66 ? 2 : 8;
	uint64_t flags = 0;

	if (step_read(t->tid, r->v[SP_WORD], &flags, width))
		return false;
	if (width == 2)
		flags |= r->v[FLAGS_WORD] & ~UINT64_C(0xffff);
	r->v[FLAGS_WORD] = flags;
	r->v[SP_WORD] += width;
	r->v[IP_WORD] += prefix_len(code) + 1;
	return step_set_registers(t->tid, r) == 0;
}

enum step_prepared step_prepare(struct step_thread *t)
{
	struct step_registers r;
	uint8_t code[2] = {0}, opcode;

	t->pushes_flags = 0;
	if (step_get_registers(t->tid, &r) || step_read(t->tid, step_ip(&r), code, sizeof(code)))
		return unblock(t);
	opcode = code[prefix_len(code)];
	if ((code[0] == 0x0f && code[1] == 0x05) || (code[0] == 0xcd && code[1] == 0x80)) {
		t->in_call = CALL_BEGINS;
		return STEP_IS_READY;
	}
	if (opcode == 0x9d && do_popf(t, &r, code))
		return STEP_IS_DONE;
	if (opcode == 0x9c)
		t->pushes_flags = code[0] == 0x66 ? 2 : 8;
	return unblock(t);
}

/* PUSHF has left the flag on the stack, and who takes it back from there would be ended by it. */
void step_complete(struct step_thread *t)
{
	struct step_registers r;
	uint64_t flags = 0;
	size_t n = t->pushes_flags;

	step_mask_back(t);
	t->pushes_flags = 0;
	if (!n || step_get_registers(t->tid, &r) || step_read(t->tid, r.v[SP_WORD], &flags, n))
		return;
	flags &= ~(uint64_t)TRAP_FLAG;
	step_write(t->tid, r.v[SP_WORD], &flags, n);
}
#else
#define SVC_MASK 0xffe0001fu
#define SVC	 0xd4000001u

enum step_prepared step_prepare(struct step_thread *t)
{
	struct step_registers r;
	uint32_t code = 0;

	if (step_get_registers(t->tid, &r) == 0 &&
	    step_read(t->tid, step_ip(&r), &code, sizeof(code)) == 0 && (code & SVC_MASK) == SVC) {
		t->in_call = CALL_BEGINS;
		return STEP_IS_READY;
	}
	return unblock(t);
}

void step_complete(struct step_thread *t)
{
	step_mask_back(t);
}
#endif
