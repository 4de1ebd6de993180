// SPDX-License-Identifier: GPL-2.0-or-later
/* perf.data: files and pipes of both byte orders, compressed, cut off, and such as lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/perfdata/perfdata.h"
#include "tests/lib/perf_writer.h"

/* --- what was read, as text --- */

struct text {
	char s[8192];
	size_t n;
};

static PRINTF(2, 3) void say(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->s + t->n, sizeof(t->s) - t->n, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof(t->s) - t->n);
	t->n += (size_t)n;
}

static void on_field(void *arg, const struct perfdata_field *f)
{
	struct text *t = arg;

	if (f->kind != PERFDATA_END)
		say(t, " %s%s", f->name ? f->name : "", f->name ? "=" : "");
	switch (f->kind) {
	case PERFDATA_NUMBER:
	case PERFDATA_TIME:
		say(t, "%llu", (unsigned long long)f->number);
		break;
	case PERFDATA_SIGNED:
		say(t, "%lld", (long long)f->number);
		break;
	case PERFDATA_HEX:
		say(t, "0x%llx", (unsigned long long)f->number);
		break;
	case PERFDATA_TEXT:
		say(t, "%.*s", (int)f->len, f->data);
		break;
	case PERFDATA_BYTES:
		for (size_t i = 0; i < f->len; i++)
			say(t, "%02x", (uint8_t)f->data[i]);
		break;
	case PERFDATA_LIST:
	case PERFDATA_OBJECT:
		say(t, "{");
		break;
	case PERFDATA_END:
		say(t, " }");
	}
}

static struct perfdata *open_bytes(const struct perf_writer *w)
{
	struct perfdata *p = NULL;
	struct error e = {0};

	if (perfdata_open(perf_memory_file(w->b, w->n), "x", &p, &e) < 0)
		fail_msg("%s", e.text);
	return p;
}

/* Those of the kernel, a line for each; what went wrong in the last one. */
static void read_all(struct perfdata *p, struct text *t, struct error *e)
{
	struct perfdata_sink sink = {on_field, t};
	struct perfdata_event ev;
	int r;

	*e = (struct error){0};
	while ((r = perfdata_next(p, &ev, e)) > 0) {
		if (ev.type >= PERFDATA_HEADER_ATTR)
			continue;
		say(t, "%s", perfdata_type_name(ev.type));
		if (perfdata_describe(p, &ev, &sink) < 0)
			say(t, " (cut off)");
		say(t, "\n");
	}
	assert_true(r == 0 || (r == e->code && *e->text));
}

/* --- some events --- */

static void put_comm(struct perf_writer *w)
{
	size_t at = perf_begin_event(w, PERF_RECORD_COMM, 0);

	perf_put(w, 17, 4);
	perf_put(w, 18, 4);
	perf_put_text(w, "sleep", 8);
	perf_put_sample_id(w, 17, 1000000001, 3);
	perf_end_event(w, at);
}

static void put_sample(struct perf_writer *w, uint64_t ip)
{
	size_t at = perf_begin_event(w, PERF_RECORD_SAMPLE, 2);

	perf_put(w, PERF_WRITER_ID + 1, 8);
	perf_put(w, ip, 8);
	perf_put(w, 17, 4);
	perf_put(w, 18, 4);
	perf_put(w, 2000000000, 8);
	perf_put(w, 1, 4);
	perf_put(w, 0, 4);
	perf_put(w, 250000, 8);
	perf_end_event(w, at);
}

static void put_lost(struct perf_writer *w)
{
	size_t at = perf_begin_event(w, PERF_RECORD_LOST, 0);

	perf_put(w, PERF_WRITER_ID, 8);
	perf_put(w, 5, 8);
	perf_put_sample_id(w, 0, 3, 0);
	perf_end_event(w, at);
}

static void put_some(struct perf_writer *w)
{
	put_comm(w);
	put_sample(w, 0xffffffff81000000);
	put_sample(w, 0x401000);
	put_lost(w);
}

