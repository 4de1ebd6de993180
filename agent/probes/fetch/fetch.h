/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a probe fetches and does, as a program for the interpreter. No side effects. */
#ifndef AX_PROBES_FETCH_FETCH_H
#define AX_PROBES_FETCH_FETCH_H

#include "probes/types/btf.h"
#include "probes/types/dwarf.h"
#include "probes/types/given.h"
#include "probes/types/shape.h"
#include "probes/kernel/fields.h"
#include "probe.h"
#include "probes/text/action.h"
#include "probes/text/spec.h"
#include "probes/elf/usdt.h"

#define FETCH_STRING_DEFAULT 512
#define FETCH_VALUES	     16 /* that are shown, of one record */
#define FETCH_HIDDEN	     15 /* besides: texts that values point to, and a stack's caller */
#define FETCH_SHAPES	     64

/* Constant texts of all probes of a session, and shapes of types that many of them have. */
struct fetch_texts {
	struct ax_probe_text *v;
	size_t n;
	struct fetch_shape {
		struct ctype type;
		struct shape *shape; /* NULL: it has none */
	} * shapes;
	size_t n_shapes;
};
void fetch_texts_free(struct fetch_texts *t);

/* What is known of the place where the probe goes. */
struct fetch_place {
	uint16_t machine;	     /* EM_X86_64 ... */
	const struct usdt *usdt;     /* PROBE_USDT */
	const struct format *format; /* PROBE_TRACEPOINT */
	/* Where types and names of variables come from; NULL: there are none. */
	struct binary *binary; /* the probed file */
	struct dwarf *dwarf;   /* of the probed file */
	uint64_t offset;       /* in it, as it was asked for; of a return the function's entry */
	struct given_types *given; /* for functions that `dwarf` knows nothing of; NULL: none */
	struct btf_types *btf;	   /* of the kernel */
	const char *function;	   /* whose entry or return it is; NULL: inside one, or not known */
	const char *module;	   /* of the function; NULL: the kernel itself, or not known */
	bool all_parameters;	   /* without values: all that the place's types tell of */
	bool go;		   /* functions are called by Go's ABI, not by C's */
	bool stopped;		   /* the thread waits: its vector registers can be read, too */
	bool at_entry;	  /* of a user function, which has not saved its return address yet */
	const char *apps; /* where apps have their cgroups (base/cgroup_apps.h); NULL: not known */
	bool many;	  /* one of several: values that it has not are left out */
	bool by_name;	  /* the key begins with this number, of a name of several */
	uint32_t name;
	bool between; /* TRACE_LATENCY: from the session's TRACE_START on */
	/* of those two: by which value they are matched; NULL: by the thread. Of a map: by which
	 * its variable is set. */
	const struct probe_arg *on;
	/* TRACE_SET: the variable, from 1 on; 0: there is only a condition. */
	uint32_t variable;
	enum probe_variable_kind kind;
	bool adds;
	const struct probe_texts *texts; /* which variables are texts; NULL: there are none */
	/* Whose values, besides its own, have the types that they have in the condition. */
	const struct probe_spec *const *likes;
	size_t n_likes;
};

/* How a value or a part of a key is shown. */
struct fetch_shown {
	char *name;
	enum value_type type; /* never VALUE_NONE; VALUE_USTRING is VALUE_STRING here */
	uint32_t size;	      /* of numbers: bytes; of strings: the most that is fetched */
	/* Of a key: where it begins. The process follows user stacks and symbols, and then, where
	 * it has_caller, the address that the function returns to. */
	uint32_t word;
	/* Of a user stack at a function's entry: the frame of who called it is not there yet, and
	 * unwinding would leave it out. Of values, the caller is the last one of the record. */
	bool has_caller;
	const char *gone; /* why it has no value at this place: it always is a fault */
	/* By its type: of buffers how their bytes are shown, of numbers the names of an enum; NULL:
	 * that is all that is known. */
	struct shape *shape;
	bool counted; /* of strings: all of its bytes belong to it, NULs too */
};
struct fetch {
	struct ax_probe_op *ops;
	size_t n_ops;
	struct ax_probe_op *entry_ops; /* on the entry of the function */
	size_t n_entry_ops;
	size_t n_kept;	   /* values that the entry keeps for the return */
	bool paired;	   /* needs a probe on the function's entry */
	bool needs_fields; /* of a tracepoint's record */
	bool needs_stacks; /* call stacks */
	bool needs_copies; /* and those of programs */
	bool needs_exact;  /* fetches registers that may be others a few instructions on */
	struct fetch_shown values[FETCH_VALUES];
	size_t n_values;
	size_t n_hidden; /* values behind those, which are not shown by themselves: texts that their
			    shapes follow, and the caller of a stack as the last one */
	struct fetch_shown keys[PROBE_BY_MAX];
	size_t n_keys;
	uint32_t key_words;
	/* The key's word with a bit for each of the others that could not be fetched; 0: all can.
	 */
	uint32_t fault_word;
};
void fetch_free(struct fetch *f);

/* What a function is to return instead, as far as a register can say it. */
struct fetch_result {
	uint64_t value;
	bool negative; /* `value` is below 0, in two's complement */
};
/* Whether setting the register for results changes what the function at that place returns, as far
 * as its type is known. -ENOTSUP, -ERANGE with a sentence. */
int fetch_check_result(const struct probe_spec *spec, const struct fetch_place *place,
		       const struct fetch_result *result, struct error *e);
void fetch_shown_free(struct fetch_shown *s);

/* -EINVAL or -ENOTSUP with a sentence that names the argument. */
int fetch_compile(const struct probe_spec *p, enum trace_action action,
		  const struct fetch_place *place, struct fetch_texts *texts, struct fetch *ret,
		  struct error *e);

/* Where pt_regs has a register of that name; `size` is 8, or less for the names of its parts,
 * `shift` its lowest bit. -ENOENT. The 16 bytes of a vector register are behind what pt_regs has
 * (step.h), and `size` is that of its lower half: only a thread that is stopped has them. */
#define FETCH_VECTORS_AT 320
struct fetch_register {
	uint32_t offset;
	uint8_t size, shift;
};
int fetch_register_find(uint16_t machine, const char *name, struct fetch_register *ret);

#endif
