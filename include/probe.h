/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the probes' interpreter and user space share: the fetch programs, what a probe does, and the
 * records and tables that come out.
 *
 * A fetch program is a list of operations on an accumulator and a stack. It is checked where it is
 * made (agent/probes/fetch/fetch.c); the interpreter only keeps it from harming anything.
 */
#ifndef AX_PROBE_H
#define AX_PROBE_H

#include <linux/types.h>
#include "scope.h"
#include "user_stack.h"

#define AX_PROBE_STACK	   8	/* values below the accumulator */
#define AX_PROBE_OPS_MAX   256	/* of one probe */
#define AX_PROBE_VALUES	   32	/* of a record, less one: a mask is made of it */
#define AX_PROBE_SAVED	   8	/* values kept from a function's entry: a mask is made of it */
#define AX_PROBE_TEXT	   64	/* of a constant text, with its NUL */
#define AX_PROBE_BYTES	   8192 /* of a record's strings and buffers: a mask is made of it */
#define AX_PROBE_FETCH	   4096 /* the most that one string or buffer has */
#define AX_PROBE_KEY	   64	/* words of a table's key: a mask is made of it */
#define AX_PROBE_KEY_SHORT 8	/* words that are made 0 at once */
#define AX_PROBE_KEY_TEXT  64	/* bytes of a string in a key */
#define AX_PROBE_COMM	   16
#define AX_PROBE_SLOTS	   4   /* probes that can be at work on a CPU at the same time */
#define AX_PROBE_SLEEPERS  16  /* the same of those that wait for memory */
#define AX_PROBE_WORK	   16  /* of a CPU in at_work: as many as there are of either */
#define AX_PROBE_FRAMES	   127 /* of a call stack */
#define AX_PROBE_STATES	   16
#define AX_PROBE_QUICK_OPS 3   /* of a probe that is AX_PROBE_QUICK, at most */
#define AX_PROBE_CHAIN	   128 /* probes on one place, one after the other */
#define AX_PROBE_VARIABLES 32  /* of a script, of all threads and of each: from 1 on */
#define AX_PROBE_MAPS_FROM 64  /* its maps have numbers behind those */
#define AX_PROBE_VARIABLE  256 /* of a text in a variable, with its NUL */

/* Words of 8 bytes in the context of a function, struct pt_regs. */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define AX_PROBE_REGISTERS 21
#else
#define AX_PROBE_REGISTERS 34
#endif

