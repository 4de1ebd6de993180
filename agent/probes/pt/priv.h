/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libipt's functions, and nothing else of it: only this room knows them. */
#ifndef AX_PROBES_PT_PRIV_H
#define AX_PROBES_PT_PRIV_H

#include <intel-pt.h>

#include "probes/pt/pt.h"

struct pt_library {
	__typeof__(pt_errstr) *errstr;
	__typeof__(pt_pkt_alloc_decoder) *pkt_alloc_decoder;
	__typeof__(pt_pkt_free_decoder) *pkt_free_decoder;
	__typeof__(pt_pkt_sync_set) *pkt_sync_set;
	__typeof__(pt_pkt_next) *pkt_next;
	__typeof__(pt_image_alloc) *image_alloc;
	__typeof__(pt_image_free) *image_free;
	__typeof__(pt_image_set_callback) *image_set_callback;
	__typeof__(pt_insn_alloc_decoder) *insn_alloc_decoder;
	__typeof__(pt_insn_free_decoder) *insn_free_decoder;
	__typeof__(pt_insn_set_image) *insn_set_image;
	__typeof__(pt_insn_sync_forward) *insn_sync_forward;
	__typeof__(pt_insn_get_offset) *insn_get_offset;
	__typeof__(pt_insn_time) *insn_time;
	__typeof__(pt_insn_next) *insn_next;
	__typeof__(pt_insn_event) *insn_event;
};
/* NULL: there is none. */
const struct pt_library *pt_library(struct error *e);

#endif