static const char some[] =
	"COMM pid=17 tid=18 comm=sleep sample_id={ pid=17 tid=18 time=1000000001 cpu=3 id=7 }\n"
	"SAMPLE event=clock id=8 ip=0xffffffff81000000 pid=17 tid=18 time=2000000000 cpu=1 "
	"period=250000\n"
	"SAMPLE event=clock id=8 ip=0x401000 pid=17 tid=18 time=2000000000 cpu=1 period=250000\n"
	"LOST id=7 lost=5 sample_id={ pid=0 tid=1 time=3 cpu=0 id=7 }\n";

static void write_form(struct perf_writer *to, const struct perf_writer *events, bool pipe)
{
	if (pipe)
		perf_write_pipe(to, events);
	else
		perf_write_file(to, events);
}

static void check_form(bool pipe, bool big)
{
	struct perf_writer events = {.big = big}, w = {0};
	const struct perfdata_attr *a;
	struct text t = {.n = 0};
	struct perfdata *p;
	struct error e;

	put_some(&events);
	write_form(&w, &events, pipe);
	p = open_bytes(&w);
	assert_int_equal(perfdata_header(p)->pipe, pipe);
	assert_int_equal(perfdata_header(p)->swapped, big);
	read_all(p, &t, &e);
	assert_string_equal(e.text, "");
	assert_string_equal(t.s, some);
	a = perfdata_attr(p, 0);
	assert_non_null(a);
	assert_string_equal(a->name, "clock");
	assert_int_equal(a->attr.sample_period, 250000);
	assert_int_equal(a->flags, 1 | 1 << 18);
	assert_int_equal(a->n_ids, 2);
	assert_int_equal(a->ids[1], 8);
	assert_null(perfdata_attr(p, 1));
	perfdata_close(p);
	perf_writer_free(&w);
	perf_writer_free(&events);
}

static void every_form_says_the_same(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		check_form(i & 1, i & 2);
}

/* What was there is given, and that it was not all is said. */
static void short_features_are_said(void **state)
{
	struct perf_writer events = {0}, w = {0};
	struct text t = {.n = 0};
	struct perfdata_sink sink = {on_field, &t};
	struct perfdata *p;
	struct error e;
	unsigned bit = 0;
	uint8_t *host;

	(void)state;
	put_comm(&events);
	perf_write_file(&w, &events);
	host = memmem(w.b, w.n, "box", 4);
	assert_non_null(host);
	host[-4] = 0xff; /* its length */
	p = open_bytes(&w);
	assert_int_equal(perfdata_feature(p, &bit, &sink, &e), -ENODATA);
	assert_string_equal(e.text, "feature 3 is shorter than what it says it has");
	assert_int_equal(perfdata_feature(p, &bit, &sink, &e), 1);
	perfdata_close(p);
	perf_writer_free(&w);
	perf_writer_free(&events);
}

static void features_are_described(void **state)
{
	struct perf_writer events = {0}, w = {0};
	struct text t = {.n = 0};
	struct perfdata_sink sink = {on_field, &t};
	struct perfdata *p;
	struct error e;
	unsigned bit = 0;

	(void)state;
	put_comm(&events);
	perf_write_file(&w, &events);
	p = open_bytes(&w);
	assert_int_equal(perfdata_feature(p, &bit, &sink, &e), 1);
	assert_int_equal(perfdata_feature(p, &bit, &sink, &e), 1);
	assert_int_equal(perfdata_feature(p, &bit, &sink, &e), 0);
	assert_string_equal(t.s,
			    " HOSTNAME={ value=box } EVENT_DESC={ events={ { name=clock type=1 "
			    "config=0x0 ids={ 7 8 } } } }");
	perfdata_close(p);
	perf_writer_free(&w);
	perf_writer_free(&events);
}

/* --- every type --- */