enum ax_probe_code {
	AX_CODE_CONST,	  /* value */
	AX_CODE_CTX,	  /* what is in the context (registers, a tracepoint's record) at value */
	AX_CODE_USER,	  /* what is in memory at accumulator + value */
	AX_CODE_KERNEL,	  /* the same in the kernel's, or in a program's if it has that address */
	AX_CODE_SAVED,	  /* value: which of those that were kept at the entry */
	AX_CODE_ADDRESS,  /* the context's own address + value: of a tracepoint's record */
	AX_CODE_DATA_LOC, /* accumulator: offset and length in a tracepoint's record: its address */
	AX_CODE_PID,
	AX_CODE_TID,
	AX_CODE_NSECS,
	AX_CODE_CPU,
	AX_CODE_CGROUP,
	AX_CODE_ELAPSED, /* since the entry, in nanoseconds */
	AX_CODE_STACK,	 /* the number of the call stack; value: BPF_F_USER_STACK, or 0 */
	AX_CODE_FIND,	/* the other probe's time by what was kept as number 0, immediate: by thread
			 */
	AX_CODE_FAULTS, /* a bit for each word of the key that could not be fetched */
	AX_CODE_GLOBAL, /* value: which variable; 0 until it is set */
	AX_CODE_THREAD, /* the same of this thread */
	AX_CODE_SET_GLOBAL, /* the accumulator becomes it; immediate: is added to it */
	AX_CODE_SET_THREAD,
	AX_CODE_MAP,	 /* of the map `value` what is there by the accumulator */
	AX_CODE_SET_MAP, /* the same by what was kept as number 0 */
	/* The address of a text: of constant number `value`, or of a variable, `size`: enum
	 * ax_probe_text_of. */
	AX_CODE_TEXT,
	AX_CODE_SET_TEXT, /* the string at the accumulator becomes it */
	AX_CODE_TASK,	  /* the address of the thread's struct task_struct */
	/* The key begins with value, and is 0 behind that up to AX_PROBE_KEY_SHORT. */
	AX_CODE_TABLE,
	AX_CODE_EXTEND, /* the accumulator's low bytes, with their sign or without */
	/* the floating-point number that it is the bits of (size: 4 or 8) as a signed integer, so
	 * that these are in the same order; what is not a number could not be fetched */
	AX_CODE_ORDER,
	AX_CODE_SWAP, /* the accumulator with the last value on the stack */
	AX_CODE_NOT,
	/* two operands: what was pushed and the accumulator, or the accumulator and the value */
	AX_CODE_ADD,
	AX_CODE_SUB,
	AX_CODE_MUL,
	AX_CODE_DIV, /* of signed numbers; by 0: could not be fetched */
	AX_CODE_MOD,
	AX_CODE_AND,
	AX_CODE_OR,
	AX_CODE_XOR,
	AX_CODE_SHL,
	AX_CODE_SHR,
	AX_CODE_EQ,
	AX_CODE_NE,
	AX_CODE_LT, /* these four compare signed numbers, or with AX_OP_UNSIGNED */
	AX_CODE_LE,
	AX_CODE_GT,
	AX_CODE_GE,
	AX_CODE_LAND,
	AX_CODE_LOR,
	/* texts; of memory at the accumulator */
	AX_CODE_TEXT_EQ, /* is the string there the constant text number `value`? */
	AX_CODE_COMM_EQ, /* is the process's name? */
	AX_CODE_STRING,	 /* into the record; at most value bytes with the NUL */
	AX_CODE_BUFFER,	 /* value bytes */
	/* the accumulator's bytes into the record, of which the last so many (value, if it is
	 * stored) are a buffer; the next ones come `size` bytes behind */
	AX_CODE_PUT,
	/* these three as those without _LONG, of texts whose length is the last value on the stack
	 */
	AX_CODE_TEXT_EQ_LONG,
	AX_CODE_STRING_LONG,
	AX_CODE_KEY_STRING_LONG,
	AX_CODE_COMM,	    /* the process's name, into the record */
	AX_CODE_KEY_STRING, /* into the key, from word `to` on */
	AX_CODE_KEY_COMM,
	AX_CODE_FILTER, /* nothing more happens if the accumulator is 0, or could not be fetched */
};

enum ax_probe_text_of {
	AX_TEXT_CONSTANT,
	AX_TEXT_COMM, /* the process's name */
	AX_TEXT_GLOBAL,
	AX_TEXT_THREAD,
	AX_TEXT_MAP, /* by the accumulator; to be set: by what was kept as number 0 */
};

enum ax_probe_op_flag {
	AX_OP_PUSH = 1,	     /* the accumulator first goes onto the stack */
	AX_OP_IMMEDIATE = 2, /* the second operand is the value */
	AX_OP_STORE = 4,     /* the result is the record's value number `to` */
	AX_OP_KEY = 8,	     /* the result is the key's word `to` */
	AX_OP_KEEP = 16,     /* the result is kept for the return as number `to` */
	AX_OP_SIGNED = 32,   /* of what is fetched or extended */
	AX_OP_KERNEL = 64,   /* the text is in the kernel's memory */
	AX_OP_UNSIGNED = 128 /* what is compared are unsigned numbers */
};

struct ax_probe_op {
	__u8 code;  /* enum ax_probe_code */
	__u8 flags; /* enum ax_probe_op_flag */
	__u8 size;  /* of what is fetched: 1, 2, 4, 8 */
	__u8 to;
	__u32 pad;
	__u64 value;
};
_Static_assert(sizeof(struct ax_probe_op) == 16, "struct ax_probe_op is a map value");

