/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of a file that ax trace build wrote. Whatever is in it, every text of a record lies
 * inside of the file. */
#ifndef AX_PROBES_BUILD_LOG_H
#define AX_PROBES_BUILD_LOG_H

#include "base/util.h"
#include "build_event.h"

struct build_log {
	const uint8_t *data;
	size_t len, at;
	struct ax_build_file head;
};

/* Not terminated. */
struct build_text {
	const char *v;
	size_t len;
};

/* The members that belong to its type. */
struct build_record {
	uint64_t time_ns; /* 0: a piece */
	uint32_t type, pid, tid;
	union {
		struct {
			uint64_t offset;
			uint32_t what; /* enum ax_exec_data */
			struct build_text data;
		} piece;
		uint32_t child;	 /* of AX_BUILD_FORK */
		uint32_t status; /* of AX_BUILD_EXIT */
		struct {
			uint64_t argv_len, env_len;
			uint32_t flags;
			struct build_text exe;
		} exec;
		struct {
			struct ax_build_path p; /* but for its texts */
			struct build_text text[AX_BUILD_TEXTS];
		} path;
		struct ax_build_end end;
	};
};

/* -EINVAL with a sentence: it is no such file, or one of another machine or version. */
int build_log_begin(struct build_log *l, const void *data, size_t len, struct error *e);
/* 1: the next record; 0: there are no more. With a sentence: -ENODATA, the file ends in a record,
 * -EINVAL, there is none like this. */
int build_log_next(struct build_log *l, struct build_record *ret, struct error *e);

#endif