#define WORDS 12
static const struct {
	uint32_t type;
	uint16_t misc;
	uint8_t bytes[WORDS]; /* of each number; 0: the end */
	uint64_t v[WORDS];
	const char *text;     /* behind them, padded to 8 bytes */
	const char *expected; /* before the sample_id */
} types[] = {
	{1,
	 0,
	 {4, 4, 8, 8, 8},
	 {3, 4, 0x1000, 0x2000, 0x3000},
	 "/bin/x",
	 "MMAP pid=3 tid=4 addr=0x1000 len=0x2000 pgoff=0x3000 filename=/bin/x"},
	{4, 0, {4, 4, 4, 4, 8}, {5, 1, 6, 2, 99}, NULL, "EXIT pid=5 ppid=1 tid=6 ptid=2 time=99"},
	{5, 0, {8, 8, 8}, {1, 2, 3}, NULL, "THROTTLE time=1 id=2 stream_id=3"},
	{6, 0, {8, 8, 8}, {1, 2, 3}, NULL, "UNTHROTTLE time=1 id=2 stream_id=3"},
	{7, 0, {4, 4, 4, 4, 8}, {5, 1, 6, 2, 99}, NULL, "FORK pid=5 ppid=1 tid=6 ptid=2 time=99"},
	{8,
	 0,
	 {4, 4, 8, 8},
	 {5, 6, 1000, 7},
	 NULL,
	 "READ event=clock pid=5 tid=6 read={ value=1000 id=7 }"},
	{10,
	 0,
	 {4, 4, 8, 8, 8, 4, 4, 8, 8, 4, 4},
	 {3, 4, 0x10, 0x20, 0x30, 8, 1, 77, 1, 5, 2},
	 "/lib",
	 "MMAP2 pid=3 tid=4 addr=0x10 len=0x20 pgoff=0x30 maj=8 min=1 ino=77 ino_generation=1 "
	 "prot=0x5 flags=0x2 filename=/lib"},
	{11, 0, {8, 8, 8}, {0x10, 0x20, 1}, NULL, "AUX aux_offset=0x10 aux_size=0x20 flags=0x1"},
	{12, 0, {4, 4}, {9, 10}, NULL, "ITRACE_START pid=9 tid=10"},
	{13, 0, {8}, {4}, NULL, "LOST_SAMPLES lost=4"},
	{14, 1 << 13, {0}, {0}, NULL, "SWITCH switch=out"},
	{15, 0, {4, 4}, {9, 10}, NULL, "SWITCH_CPU_WIDE switch=in prev_pid=9 prev_tid=10"},
	{15, 1 << 13, {4, 4}, {9, 10}, NULL, "SWITCH_CPU_WIDE switch=out next_pid=9 next_tid=10"},
	{16,
	 0,
	 {4, 4, 8, 8, 8},
	 {1, 2, 1, 4, 5},
	 NULL,
	 "NAMESPACES pid=1 tid=2 namespaces={ { name=net dev=4 inode=5 } }"},
	{17,
	 0,
	 {8, 4, 2, 2},
	 {0x1000, 16, 1, 0},
	 "bpf_prog",
	 "KSYMBOL addr=0x1000 len=16 ksym_type=1 flags=0 name=bpf_prog"},
	{18,
	 0,
	 {2, 2, 4, 1, 1, 1, 1, 1, 1, 1, 1},
	 {1, 0, 42, 1, 2, 3, 4, 5, 6, 7, 8},
	 NULL,
	 "BPF_EVENT type=1 flags=0 id=42 tag=0102030405060708"},
	{19, 0, {8}, {123}, "/a/b", "CGROUP id=123 path=/a/b"},
	{20,
	 0,
	 {8, 2, 2, 1, 1, 1},
	 {0x1000, 1, 2, 0x90, 0xcc, 0xc3},
	 "",
	 "TEXT_POKE addr=0x1000 old=90 new=ccc3"},
	{21, 0, {8}, {0x20}, NULL, "AUX_OUTPUT_HW_ID hw_id=0x20"},
	{22,
	 0,
	 {8, 8, 8},
	 {5, 1, 0x401000},
	 NULL,
	 "CALLCHAIN_DEFERRED cookie=5 callchain={ 0x401000 }"},
	{65, 0, {8}, {3}, "cycles", "HEADER_EVENT_TYPE event_id=3 name=cycles"},
	{66, 0, {4}, {0}, NULL, "TRACING_DATA size=0"},
	{68, 0, {0}, {0}, NULL, "FINISHED_ROUND"},
	{69,
	 0,
	 {8, 8, 8, 8, 8},
	 {1, 7, 0, 3, UINT64_MAX},
	 NULL,
	 "ID_INDEX entries={ { id=7 idx=0 cpu=3 tid=-1 } }"},
	{70,
	 0,
	 {4, 4, 8, 8},
	 {4, 0, 1, 2},
	 NULL,
	 "AUXTRACE_INFO kind=arm_spe values={ 0x1 0x2 } more="},
	{70,
	 0,
	 {4, 4, 8, 8},
	 {3, 0, 1, 2},
	 NULL,
	 "AUXTRACE_INFO kind=cs_etm values={ 0x1 0x2 } more="},
	{70,
	 0,
	 {4, 4, 8, 8},
	 {1, 0, 6, 31},
	 NULL,
	 "AUXTRACE_INFO kind=intel_pt pmu_type=0x6 time_shift=0x1f more="},
	{71,
	 0,
	 {8, 8, 8, 4, 4, 4, 4},
	 {0, 64, 5, 1, UINT32_MAX, 2, 0},
	 NULL,
	 "AUXTRACE size=0 aux_offset=0x40 reference=0x5 idx=1 tid=-1 cpu=2"},
	{72,
	 0,
	 {4, 4, 4, 4, 4, 4, 8, 8},
	 {1, 5, 0, 9, 9, 1, 0x1000, 7},
	 "lost",
	 "AUXTRACE_ERROR error_type=1 code=5 cpu=0 pid=9 tid=9 ip=0x1000 time=7 msg=lost"},
	{73,
	 0,
	 {8, 8},
	 {1, 17},
	 "sleep           ",
	 "THREAD_MAP threads={ { pid=17 comm=sleep            } }"},
	{74, 0, {2, 2, 2, 2}, {0, 2, 1, 3}, NULL, "CPU_MAP cpus={ 1 3 }"},
	{74, 0, {2, 2, 2, 4, 8}, {1, 1, 8, 0, 5}, NULL, "CPU_MAP cpus={ 0 2 }"},
	{74, 0, {2, 1, 1, 2, 2}, {2, 0, 0, 4, 6}, NULL, "CPU_MAP cpus={ 4 5 6 }"},
	{75,
	 0,
	 {8, 8, 8},
	 {1, 1, 1000},
	 NULL,
	 "STAT_CONFIG config={ { tag=interval value=1000 } }"},
	{76,
	 0,
	 {8, 4, 4, 8, 8, 8},
	 {7, 1, 0, 100, 50, 25},
	 NULL,
	 "STAT id=7 cpu=1 thread=0 value=100 time_enabled=50 time_running=25"},
	{77, 0, {8, 8}, {1, 99}, NULL, "STAT_ROUND round=final time=99"},
	{78, 0, {8, 8}, {0, 7}, "ms", "EVENT_UPDATE id=7 unit=ms"},
	{79, 0, {8, 8, 8}, {31, 5, 9}, NULL, "TIME_CONV time_shift=31 time_mult=5 time_zero=9"},
	{80, 0, {8, 4}, {4, 4}, "6.1", "HEADER_FEATURE OSRELEASE={ value=6.1 }"},
	{82, 0, {0}, {0}, NULL, "FINISHED_INIT"},
};

