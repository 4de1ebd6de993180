/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf.data, the file that `perf record` writes: its header, attributes, features and events, of
 * files and of pipes, in either byte order, also compressed. Every number of it may be a lie: what
 * is read is bounded, and memory grows only with what was really there.
 */
#ifndef AX_PROBES_PERFDATA_PERFDATA_H
#define AX_PROBES_PERFDATA_PERFDATA_H

#include <linux/perf_event.h>

#include "base/util.h"

struct perfdata;

/* Takes the descriptor over, also when it fails; a pipe is read as it comes. `path` is for
 * messages. */
int perfdata_open(int fd, const char *path, struct perfdata **ret, struct error *e);
void perfdata_close(struct perfdata *p);
static inline void perfdata_closep(struct perfdata **p)
{
	if (*p)
		perfdata_close(*p);
}

struct perfdata_header {
	unsigned version; /* 1: "PERFFILE", 2: "PERFILE2" */
	bool pipe;	  /* attributes and features are events */
	bool swapped;	  /* of a machine with the other byte order */
	bool unfinished;  /* perf did not end it: there are no features, and events up to its end */
	uint64_t size, attr_size;
	uint64_t data_offset, data_size;
	uint64_t features[4];
};
const struct perfdata_header *perfdata_header(const struct perfdata *p);

/* --- attributes: the events that were asked of the kernel --- */

struct perfdata_attr {
	struct perf_event_attr attr; /* in this machine's order; what the file has not is 0 */
	uint64_t flags;		     /* its bits, `disabled` the lowest */
	char *name;		     /* NULL: the file does not say */
	uint64_t *ids;
	size_t n_ids;
};
/* Of a pipe those that have come until now. NULL: there is no such one. */
const struct perfdata_attr *perfdata_attr(const struct perfdata *p, size_t i);

/* --- events --- */

/* perf's own types of events, beside the kernel's PERF_RECORD_*. */
enum perfdata_type {
	PERFDATA_HEADER_ATTR = 64,
	PERFDATA_HEADER_EVENT_TYPE,
	PERFDATA_TRACING_DATA,
	PERFDATA_BUILD_ID,
	PERFDATA_FINISHED_ROUND,
	PERFDATA_ID_INDEX,
	PERFDATA_AUXTRACE_INFO,
	PERFDATA_AUXTRACE,
	PERFDATA_AUXTRACE_ERROR,
	PERFDATA_THREAD_MAP,
	PERFDATA_CPU_MAP,
	PERFDATA_STAT_CONFIG,
	PERFDATA_STAT,
	PERFDATA_STAT_ROUND,
	PERFDATA_EVENT_UPDATE,
	PERFDATA_TIME_CONV,
	PERFDATA_HEADER_FEATURE,
	PERFDATA_COMPRESSED,
	PERFDATA_FINISHED_INIT,
	PERFDATA_COMPRESSED2,
	PERFDATA_BPF_METADATA,
};

struct perfdata_event {
	uint32_t type;
	uint16_t misc;
	uint16_t size;	     /* with the header */
	const uint8_t *data; /* the header, as the file has it; until the next call */
	uint64_t offset;     /* in the file; of a compressed one, of the event that it came in */
	bool unpacked;	     /* it was in a COMPRESSED event, which comes before those in it */
	uint64_t payload;    /* bytes behind it that belong to it: see perfdata_payload() */
};
/* 1: the next one is in *ret; 0: that was all. What is wrong with the file comes as an error when
 * all before it was given. */
int perfdata_next(struct perfdata *p, struct perfdata_event *ret, struct error *e);
/* More of what follows the event: up to `max` bytes; 0: that was all. */
int perfdata_payload(struct perfdata *p, void *buf, size_t max, size_t *n, struct error *e);

/* --- traces of hardware (AUX) --- */

enum perfdata_aux_type { PERFDATA_AUX_INTEL_PT = 1 }; /* of AUXTRACE_INFO */
/* "intel_pt", "arm_spe", "cs_etm" ...; "unknown". */
const char *perfdata_aux_name(uint32_t type);
/* What an AUXTRACE event says about the bytes behind it. */
struct perfdata_aux {
	uint64_t size, offset, reference;
	uint32_t idx, tid, cpu; /* tid, cpu: UINT32_MAX: of all */
};
/* False: it is none, or too short. */
bool perfdata_aux(const struct perfdata *p, const struct perfdata_event *ev,
		  struct perfdata_aux *ret);

/* --- names, numbers --- */

/* "MMAP2"; NULL: not known. And back; -1. */
const char *perfdata_type_name(uint32_t type);
int perfdata_type_of(const char *name);
const char *perfdata_type_nth(size_t i);

/* Which of its own bytes an event of the kernel says about when and where; what it does not say is
 * UINT32_MAX and UINT64_MAX. False: its attribute is not known, or it says nothing. */
struct perfdata_when {
	uint32_t pid, tid, cpu;
	uint64_t time, id;
};
bool perfdata_when(const struct perfdata *p, const struct perfdata_event *ev,
		   struct perfdata_when *ret);

/* Numbers of the file, in this machine's order. */
uint16_t perfdata_u16(const struct perfdata *p, const void *at);
uint32_t perfdata_u32(const struct perfdata *p, const void *at);
uint64_t perfdata_u64(const struct perfdata *p, const void *at);

/* --- what is in them, field by field --- */

enum perfdata_kind {
	PERFDATA_NUMBER,
	PERFDATA_SIGNED,
	PERFDATA_HEX,
	PERFDATA_TIME, /* nanoseconds */
	PERFDATA_TEXT,
	PERFDATA_BYTES,
	PERFDATA_LIST, /* what follows is in it, up to PERFDATA_END */
	PERFDATA_OBJECT,
	PERFDATA_END,
};
struct perfdata_field {
	const char *name; /* NULL: in a list */
	enum perfdata_kind kind;
	uint64_t number;
	const char *data; /* of texts and bytes; not ended by a NUL */
	size_t len;
};
struct perfdata_sink {
	void (*put)(void *arg, const struct perfdata_field *f);
	void *arg;
};
/* -EBADMSG: the event is shorter than what it says it has; what was there was given. */
int perfdata_describe(const struct perfdata *p, const struct perfdata_event *ev,
		      const struct perfdata_sink *to);
void perfdata_describe_attr(const struct perfdata_attr *a, const struct perfdata_sink *to);

/* Features of files: the next one whose bit is set, from *bit on, which becomes that of the one
 * behind it. 1: it was given as an object of its name; 0: there are no more; -ENODATA: it is
 * shorter than what it says it has, what was there was given. */
int perfdata_feature(struct perfdata *p, unsigned *bit, const struct perfdata_sink *to,
		     struct error *e);

#endif
