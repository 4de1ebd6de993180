// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A perf.data with traces of other hardware than Intel's, as perf would have kept them:
 *
 *	aux_data KIND FORM FILE CPU3 THREAD
 *
 * KIND: arm_spe or cs_etm; FORM: little, big (the byte order) or pipe. What the hardware of CPU 3
 * wrote, in two pieces with another's between them, and that of thread 42 on any CPU, are also
 * written by themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/perf_writer.h"

enum { AUXTRACE_INFO = 70, AUXTRACE = 71, CS_ETM = 3, ARM_SPE = 4, RECORDS = 600 };

struct raw {
	uint8_t v[65536];
	size_t n;
};

static void add(struct raw *r, const void *bytes, size_t n)
{
	memcpy(r->v + r->n, bytes, n);
	r->n += n;
}

static void add_number(struct raw *r, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		r->v[r->n++] = (uint8_t)(v >> 8 * i);
}

/* A record of Arm's Statistical Profiling Extension: an address of code, which operation it was,
 * what happened, the time, which is its end. */
static void add_spe(struct raw *r, uint64_t i)
{
	add(r, "\xb0", 1);
	add_number(r, 0x400000 + 4 * i, 7);
	add(r, "\xc0\x49\x00\x52\x02\x00\x71", 7);
	add_number(r, 1000 + i, 8);
}

/* A frame of CoreSight's formatter, of 16 bytes: first who speaks, then A-Sync or atoms of ETMv4,
 * and the lowest bits of every second byte. */
static void add_frame(struct raw *r, uint64_t i)
{
	uint8_t frame[16] = {0x11 << 1 | 1};

	frame[14] = i % 8 ? 0xf7 : 0x80;
	add(r, frame, sizeof(frame));
}

static void make(struct raw *r, int kind, uint64_t seed)
{
	r->n = 0;
	for (uint64_t i = 0; i < RECORDS; i++)
		(kind == ARM_SPE ? add_spe : add_frame)(r, seed + i);
}

static void put_info(struct perf_writer *w, int kind)
{
	size_t at = perf_begin_event(w, AUXTRACE_INFO, 0);

	perf_put(w, (uint64_t)kind, 4);
	perf_put(w, 0, 4);
	perf_put(w, 0, 8);
	perf_put(w, 0, 8);
	perf_end_event(w, at);
}

static void put_piece(struct perf_writer *w, const struct raw *r, size_t from, size_t to,
		      const uint32_t of[3])
{
	size_t at = perf_begin_event(w, AUXTRACE, 0);

	perf_put(w, to - from, 8);
	perf_put(w, from, 8);
	perf_put(w, 0x1234, 8);
	for (int i = 0; i < 3; i++) /* which buffer, thread, CPU */
		perf_put(w, of[i], 4);
	perf_put(w, 0, 4);
	perf_end_event(w, at);
	perf_put_bytes(w, r->v + from, to - from);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f)) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static const uint32_t cpu3[] = {0, UINT32_MAX, 3}, thread[] = {1, 42, UINT32_MAX};
	static struct raw a, b;
	struct perf_writer events = {0}, w = {0};
	int kind;

	if (argc != 6) {
		fprintf(stderr, "usage: aux_data KIND FORM FILE CPU3 THREAD\n");
		return 1;
	}
	kind = strcmp(argv[1], "arm_spe") ? CS_ETM : ARM_SPE;
	events.big = w.big = !strcmp(argv[2], "big");
	make(&a, kind, 0);
	make(&b, kind, 5000);
	put_info(&events, kind);
	put_piece(&events, &a, 0, 4096, cpu3);
	put_piece(&events, &b, 0, b.n, thread);
	put_piece(&events, &a, 4096, a.n, cpu3);
	(strcmp(argv[2], "pipe") ? perf_write_file : perf_write_pipe)(&w, &events);
	write_file(argv[3], w.b, w.n);
	write_file(argv[4], a.v, a.n);
	write_file(argv[5], b.v, b.n);
	perf_writer_free(&w);
	perf_writer_free(&events);
	return 0;
}