static void put_type(struct perf_writer *w, size_t i)
{
	size_t at = perf_begin_event(w, types[i].type, types[i].misc);

	for (size_t k = 0; k < WORDS && types[i].bytes[k]; k++)
		perf_put(w, types[i].v[k], types[i].bytes[k]);
	if (types[i].text)
		perf_put_text(w, types[i].text, (strlen(types[i].text) + 8) / 8 * 8);
	if (types[i].type < 64)
		perf_put_sample_id(w, 1, 2, 3);
	perf_end_event(w, at);
}

static void check_type(size_t i, bool big)
{
	static const char id[] = " sample_id={ pid=1 tid=2 time=2 cpu=3 id=7 }";
	struct perf_writer events = {.big = big}, w = {0};
	struct text t = {.n = 0}, expected = {.n = 0};
	struct perfdata_sink sink = {on_field, &t};
	struct perfdata_event ev;
	struct perfdata *p;
	struct error e = {0};

	put_type(&events, i);
	perf_write_file(&w, &events);
	p = open_bytes(&w);
	assert_int_equal(perfdata_next(p, &ev, &e), 1);
	say(&t, "%s", perfdata_type_name(ev.type));
	assert_int_equal(perfdata_type_of(perfdata_type_name(ev.type)), ev.type);
	if (perfdata_describe(p, &ev, &sink))
		fail_msg("%s is too short", t.s);
	say(&expected, "%s%s", types[i].expected, ev.type < 64 ? id : "");
	assert_string_equal(t.s, expected.s);
	assert_int_equal(perfdata_next(p, &ev, &e), 0);
	perfdata_close(p);
	perf_writer_free(&w);
	perf_writer_free(&events);
}

