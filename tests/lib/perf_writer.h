/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes perf.data, of either byte order, as a file or as for a pipe, to see what readers make of
 * it. */
#ifndef AX_TESTS_LIB_PERF_WRITER_H
#define AX_TESTS_LIB_PERF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_writer {
	uint8_t *b; /* malloc'ed */
	size_t n, max;
	bool big; /* the most significant byte first */
};
void perf_writer_free(struct perf_writer *w);
void perf_put(struct perf_writer *w, uint64_t v, unsigned bytes);
void perf_put_bytes(struct perf_writer *w, const void *b, size_t n);
/* With NULs behind it, so that it takes `size` bytes. */
void perf_put_text(struct perf_writer *w, const char *s, size_t size);
/* An event begins; what is put up to perf_end() is in it. */
size_t perf_begin_event(struct perf_writer *w, uint32_t type, uint16_t misc);
void perf_end_event(struct perf_writer *w, size_t begin);

/* What every event of the kernel ends with in the files below. */
#define PERF_WRITER_ID	   7
#define PERF_WRITER_SAMPLE (1u << 0 | 1u << 1 | 1u << 2 | 1u << 7 | 1u << 8 | 1u << 16)
void perf_put_sample_id(struct perf_writer *w, uint32_t pid, uint64_t time, uint32_t cpu);

/* One attribute named "clock" with the ids 7 and 8 and samples of IP, TID, TIME, CPU, PERIOD; the
 * features HOSTNAME ("box") and EVENT_DESC; and these events. */
void perf_write_file(struct perf_writer *to, const struct perf_writer *events);
void perf_write_pipe(struct perf_writer *to, const struct perf_writer *events);

/* As perf record -z has them: a COMPRESSED event (81, or 83: COMPRESSED2) for each `piece` bytes of
 * the zstd stream's input. */
void perf_write_packed(struct perf_writer *to, const struct perf_writer *events, size_t piece,
		       uint32_t type);

/* A descriptor (memfd) with these bytes. */
int perf_memory_file(const void *b, size_t n);

#endif
