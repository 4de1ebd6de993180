/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trace in the Common Trace Format 1.8: a directory with a text, `metadata`, and streams of
 * packets. Events may come out of order: they are held back for a while and sorted. Each packet
 * is written as a whole, and the text before the first packet that needs it, so that what a writer
 * leaves that is killed can be read up to its last packet.
 */
#ifndef AX_CTF_CTF_H
#define AX_CTF_CTF_H

#include "base/util.h"

#define CTF_FIELDS_MAX 40

enum ctf_type {
	CTF_UNSIGNED, /* 64 bits */
	CTF_SIGNED,
	CTF_HEX,
	CTF_FLOAT, /* of 64 bits */
	CTF_STRING,
	CTF_STRINGS, /* any number of them */
	CTF_BYTES,
};
struct ctf_field {
	const char *name; /* any text */
	enum ctf_type type;
};

struct ctf;
/* Makes the directory, which may be there already if it is empty; it is until the first
 * ctf_flush(). `offset_ns`: what is added to
 * times for those since 1970. */
int ctf_open(const char *directory, int64_t offset_ns, struct ctf **ret, struct error *e);
/* The kind's number, by which events name it, or -ENOMEM. */
int ctf_add_event(struct ctf *c, const char *name, const struct ctf_field *fields, size_t n);

/* What all events have besides their own fields. */
struct ctf_context {
	uint64_t time_ns;
	uint32_t pid, tid, cpu;
	const char *comm; /* of at most comm_len bytes */
	size_t comm_len;
	const char *unread; /* names of fields that have no value */
};
/* An event: begin, each of its fields in their order, end. */
void ctf_begin(struct ctf *c, int event, const struct ctf_context *x);
void ctf_number(struct ctf *c, uint64_t v);
void ctf_float(struct ctf *c, double v);
/* Ends at a NUL; what is no UTF-8 is taken for Latin-1. */
void ctf_string(struct ctf *c, const char *s, size_t len);
/* n strings follow. */
void ctf_strings(struct ctf *c, uint32_t n);
void ctf_bytes(struct ctf *c, const char *bytes, size_t len);
void ctf_end(struct ctf *c);

/* Gives events up to that time to their packets, and writes those that are full, or all if `all`.
 * `discarded`: how many events were lost since the start. Returns 0 or a negative errno, which
 * stays. */
int ctf_flush(struct ctf *c, uint64_t until_ns, uint64_t discarded, bool all);
/* How many events had to go to a stream of their own, since they came too late. */
uint64_t ctf_late(const struct ctf *c);
/* Writes nothing more. */
void ctf_free(struct ctf *c);

#endif