static void every_type_is_described(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		for (unsigned big = 0; big < 2; big++)
			check_type(i, big);
}

/* --- compressed --- */

static void check_packed(const struct perf_writer *packed, const char *expected,
			 const char *message)
{
	struct perf_writer w = {0};
	struct text t = {.n = 0};
	struct perfdata *p;
	struct error e;

	perf_write_file(&w, packed);
	p = open_bytes(&w);
	read_all(p, &t, &e);
	assert_string_equal(t.s, expected);
	if (message)
		assert_non_null(strstr(e.text, message));
	else
		assert_string_equal(e.text, "");
	perfdata_close(p);
	perf_writer_free(&w);
}

static void compressed_ones_come_out(void **state)
{
	(void)state;
	for (uint32_t type = PERFDATA_COMPRESSED; type <= PERFDATA_COMPRESSED2; type += 2) {
		for (size_t piece = 1; piece < 200; piece = piece * 3 + 4) {
			struct perf_writer events = {.big = piece & 1}, packed = {0};

			put_some(&events);
			perf_write_packed(&packed, &events, piece, type);
			check_packed(&packed, some, NULL);
			perf_writer_free(&packed);
			perf_writer_free(&events);
		}
	}
}

static void compressed_lies_are_refused(void **state)
{
	struct perf_writer events = {0}, packed = {0}, twice = {0};

	(void)state;
	put_some(&events);
	/* its rest is missing */
	events.n -= 8;
	perf_write_packed(&packed, &events, 1000, PERFDATA_COMPRESSED);
	check_packed(&packed,
		     "COMM pid=17 tid=18 comm=sleep sample_id={ pid=17 tid=18 time=1000000001 "
		     "cpu=3 id=7 }\nSAMPLE event=clock id=8 ip=0xffffffff81000000 pid=17 "
		     "tid=18 time=2000000000 cpu=1 period=250000\nSAMPLE event=clock id=8 "
		     "ip=0x401000 pid=17 tid=18 time=2000000000 cpu=1 period=250000\n",
		     "cut off");
	/* compressed ones in a compressed one */
	perf_write_packed(&twice, &packed, 1000, PERFDATA_COMPRESSED);
	check_packed(&twice, "", "no event is in it");
	/* no zstd */
	packed.b[8] ^= 0xff;
	check_packed(&packed, "", "cannot be read");
	perf_writer_free(&twice);
	perf_writer_free(&packed);
	perf_writer_free(&events);
}

/* 400 MB of zeros in some KB: nothing of it is kept. */
static void a_bomb_is_no_event(void **state)
{
	struct perf_writer zeros = {0}, packed = {0};

	(void)state;
	zeros.b = calloc(1, 400u << 20);
	assert_non_null(zeros.b);
	zeros.n = zeros.max = 400u << 20;
	perf_write_packed(&packed, &zeros, zeros.n, PERFDATA_COMPRESSED);
	assert_true(packed.n < 1u << 16);
	check_packed(&packed, "", "no event is in it");
	perf_writer_free(&zeros);
	perf_writer_free(&packed);
}

