/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel PT, what a processor writes about the branches it takes: its packets, and the instructions
 * that were executed, where the programs are at hand. By Intel's library libipt, which is opened
 * when it is needed: Debian has it for amd64 only.
 */
#ifndef AX_PROBES_PT_PT_H
#define AX_PROBES_PT_PT_H

#include "base/util.h"

/* --- packets --- */

enum pt_kind {
	PT_BAD, /* bytes that are no packet, up to the next PSB */
	PT_CUT, /* the beginning of a packet whose rest is missing */
	PT_PAD,
	PT_PSB,
	PT_PSBEND,
	PT_FUP,
	PT_TIP,
	PT_TIP_PGE,
	PT_TIP_PGD,
	PT_TNT,
	PT_TNT_64,
	PT_MODE_EXEC,
	PT_MODE_TSX,
	PT_PIP,
	PT_VMCS,
	PT_CBR,
	PT_TSC,
	PT_TMA,
	PT_MTC,
	PT_CYC,
	PT_TRACE_STOP,
	PT_OVF,
	PT_MNT,
	PT_EXSTOP,
	PT_MWAIT,
	PT_PWRE,
	PT_PWRX,
	PT_PTW,
	PT_UNKNOWN, /* of a newer libipt than this one was built with */
	PT_KINDS,
};
#define PT_VALUES 3
struct pt_one {
	enum pt_kind kind;
	uint64_t offset; /* in the trace of its CPU */
	uint64_t size;	 /* in bytes */
	bool has_ip;	 /* of FUP and TIPs */
	uint64_t ip;	 /* whole, also when the packet has only its lower bytes */
	unsigned n_bits; /* of TNTs: branches; the first is the highest bit, 1: taken */
	uint64_t bits;
	uint64_t v[PT_VALUES]; /* of the others, named by pt_value_name() */
};
/* As Intel's manual names them: "TIP.PGE". */
const char *pt_kind_name(enum pt_kind kind);
/* NULL: it has no such value. */
const char *pt_value_name(enum pt_kind kind, unsigned i);

struct pt_packets;
/* -ENOTSUP, with a sentence: there is no libipt. */
int pt_packets_new(struct pt_packets **ret, struct error *e);
void pt_packets_free(struct pt_packets *p);
static inline void pt_packets_freep(struct pt_packets **p)
{
	if (*p)
		pt_packets_free(*p);
}
/* What is given from now on stands at this offset of its trace; what was left of the bytes before
 * is lost, but was given by pt_packets_last(). */
void pt_packets_begin(struct pt_packets *p, uint64_t offset);
#define PT_GIVE_MAX (1u << 20)
/* The next bytes, at most PT_GIVE_MAX, of which it keeps a copy. When pt_packets_next() says that
 * there is nothing left. */
int pt_packets_give(struct pt_packets *p, const uint8_t *data, size_t len, struct error *e);
/* 1: the next one; 0: more bytes are needed. */
int pt_packets_next(struct pt_packets *p, struct pt_one *ret);
/* At the end: what is left of a packet that was cut off. */
int pt_packets_last(struct pt_packets *p, struct pt_one *ret);

/* --- instructions --- */

enum pt_step_kind {
	PT_STEP_OTHER,
	PT_STEP_CALL,
	PT_STEP_RETURN,
	PT_STEP_JUMP,
	PT_STEP_BRANCH, /* a conditional jump */
	PT_STEP_FAR,	/* into the kernel and back, and the like */
};
struct pt_step {
	uint64_t ip;
	uint8_t size;
	enum pt_step_kind kind;
};
enum pt_note_kind {
	PT_NOTE_ENABLED, /* tracing goes on at ip */
	PT_NOTE_DISABLED,
	PT_NOTE_INTERRUPT, /* something asynchronous, at ip */
	PT_NOTE_OVERFLOW,  /* packets were lost */
	PT_NOTE_GAP, /* what follows cannot be said, for the reason in text, up to the next PSB */
};
struct pt_note {
	enum pt_note_kind kind;
	uint64_t ip;	 /* 0: not known */
	uint64_t offset; /* in the bytes that were given */
	const char *text;
};
/* Who is told, and asked for the bytes of the program that runs at that time. */
struct pt_flow {
	size_t (*read)(void *arg, uint64_t ip, uint8_t *buf, size_t len); /* how many; 0: none */
	void (*time)(void *arg, uint64_t tsc);
	void (*step)(void *arg, const struct pt_step *s);
	void (*note)(void *arg, const struct pt_note *n);
	void *arg;
};
struct pt_clock {
	uint32_t ctc_numerator, ctc_denominator; /* TSC to the crystal clock; 0: not known */
	uint8_t mtc_freq, nominal;
};
int pt_flow_run(uint8_t *trace, size_t n, const struct pt_clock *clock, const struct pt_flow *flow,
		struct error *e);

#endif
