/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of splicing only. */
#ifndef AX_DATAPATH_SPLICE_PRIV_H
#define AX_DATAPATH_SPLICE_PRIV_H

#include "datapath/priv.h"
#include "datapath/splice.h"

struct splicing;

struct splice {
	struct datapath *dp; /* NULL: of the gate */
	struct splicing *skel;
	struct bpf_link *conns; /* iterators */
	struct bpf_link *join;
	struct bpf_link *sizes; /* NULL: nothing is counted */
	struct bpf_link *stuck; /* NULL: of the gate */
	struct ring_buffer *ring;
	uint32_t told; /* read of it: enum ax_splice_told */
};

/* Opens the programs' object, for the caller to say what its maps are, and loads it. */
int splice_object_open(struct splice *s, struct error *e);
int splice_object_load(struct splice *s, struct error *e);
/* Iterators, and the program on the map of members. */
int splice_attach(struct splice *s, struct error *e);
/* Whether this kernel has a tracepoint that tells how much was sent. */
bool splice_sizes_told(void);
/* Writes splice_ctl; nobody has been told then. */
int splice_ctl_set(struct splice *s, bool redirect);

#endif