/* --- cut off, and lies --- */

static void what_is_cut_off_is_read_up_to_there(void **state)
{
	struct perf_writer events = {0}, w = {0};

	(void)state;
	put_some(&events);
	for (unsigned pipe = 0; pipe < 2; pipe++) {
		write_form(&w, &events, pipe);
		for (size_t n = 0; n < w.n; n++) {
			struct perfdata *p = NULL;
			struct text t = {.n = 0};
			struct error e = {0};

			if (perfdata_open(perf_memory_file(w.b, n), "x", &p, &e) < 0) {
				assert_true(*e.text);
				continue;
			}
			read_all(p, &t, &e);
			/* only names may be missing */
			if (!strstr(t.s, "SAMPLE id="))
				assert_memory_equal(t.s, some, t.n);
			perfdata_close(p);
		}
		perf_writer_free(&w);
	}
	perf_writer_free(&events);
}

static void open_fails(struct perf_writer *w, const char *message)
{
	struct perfdata *p = NULL;
	struct error e = {0};

	assert_true(perfdata_open(perf_memory_file(w->b, w->n), "x", &p, &e) < 0);
	if (!strstr(e.text, message))
		fail_msg("'%s' does not say '%s'", e.text, message);
	perf_writer_free(w);
}

static void lies_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint64_t v;
		const char *message;
	} lies[] = {
		{0, 0, "does not begin"},
		{16, 7, "size of its attributes"},
		{24, 1ull << 60, "lie outside"},
		{32, 1ull << 60, "too many attributes"},
		{216, 1ull << 40, "lie outside of it"},
		{224, 1ull << 40, "lie outside of it"},
		{40, UINT64_MAX, "events lie outside"},
	};
	struct perf_writer events = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct perf_writer w = {0};

		perf_write_file(&w, &events);
		memcpy(w.b + lies[i].at, &lies[i].v, 8);
		open_fails(&w, lies[i].message);
	}
}

static void sizes_that_cannot_be(void **state)
{
	(void)state;
	for (uint16_t size = 0; size < 8; size++) {
		struct perf_writer events = {0};

		put_comm(&events);
		memcpy(events.b + 6, &size, 2);
		check_packed(&events, "", "its size is");
		perf_writer_free(&events);
	}
	for (uint16_t size = 8; size < 52; size += 4) {
		struct perf_writer events = {0}, w = {0};
		struct text t = {.n = 0};
		struct perfdata *p;
		struct error e;

		put_sample(&events, 1);
		memcpy(events.b + 6, &size, 2);
		perf_write_file(&w, &events);
		p = open_bytes(&w);
		read_all(p, &t, &e);
		assert_non_null(strstr(t.s, "(cut off)"));
		perfdata_close(p);
		perf_writer_free(&w);
		perf_writer_free(&events);
	}
}

/* --- traces --- */

static void put_auxtrace(struct perf_writer *w, uint64_t size, const char *bytes)
{
	size_t at = perf_begin_event(w, PERFDATA_AUXTRACE, 0);

	perf_put(w, size, 8);
	perf_put(w, 0x100, 8);
	perf_put(w, 1, 8);
	perf_put(w, 0, 4);
	perf_put(w, UINT32_MAX, 4);
	perf_put(w, 3, 4);
	perf_put(w, 0, 4);
	perf_end_event(w, at);
	perf_put_bytes(w, bytes, strlen(bytes));
}