enum ax_probe_action {
	AX_ACTION_RECORD,
	AX_ACTION_COUNT, /* by key; without one only the probe's hits are counted */
	AX_ACTION_LOG2,	 /* histogram of value 0 by key, in powers of two */
	AX_ACTION_LINEAR,
	AX_ACTION_STATS, /* number, sum, least and greatest of value 0 by key */
	AX_ACTION_LOOK,	 /* nothing: only whether the kernel will tell the return is of interest */
	AX_ACTION_ENTRY, /* keeps what the probe on the return needs */
	AX_ACTION_START, /* keeps the time for another probe, by number 0 of what is kept */
	AX_ACTION_ARM,	 /* a state, until ... */
	AX_ACTION_DISARM,
	AX_ACTION_SET, /* nothing but what its operations do; or decides for those that follow */
};
enum ax_probe_flag {
	AX_PROBE_PAIRED = 1,	  /* on a return: happens only if the entry was seen */
	AX_PROBE_SIGNED = 2,	  /* value 0, of histograms and statistics */
	AX_PROBE_RETURN = 4,	  /* on a function's return */
	AX_PROBE_GO = 8,	  /* a thread is a goroutine, whose stack moves */
	AX_PROBE_PER_THREAD = 16, /* the states that it tests or sets */
	AX_PROBE_BY_THREAD = 32,  /* AX_ACTION_START: not by what was kept */
	AX_PROBE_POPPED = 64,	  /* the return has taken its address from the stack already */
	AX_PROBE_CHAINED = 128,	  /* there is a next one */
	AX_PROBE_FINE = 256,	  /* AX_ACTION_LOG2: AX_BUCKETS_FINE of each power of two */
	AX_PROBE_FOLLOWS = 1024,  /* happens only if the one before it did that does not follow */
	AX_PROBE_ONLY_COUNTS = 2048, /* of a bucket nothing but the number is told */
	AX_PROBE_NESTED = 512,	     /* on the entry of a function whose return the kernel tells */
	AX_PROBE_STOPS = 4096,	     /* behind its record, its thread waits for its tracer */
	AX_PROBE_ANYWHERE = 16384,   /* also where the session's processes are not */
	AX_PROBE_QUICK = 8192, /* on a function: done without a slot and the loop of operations */
};

/* What a probe does, found by the BPF cookie of its attachment. */
struct ax_probe {
	__u32 first_op;
	__u32 n_ops;
	__u32 action;	 /* enum ax_probe_action */
	__u32 flags;	 /* enum ax_probe_flag */
	__u32 n_values;	 /* of a record */
	__u32 key_words; /* without that of a histogram's bucket, which follows */
	__u32 pair;	 /* the same for an entry and its return */
	__u32 n_buckets; /* of a linear histogram, without those below and above */
	__u32 when;	 /* the state that has to be armed, 0: none */
	__u32 state;	 /* that is armed or disarmed */
	__u32 next;	 /* 1 + the index of the next probe on the same place; 0: none */
	__u32 timer;	 /* the same for a probe that starts a time and those that end it */
	__s64 least;	 /* linear: where the first bucket begins */
	__u64 step;	 /* linear: how wide each is */
};
_Static_assert(sizeof(struct ax_probe) == 64, "struct ax_probe is a map value");

struct ax_probe_text {
	__u64 w[AX_PROBE_TEXT / 8]; /* padded with NUL */
};
_Static_assert(sizeof(struct ax_probe_text) == 64, "struct ax_probe_text is a map value");

/* The same for all probes of a session; read-only in the program. */
struct ax_probe_config {
	__u32 pid;     /* of the only process that counts, 0: any */
	__u32 ordered; /* at_work is kept: by it a reader knows until when all records are there */
	struct ax_scope scope;
	/* The last records are kept, and none is sent: how many, and of how many bytes at most. */
	__u32 flight_slots;
	__u32 flight_bytes;
	/* The pid namespace of who traces, as stat() tells it; 0: the first one. */
	__u64 pidns_device;
	__u64 pidns_number;
	/* What the session's probes have, a bit for each: the verifier need not look at the rest.
	 */
	__u64 codes;
	__u32 actions;
	__u32 flags;
	/* Where the kernel has task_struct.utask and uprobe_task.depth; 0: it is not known. */
	__u32 utask_offset;
	__u32 utask_depth_offset;
	__u32 thread_variables; /* the highest number of one, text or not */
	__u32 flags_offset;	/* of task_struct.flags, 0: it is not known */
	__u32 tree;		/* only processes of the map of that name */
	__u32 ptrace_offset;	/* of task_struct.ptrace, 0: it is not known */
	__u32 copies;		/* of records' call stacks of programs: struct ax_stack_copy */
	__u32 short_keys;	/* the table's keys have AX_PROBE_KEY_SHORT words at most */
	__u64 registers; /* that probes on functions fetch: a bit for each 8 bytes of the context */
};
_Static_assert(AX_CODE_FILTER < 64, "codes have a bit each");
_Static_assert(sizeof(struct ax_probe_config) == 224, "struct ax_probe_config is read-only data");

/* A record. Values follow, also some that are parts of others, then the bytes of strings and
 * buffers. The value of a string or buffer says where: AX_BYTES_OFF(value) from the record's
 * beginning on, AX_BYTES_LEN(value). */
