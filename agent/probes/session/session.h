/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A probe at work: resolved to the places that it names, attached, and what comes out of it. Who
 * runs it calls session_records() every few milliseconds, since nothing wakes a reader up.
 */
#ifndef AX_PROBES_SESSION_SESSION_H
#define AX_PROBES_SESSION_SESSION_H

#include "probes/fetch/fetch.h"
#include "probes/place/place.h"
#include "probes/session/defaults.h"

/* One probe text of a session and what it does. Others than the first can arm states that it tests,
 * or begin the time that it measures; or all of them make records (a flow of calls). */
struct session_part {
	const struct probe_spec *spec; /* must live as long as the session */
	enum trace_action action;
	struct trace_buckets buckets; /* TRACE_HIST, TRACE_LATENCY */
	/* Happens only while this state is armed: 0: always, else the number that a part with
	 * TRACE_ARM has in `state`. */
	uint32_t when;
	uint32_t state;	 /* TRACE_ARM, TRACE_DISARM: which one, from 1 on */
	bool per_thread; /* `when`, `state`: each thread has one of its own */
	/* TRACE_LATENCY between two probes: this part's time starts at the last TRACE_START of the
	 * session with the same value of `on` (a number), NULL: in the same thread. */
	bool between;
	const struct probe_arg *on;
	/* Instead of the spec's symbol: offsets of functions in its file; NULL: none. Borrowed. */
	const uint64_t *offsets;
	size_t n_offsets;
	/* After the values: all parameters of each function that its debug data tells, as many as
	 * there is room for; what cannot be fetched is left out. */
	bool all_parameters;
	/* Places are also moved if a register is fetched that is another one a few instructions on
	 * (%ip). */
	bool move;
	/* Returns of functions are probed at their RET instructions, as in Go programs: a uretprobe
	 * is in the way of C++'s exceptions. */
	bool at_rets;
	/* TRACE_WATCH: the thread stops behind it, if a tracer has seized it (probes/step). */
	bool stops;
	/* What the function is to return instead: then it is refused where that is in no register
	 * that can be set. Borrowed; NULL: nothing is set. */
	const struct fetch_result *result;
	/* Several parts may count, each into a table of its own or one that it shares: which one,
	 * from 1 on; 0: this part is the only one that counts. */
	uint32_t table;
	/* Happens only if the last part that does not follow did, on the same place. */
	bool follows;
	uint32_t timer; /* `between`, TRACE_START: which of several */
	/* Happens also in processes that the session's options leave out. */
	bool anywhere;
	/* TRACE_SET: the variable, from 1 on; 0: only the condition is looked at. */
	uint32_t variable;
	enum probe_variable_kind kind; /* of a map's it is `on` that tells which of them */
	bool adds;
	/* Whose values have their types also in this part's condition. Borrowed. */
	const struct probe_spec *const *likes;
	size_t n_likes;
};

struct latency;
/* What measures time: at most two parts, which point into *l. Their number. */
size_t latency_parts(const struct latency *l, struct session_part *parts);

struct session_probe;

/* What came of a file that a followed process came to. */
struct session_later {
	const char *path; /* as the kernel opened it */
	int pid;	  /* of who came to it */
	size_t n_places;
	const char *failed; /* why there are none, NULL: there are */
};

struct session_options {
	/* Only this process, 0: all; files' names are as it sees them. */
	int pid;
	const uint32_t
		*pids; /* only these, of which `pid` is the first; 0: `pid` alone. Borrowed */
	size_t n_pids;
	/* Also processes that those start; and files that fit the probes' names and that processes
	 * come to while the session is at work. */
	bool follow;
	void (*on_later)(void *arg, const struct session_later *l);
	/* Whether what one of them fetches can be used; NULL: all can. */
	int (*accept)(void *arg, const struct session_probe *p, struct error *e);
	void *later_arg;
	struct ax_scope scope; /* only processes of these cgroups and those below them */
	uint32_t flight;       /* records are kept, the last so many, and not sent; 0: sent */
	bool exact;	       /* places are not moved */
	/* Call stacks of programs in records are what frame pointers lead to: no stack is copied.
	 */
	bool frame_pointers;
	uint32_t ring_bytes; /* for records on their way, a power of two; 0: ENGINE_RING_BYTES */
	/* A file with types of functions that programs have no debug data of; NULL: none. */
	const char *types;
	bool script;		  /* parts on one place happen in their order */
	struct probe_texts texts; /* which of its variables are texts */
	/* A directory of a bpf filesystem where the session stays when this process ends, and its
	 * text (pinned.c); NULL: it ends with the process. */
	const char *pin, *text;
	const char *apps; /* where apps have their cgroups (base/cgroup_apps.h), for `app`; NULL:
			     not known */
	bool disabled;	  /* with `pin`: all is made, but nothing attached */
	uint32_t *failed; /* becomes the part that cannot be resolved; NULL: nobody asks */
};

/* One place, as it was resolved. */
struct session_probe {
	uint32_t part;
	uint32_t name;	    /* index of session_name() */
	bool placed;	    /* of user functions: where exactly */
	struct place place; /* refused ones are only explained */
	uint64_t semaphore;
	bool attached; /* takes part */
	/* The probe whose entry belongs to this return: itself, but where a function has several
	 * (Go), of which each is a probe of its own. */
	uint32_t entry_of;
	bool is_return; /* the kernel's uretprobe or kretprobe */
	bool go;	/* by Go's ABI */
	struct fetch fetch;
};

struct session;
/* Resolves names and makes the programs; attaches nothing. Copies the parts. */
int session_open(const struct session_part *parts, size_t n, const struct session_options *o,
		 struct session **ret, struct error *e);