static void traces_are_given_or_skipped(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct perf_writer events = {.big = i & 2}, w = {0};
		struct perfdata_event ev;
		struct perfdata_aux a;
		struct perfdata *p;
		struct error e = {0};
		char got[8];
		size_t n;

		put_auxtrace(&events, 5, "hello");
		put_auxtrace(&events, 5, "other");
		put_comm(&events);
		write_form(&w, &events, i & 1);
		p = open_bytes(&w);
		do
			assert_int_equal(perfdata_next(p, &ev, &e), 1);
		while (!perfdata_aux(p, &ev, &a));
		assert_int_equal(a.size, 5);
		assert_int_equal(a.offset, 0x100);
		assert_int_equal(a.cpu, 3);
		assert_int_equal(a.tid, UINT32_MAX);
		assert_int_equal(perfdata_payload(p, got, 3, &n, &e), 0);
		assert_int_equal(n, 3);
		assert_memory_equal(got, "hello", 3);
		assert_int_equal(perfdata_payload(p, got, 8, &n, &e), 0);
		assert_int_equal(n, 2);
		assert_int_equal(perfdata_payload(p, got, 8, &n, &e), 0);
		assert_int_equal(n, 0);
		assert_int_equal(perfdata_next(p, &ev, &e), 1);
		assert_true(perfdata_aux(p, &ev, &a));
		assert_int_equal(perfdata_next(p, &ev, &e), 1);
		assert_int_equal(ev.type, PERF_RECORD_COMM);
		assert_int_equal(perfdata_next(p, &ev, &e), 0);
		perfdata_close(p);
		perf_writer_free(&w);
		perf_writer_free(&events);
	}
}

static void traces_that_are_not_there(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct perf_writer events = {0}, w = {0};
		struct perfdata_event ev;
		struct perfdata_aux a;
		struct perfdata *p;
		struct error e = {0};
		char got[8];
		size_t n, all = 0;
		int r;

		put_auxtrace(&events, i & 2 ? UINT64_MAX : 1000, "hello");
		write_form(&w, &events, i & 1);
		p = open_bytes(&w);
		do
			assert_int_equal(perfdata_next(p, &ev, &e), 1);
		while (!perfdata_aux(p, &ev, &a));
		while ((r = perfdata_payload(p, got, 8, &n, &e)) == 0 && n)
			all += n;
		assert_int_equal(r, -EBADMSG);
		assert_int_equal(all, 5);
		assert_true(perfdata_next(p, &ev, &e) < 0);
		perfdata_close(p);
		perf_writer_free(&w);
		perf_writer_free(&events);
	}
}

static void when_and_where(void **state)
{
	struct perf_writer events = {0}, w = {0};
	struct perfdata_event ev;
	struct perfdata_when when;
	struct perfdata *p;
	struct error e = {0};

	(void)state;
	put_comm(&events);
	put_sample(&events, 1);
	perf_write_file(&w, &events);
	p = open_bytes(&w);
	assert_int_equal(perfdata_next(p, &ev, &e), 1);
	assert_true(perfdata_when(p, &ev, &when));
	assert_int_equal(when.pid, 17);
	assert_int_equal(when.tid, 18);
	assert_int_equal(when.cpu, 3);
	assert_int_equal(when.time, 1000000001);
	assert_int_equal(perfdata_next(p, &ev, &e), 1);
	assert_true(perfdata_when(p, &ev, &when));
	assert_int_equal(when.time, 2000000000);
	assert_int_equal(when.cpu, 1);
	assert_int_equal(when.id, 8);
	perfdata_close(p);
	perf_writer_free(&w);
	perf_writer_free(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_says_the_same),
		cmocka_unit_test(features_are_described),
		cmocka_unit_test(short_features_are_said),
		cmocka_unit_test(every_type_is_described),
		cmocka_unit_test(compressed_ones_come_out),
		cmocka_unit_test(compressed_lies_are_refused),
		cmocka_unit_test(a_bomb_is_no_event),
		cmocka_unit_test(what_is_cut_off_is_read_up_to_there),
		cmocka_unit_test(lies_are_refused),
		cmocka_unit_test(sizes_that_cannot_be),
		cmocka_unit_test(traces_are_given_or_skipped),
		cmocka_unit_test(traces_that_are_not_there),
		cmocka_unit_test(when_and_where),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