struct ax_probe_record {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 sp;     /* where the function's return address is, or was; 0: no function. Go: how far
			 below the end of the goroutine's stack */
	__u64 thread; /* tid, or the goroutine's address */
	__u32 probe;  /* index of struct ax_probe */
	__u32 pid;
	__u32 tid;
	__u16 cpu;
	__u16 n_values;
	__u32 faults; /* bit of each value that could not be fetched */
	__u32 pad;
	char comm[AX_PROBE_COMM];
	__u64 values[];
};
_Static_assert(sizeof(struct ax_probe_record) == 64,
	       "struct ax_probe_record is read by user space");

/* By what the callers of a record are found. In the record, and here, stands its number: of the
 * call stack that frame pointers gave, but for this bit. */
#define AX_STACK_COPIED (1ull << 62)
struct ax_stack_copy {
	__u64 id;
	__s64 by_frames; /* the number of that one, below 0: none */
	__u32 pid;
	__u32 pad;
	struct ax_user_stack stack;
};
_Static_assert(sizeof(struct ax_stack_copy) == 312, "struct ax_stack_copy is read by user space");

/* One of the last records that are kept. */
struct ax_probe_flight {
	__u64 number; /* from 1 on in order; 0: none, or being written */
	__u32 len;
	__u32 full_len; /* more than len: its last strings were cut off */
	__u8 record[];
};
_Static_assert(sizeof(struct ax_probe_flight) == 16, "struct ax_probe_flight is a map value");
#define AX_BYTES_OFF(v) ((__u32)((v) >> 32))
#define AX_BYTES_LEN(v) ((__u32)(v))

/* A table's value, of each CPU; of counts only the first field. All zero is the start of all. */
struct ax_probe_cell {
	__u64 count;
	__u64 sum;
	__u64 most;  /* greatest value, with the highest bit turned if signed */
	__u64 least; /* the same of the least, with all bits turned */
};
_Static_assert(sizeof(struct ax_probe_cell) == 32, "struct ax_probe_cell is read by user space");

/* Of a log2 histogram: 0 for 0, n + 1 for 2^n up to 2^(n+1) - 1, and one for what is below 0. Of a
 * linear one: 0 for what is below, 1 ... n_buckets, n_buckets + 1 for what is above. */
#define AX_BUCKET_NEGATIVE 65
/* A fine one's number is that times AX_BUCKETS_FINE, plus the bits behind the value's highest, plus
 * AX_BUCKET_FINE, so that it is told from others. */
#define AX_BUCKETS_FINE_BITS 3
#define AX_BUCKETS_FINE	     (1u << AX_BUCKETS_FINE_BITS)
#define AX_BUCKET_FINE	     1024

/* What is kept between a function's entry and its return. The stack pointer tells recursive calls
 * apart, and calls that never return from later ones. Between two other probes: thread 0 and, as
 * sp, the value by which they are matched; or the thread. */
struct ax_probe_call_key {
	__u64 thread;
	__u64 sp; /* as in struct ax_probe_record */
	__u32 pair;
	__u32 pad;
};
_Static_assert(sizeof(struct ax_probe_call_key) == 24, "struct ax_probe_call_key is a map key");

struct ax_probe_variable_text {
	__u64 w[AX_PROBE_VARIABLE / 8];
};
_Static_assert(sizeof(struct ax_probe_variable_text) == 256,
	       "struct ax_probe_variable_text is a map value");

/* A state of one thread; its value is the stack pointer of the function that armed it. Also a
 * variable: of a thread (0: of all), or by which a map has it. */
struct ax_probe_state_key {
	__u64 thread;
	__u64 state;
};
struct ax_probe_call {
	__u64 time_ns;
	__u32 faults; /* bit of each value that could not be fetched */
	__u32 pad;
	__u64 values[AX_PROBE_SAVED];
};
_Static_assert(sizeof(struct ax_probe_call) == 80, "struct ax_probe_call is a map value");

/* In at_work, of each slot of a CPU: since when (CLOCK_MONOTONIC) a record is being made there; or
 * AX_WORK_BEGINS, before that is known; 0: none is. */
#define AX_WORK_BEGINS 1
_Static_assert(AX_PROBE_WORK >= AX_PROBE_SLOTS && AX_PROBE_WORK >= AX_PROBE_SLEEPERS,
	       "each slot has its place in at_work");

enum ax_probe_counter {
	AX_PROBE_DROPPED,   /* no room in the ring or the table, or all slots taken */
	AX_PROBE_UNMATCHED, /* returns whose entry was not seen */
	AX_PROBE_NO_CALL,   /* entries for which there was no room */
	AX_PROBE_TOO_DEEP,  /* entries whose returns the kernel does not tell */
	AX_PROBE_COUNTERS,
};

#endif