void session_close(struct session *s);
static inline void session_closep(struct session **s)
{
	if (*s)
		session_close(*s);
}
size_t session_n_probes(const struct session *s);
/* How many there may be in the end. */
size_t session_max_probes(const struct session *s);
const struct session_probe *session_probe(const struct session *s, size_t i);
size_t session_n_names(const struct session *s);
/* "readline", "db:snapshot", "syscalls:sys_enter_openat" */
const char *session_name(const struct session *s, size_t i);
/* The file that a probe is in, NULL: the kernel. */
const char *session_path(const struct session *s, const struct session_probe *p);
/* What records and lines of tables have; the same for all places of a session but for the types of
 * USDT arguments, so it is asked with the record's probe. */
const struct fetch *session_fetch(const struct session *s, uint32_t probe);
/* What a value says of its own type when it is there, as interfaces of Go do. */
struct session_dynamic {
	uint64_t type;	     /* where the program has it */
	const void *of;	     /* the file whose type it is */
	const char *name;    /* "*errors.errorString" */
	bool pointer;	     /* to what the shape is of */
	bool direct;	     /* the value itself is where others have the value's address */
	struct shape *shape; /* whose text that it begins with is `followed` 1; NULL: not known */
};
/* Of a probe's file; lives as long as the session. NULL: it is not known. */
const struct session_dynamic *session_dynamic(struct session *s, uint32_t probe, uint64_t type);

/* Of the first part. */
struct trace_buckets session_buckets(const struct session *s);

/* -ENOENT: none of the places can be probed, for the reason that is given. */
int session_attach(struct session *s, struct error *e);
/* Whether it would come so far, as far as that is known before it is tried. */
int session_check(const struct session *s, struct error *e);
/* Only its first half: programs and maps are there, but nothing happens yet. */
int session_load(struct session *s, struct error *e);
const char *session_method(const struct session *s);
/* Of what is loaded: several probes may be at one. */
size_t session_n_places(const struct session *s);
/* Makes a part of PROBE_SELF happen, and those that follow it. */
int session_run(struct session *s, uint32_t part);
/* Readable when there is something to follow; -1: nothing is followed. */
int session_follow_fd(const struct session *s);
/* Does so, and tells options.on_later. */
void session_follow(struct session *s);
/* Whether the part has no place yet, but may get some. */
bool session_waits(const struct session *s, uint32_t part);
/* Ends what comes in; what is there can still be read. */
void session_detach(struct session *s);

/* One that was pinned, for reading: its probes have only what is shown. `text` (malloc'ed): what
 * was given with it. -ENOENT. */
int session_open_pinned(const char *pin, struct session **ret, char **text, struct error *e);
/* The last records of a flight recorder, oldest first, but for the first *seen (0: all that are
 * kept) of all that there have been. full_len is more than len when the record's last strings were
 * cut off. *seen is then how many have been, so that those that come later can be asked for. */
int session_flight(struct session *s,
		   int (*f)(void *arg, const struct ax_probe_record *r, size_t len,
			    size_t full_len),
		   void *arg, uint64_t *seen);
/* The addresses of a call stack that a value or key stands for, the innermost first. Their number,
 * or -ENOENT: it was not kept. */
int session_stack(struct session *s, uint64_t id, uint64_t *addresses, size_t max);
/* Calls f for each copy of a program's stack that has come (include/probe.h), by which the callers
 * of records are found that have its number. Their number, or what f returned below 0. */
int session_stack_copies(struct session *s, int (*f)(void *arg, const struct ax_stack_copy *c),
			 void *arg);

/* The function at `address` of a program in whose file the probe is, and was hit at the address
 * `hit`: also when the program has ended. *address becomes the one that the file has. -ENOENT. */
int session_symbolise(struct session *s, uint32_t probe, uint64_t hit, uint64_t *address,
		      struct symbol *ret);

/* Of a script, asked before session_records(): that has all records of before this time
 * (CLOCK_MONOTONIC), if session_has_settled() is true of it. 0: that is not known. */
uint64_t session_settled_ns(struct session *s);
bool session_has_settled(const struct session *s);
typedef int (*session_record_fn)(void *arg, const struct ax_probe_record *r, size_t len);
/* Calls f for every record. Their number, or what f returned below 0. */
int session_records(struct session *s, session_record_fn f, void *arg);

/* The table as it is, since the start, sorted by key. With a key of no parts and TRACE_COUNT, a
 * line for each name. */
struct session_row {
	uint64_t key[AX_PROBE_KEY]; /* as session_fetch()->keys says; then the bucket */
	struct ax_probe_cell cell;
};
struct session_table {
	struct session_row *v;
	size_t n;
	uint32_t words;
};
int session_table(struct session *s, struct session_table *ret);
/* The one that parts have as `table`; its keys are as if it were the only one. */
int session_table_of(struct session *s, uint32_t table, struct session_table *ret);
void session_table_free(struct session_table *t);
/* Takes from `now` what was in `before`; both sorted. Lines in which nothing was added go. */
void session_table_since(struct session_table *now, const struct session_table *before);

struct session_totals {
	uint64_t emitted;   /* how often a probe happened, its condition being true */
	uint64_t dropped;   /* of those: no room for the record or the line, or nothing to fetch */
	uint64_t unmatched; /* returns whose entry was before the start: no events */
	uint64_t no_call;   /* entries for which there was no room: their returns are unmatched */
	uint64_t too_deep;  /* calls nested so deeply that the kernel does not tell their returns */
	uint64_t no_variable; /* variables of threads that could not be set: there was no room */
	uint64_t unfollowed;  /* processes for which there was no room */
	uint64_t missed; /* no events: they happened while their CPU was busy with another one */
};
void session_totals(struct session *s, struct session_totals *ret);

#endif
