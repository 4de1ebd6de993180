/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a connection is to be spliced: what everybody says of it, and what the kernel does. */
#ifndef AX_SPLICE_POLICY_H
#define AX_SPLICE_POLICY_H

#include "config/config.h"
#include "splice/reason.h"

/* The words that a connection meets. SPLICE_AUTO: nothing is said. */
struct splice_words {
	enum splice_mode service; /* of the service that the client asked for */
	enum splice_mode client, server;
	enum splice_mode agent;
};
/*
 * `off` of anyone but the agent holds; then the service's word; then `on` if both apps say it
 * (`forced` if one of them does and the other says on); else the agent's. What one app alone says
 * does not hold for the other one.
 */
enum splice_mode splice_mode_of(const struct splice_words *w);

/* What the gate found, see gate.h. */
enum gate_state { GATE_WAITS, GATE_BROKE, GATE_OLD, GATE_KNOWN };
struct gate_verdict {
	enum gate_state state;
	bool same;     /* nothing differs */
	bool safe;     /* bytes and memory are what they would be with TCP */
	bool fionread; /* tells members the truth */
};
/* REASON_NONE: this kernel and that word allow it. */
enum splice_reason splice_allowed(enum splice_mode mode, const struct gate_verdict *v);

#endif
