// SPDX-License-Identifier: GPL-2.0-or-later
/* A probe's arguments, condition and key as a fetch program. */
#include <linux/bpf.h>
#include <stdarg.h>

#include "probes/fetch/priv.h"

#define KEY_TEXT_WORDS (AX_PROBE_KEY_TEXT / 8)
#define KEY_COMM_WORDS (AX_PROBE_COMM / 8)

int maker_fault(struct maker *m, int code, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return error_set(m->e, code, "%.80s: %s", m->what, text);
}

bool maker_in_kernel(const struct maker *m)
{
	if (m->of_task)
		return true;
	switch (m->spec->kind) {
	case PROBE_KPROBE:
	case PROBE_KRETPROBE:
	case PROBE_PROFILE:
		return true;
	case PROBE_TRACEPOINT:
		return !m->place->format || !m->place->format->user;
	default:
		return false;
	}
}

static struct ax_probe_op *last_op(struct maker *m)
{
	return &m->list->v[m->list->n - 1];
}

static int set_shown(struct maker *m, struct fetch_shown *s, const char *name, enum value_type type,
		     uint32_t size)
{
	s->name = strdup(name);
	s->type = type == VALUE_USTRING ? VALUE_STRING : type;
	s->size = size;
	return s->name ? 0 : maker_fault(m, -ENOMEM, "out of memory");
}

/* --- values --- */

static const char *shown_name(const struct probe_arg *a)
{
	return a->name ? a->name : a->text;
}

static int store_text(struct maker *m, const struct made *made)
{
	uint32_t size = made->size ? made->size : FETCH_STRING_DEFAULT;
	uint8_t flags = (uint8_t)(AX_OP_STORE | (made->kernel ? AX_OP_KERNEL : 0));

	if (made->form == MADE_PUT)
		return 0; /* it is there already */
	if (made->form == MADE_COUNTED)
		return make_op(m, AX_CODE_STRING_LONG, flags, 8,
			       size < AX_PROBE_FETCH ? size : AX_PROBE_FETCH);
	if (made->type == VALUE_BUFFER) {
		if (size > AX_PROBE_FETCH)
			size = AX_PROBE_FETCH;
		return make_op(m, AX_CODE_BUFFER, flags, 8, size);
	}
	/* one more for the NUL */
	return make_op(m, AX_CODE_STRING, flags, 8,
		       size < AX_PROBE_FETCH ? size + 1 : AX_PROBE_FETCH);
}

int store_made(struct maker *m, const struct made *made, const char *name)
{
	size_t i = m->out->n_values;
	int r;

	if (is_text_type(made->type)) {
		r = store_text(m, made);
		if (r < 0)
			return r;
	}
	last_op(m)->flags |= AX_OP_STORE;
	last_op(m)->to = (uint8_t)i;
	m->list->depth = 0;
	r = set_shown(m, &m->out->values[i], name, made->type,
		      made->size ? made->size : FETCH_STRING_DEFAULT);
	if (r < 0)
		return r;
	m->out->n_values++;
	m->out->values[i].counted = made->form == MADE_COUNTED;
	return give_shape(m, made, &m->out->values[i]);
}

static int store_comm(struct maker *m, const char *name)
{
	size_t i = m->out->n_values;
	int r;

	m->list->depth = 0;
	r = make_leaf(m, AX_CODE_COMM, AX_OP_STORE, 8, 0);
	if (r < 0)
		return r;
	last_op(m)->to = (uint8_t)i;
	r = set_shown(m, &m->out->values[i], name, VALUE_STRING, AX_PROBE_COMM);
	if (r == 0)
		m->out->n_values++;
	return r;
}

/* Computes the value again, which is an address. */
static int load_again(struct maker *m, const struct loader *l, uint64_t offset)
{
	struct made made;
	int r;

	m->element = 0;
	r = make_expr(m, l->arg->expr.v, l->arg->expr.n, &made);
	return r < 0 ? r : make_fetch(m, made.kernel, 0, 8, (int64_t)offset);
}

static int address_again(struct maker *m, const struct loader *l, uint64_t offset)
{
	struct made made;
	int r;

	m->element = 0;
	r = make_expr(m, l->arg->expr.v, l->arg->expr.n, &made);
	return r < 0 || !offset ? r : make_op(m, AX_CODE_ADD, AX_OP_IMMEDIATE, 8, offset);
}

/* What a struct points to. What was kept from the entry is not kept twice. */
static int follow_value(struct maker *m, const struct probe_arg *a, const struct made *made)
{
	struct loader l = {.load = load_again, .address = address_again, .arg = a};

	if (a->type != VALUE_NONE || made->type != VALUE_BUFFER || made->registers)
		return 0;
	if (made->form == MADE_PUT)
		l = (struct loader){.load = load_of_variable,
				    .address = address_of_variable,
				    .where = &m->pieces,
				    .base = made->at};
	for (size_t i = 0; i < a->expr.n; i++)
		if (a->expr.v[i].op == EXPR_ENTRY)
			return 0;
	return follow_texts(m, made, &l);
}

static int make_value(struct maker *m, const struct probe_arg *a)
{
	size_t before = m->list->n;
	struct made made;
	int r;

	m->what = a->text;
	m->gone = NULL;
	if (is_comm(a))
		return store_comm(m, shown_name(a));
	r = is_stack(a) ? make_stack(m, a, &made) : make_typed(m, a, &made);
	if (r == -ENODATA && m->gone && (m->spec->kind == PROBE_LINE || m->place->many)) {
		m->list->n = before;
		return store_gone(m, shown_name(a));
	}
	if (r == 0 && made.type == VALUE_USER_STACK && is_stack(a))
		m->out->values[m->out->n_values].has_caller = m->place->at_entry;
	if (r == 0)
		r = store_made(m, &made, shown_name(a));
	return r < 0 ? r : follow_value(m, a, &made);
}

/* Behind all values, if one of them is a call stack that lacks it. */
static int make_caller(struct maker *m)
{
	struct fetch *f = m->out;
	bool wanted = false;
	int r;

	settle_hidden(m);
	for (size_t i = 0; i < f->n_values; i++)
		wanted |= f->values[i].has_caller;
	if (!wanted || f->n_values >= FETCH_VALUES)
		return 0;
	m->what = "ustack";
	m->list->depth = 0;
	r = make_return_address(m);
	if (r < 0)
		return r;
	last_op(m)->flags |= AX_OP_STORE;
	last_op(m)->to = (uint8_t)(f->n_values + f->n_hidden++);
	m->list->depth = 0;
	return 0;
}

/* Without arguments: all of a static probe's. */
static int all_usdt_args(struct maker *m)
{
	for (size_t i = 0; i < m->place->usdt->n_args && i < PROBE_ARGS_MAX; i++) {
		const struct usdt_arg *a = &m->place->usdt->args[i];
		struct made made;
		char name[16];
		int r;

		if (a->unfetchable)
			continue;
		snprintf(name, sizeof(name), "arg%zu", i);
		m->what = name;
		m->list->depth = 0;
		r = make_usdt_argument(m, (int64_t)i, &made);
		if (r == 0)
			r = store_made(m, &made, name);
		if (r < 0)
			return r;
	}
	return 0;
}

static int all_fields(struct maker *m)
{
	const struct format *f = m->place->format;

	for (size_t i = 0; i < f->n && m->out->n_values < PROBE_ARGS_MAX; i++) {
		const struct field *field = &f->v[i];
		struct made made;
		int r;

		if (field_is_common(field) || field->kind == FIELD_DYNAMIC_ARRAY ||
		    field->kind == FIELD_RELATIVE_ARRAY || streq(field->name, "__syscall_nr"))
			continue;
		m->what = field->name;
		m->list->depth = 0;
		r = make_field(m, field, &made);
		if (r == 0)
			r = store_made(m, &made, field->name);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_asked(struct maker *m)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->spec->n_args; i++)
		r = make_value(m, &m->spec->args[i]);
	return r == 0 ? make_caller(m) : r;
}

static int make_values(struct maker *m)
{
	int r = 0;

	if (!m->spec->n_args && m->spec->kind == PROBE_LINE) {
		r = fetch_all_parameters(m);
		settle_hidden(m);
		return r;
	}
	if (!m->spec->n_args && m->place->usdt)
		return all_usdt_args(m);
	if (!m->spec->n_args && m->place->format)
		return all_fields(m);
	for (size_t i = 0; r == 0 && i < m->spec->n_args; i++)
		r = make_value(m, &m->spec->args[i]);
	if (r == 0 && m->place->all_parameters)
		r = fetch_all_parameters(m);
	return r == 0 ? make_caller(m) : r;
}

/* --- keys --- */

/* Without its process an address of a program means nothing; what is in the kernel (its highest bit
 * is set) is the same for all of them, and is counted together: the process is 0 there. */
static int make_key_process(struct maker *m, const struct probe_arg *a, bool may_be_kernel)
{
	struct made unused;
	int r = 0;

	m->list->depth = 0;
	if (is_stack_type(a->type) && !is_stack(a)) { /* it is kept with the stack */
		r = make_expr(m, a->expr.v, a->expr.n, &unused);
		if (r == 0)
			r = make_op(m, AX_CODE_SHR, AX_OP_IMMEDIATE, 8, 32);
		if (r == 0)
			last_op(m)->flags |= AX_OP_KEY;
		return r;
	}

	m->list->depth = may_be_kernel;
	if (may_be_kernel) /* the value that is the key's last word becomes 0, or all bits */
		r = make_op(m, AX_CODE_SHR, AX_OP_IMMEDIATE, 8, 63);
	if (r == 0 && may_be_kernel)
		r = make_op(m, AX_CODE_SUB, AX_OP_IMMEDIATE, 8, 1);
	if (r == 0)
		r = make_leaf(m, AX_CODE_PID, 0, 8, 0);
	if (r == 0 && may_be_kernel)
		r = make_op(m, AX_CODE_AND, 0, 8, 0);
	if (r == 0)
		last_op(m)->flags |= AX_OP_KEY;
	return r;
}

static int make_key(struct maker *m, const struct probe_arg *a)
{
	struct fetch *f = m->out;
	struct fetch_shown *k = &f->keys[f->n_keys];
	struct made made = {.type = VALUE_STRING, .size = AX_PROBE_COMM};
	uint32_t words = 1;
	int r;

	m->what = a->text;
	if (is_stack(a)) {
		r = make_stack(m, a, &made);
		if (r == 0)
			last_op(m)->flags |= AX_OP_KEY;
	} else if (is_comm(a)) {
		m->list->depth = 0;
		words = KEY_COMM_WORDS;
		r = make_leaf(m, AX_CODE_KEY_COMM, 0, 8, 0);
	} else {
		r = make_typed(m, a, &made);
		if (r == 0 && made.type == VALUE_BUFFER)
			return maker_fault(m, -ENOTSUP,
					   "a buffer or a struct cannot be a key: expected one of "
					   "its members");
		if (r == 0 && made.type == VALUE_STRING) {
			words = KEY_TEXT_WORDS;
			made.size = AX_PROBE_KEY_TEXT;
			r = make_op(m,
				    made.form == MADE_COUNTED ? AX_CODE_KEY_STRING_LONG
							      : AX_CODE_KEY_STRING,
				    made.kernel ? AX_OP_KERNEL : 0, 8, 0);
		} else if (r == 0) {
			last_op(m)->flags |= AX_OP_KEY;
		}
	}
	if (r < 0)
		return r;
	last_op(m)->to = (uint8_t)f->key_words;
	if (made.type == VALUE_USER_STACK || made.type == VALUE_SYMBOL) {
		r = make_key_process(m, a, made.type == VALUE_SYMBOL);
		if (r < 0)
			return r;
		last_op(m)->to = (uint8_t)(f->key_words + 1);
		words = 2;
	}
	if (made.type == VALUE_USER_STACK && m->place->at_entry && is_stack(a)) {
		m->list->depth = 0;
		r = make_return_address(m);
		if (r < 0)
			return r;
		last_op(m)->flags |= AX_OP_KEY;
		last_op(m)->to = (uint8_t)(f->key_words + 2);
		words = 3;
		k->has_caller = true;
		made = (struct made){.type = VALUE_USER_STACK, .size = 8};
	}
	k->word = f->key_words;
	f->key_words += words;
	f->n_keys++;
	r = set_shown(m, k, shown_name(a), made.type, made.size);
	return r < 0 ? r : give_shape(m, &made, k);
}

static bool can_fault(const struct ax_probe_op *op)
{
	return op->code == AX_CODE_USER || op->code == AX_CODE_KERNEL ||
	       op->code == AX_CODE_SAVED || op->code == AX_CODE_KEY_STRING ||
	       op->code == AX_CODE_DIV || op->code == AX_CODE_MOD ||
	       op->code == AX_CODE_KEY_STRING_LONG;
}

/* Else a number that cannot be read would be counted as the number 0. */
static int make_key_faults(struct maker *m, size_t first)
{
	bool can = false;
	int r;

	for (size_t i = first; i < m->list->n; i++)
		can |= can_fault(&m->list->v[i]);
	if (!can)
		return 0;
	m->list->depth = 0;
	r = make_leaf(m, AX_CODE_FAULTS, AX_OP_KEY, 8, 0);
	if (r < 0)
		return r;
	m->out->fault_word = m->out->key_words++;
	last_op(m)->to = (uint8_t)m->out->fault_word;
	return 0;
}

static int make_keys(struct maker *m, bool args_too)
{
	const struct probe_spec *p = m->spec;
	size_t first = m->list->n;
	int r = 0;

	if ((args_too ? p->n_args : 0) + p->n_by > PROBE_BY_MAX)
		return error_set(m->e, -E2BIG, "a key has at most %d parts", PROBE_BY_MAX);
	if (m->place->by_name) {
		m->list->depth = 0;
		m->out->key_words = 1;
		r = make_leaf(m, AX_CODE_CONST, AX_OP_KEY, 8, m->place->name);
	}
	for (size_t i = 0; r == 0 && args_too && i < p->n_args; i++)
		r = make_key(m, &p->args[i]);
	for (size_t i = 0; r == 0 && i < p->n_by; i++)
		r = make_key(m, &p->by[i]);
	return r < 0 ? r : make_key_faults(m, first);
}

/* --- the whole --- */

static int make_condition(struct maker *m)
{
	struct made made;
	int r;

	if (!m->spec->condition.n)
		return 0;
	m->what = "the condition";
	m->names_args = true;
	m->element = 0;
	m->list->depth = 0;
	r = make_expr(m, m->spec->condition.v, m->spec->condition.n, &made);
	if (r == 0)
		r = need_plain(m, &made);
	m->names_args = false;
	return r < 0 ? r : make_op(m, AX_CODE_FILTER, 0, 8, 0);
}

/* The one value of a histogram. */
static int make_measured(struct maker *m, const char *command)
{
	const struct probe_arg *a = &m->spec->args[0];
	struct made made;
	int r;

	if (m->spec->n_args != 1)
		return error_set(m->e, -EINVAL,
				 "'%s' is of one value: expected it behind the probe, as in 'ax "
				 "trace %s PROBE retval'; others behind 'by'",
				 command, command);
	m->what = a->text;
	r = is_comm(a) || is_stack(a) ? maker_fault(m, -EINVAL, "expected a number") : 0;
	if (r == 0)
		r = make_typed(m, a, &made);
	if (r == 0 && is_text_type(made.type))
		r = maker_fault(m, -EINVAL, "expected a number");
	if (r == 0 && made.type == VALUE_FLOAT)
		r = maker_fault(m, -ENOTSUP,
				"sums and buckets are of integers: expected one; floating-point "
				"numbers can be printed, compared and counted by");
	return r < 0 ? r : store_made(m, &made, shown_name(a));
}

/* What is meant by one of these words in that place is not the thread that happens to be there. */
static int check_on(struct maker *m, const struct probe_arg *on)
{
	static const struct {
		enum expr_op op;
		const char *name;
	} words[] = {{EXPR_PID, "pid"}, {EXPR_TID, "tid"}, {EXPR_CPU, "cpu"}};
	const struct format *f = m->place->format;

	for (size_t i = 0; f && i < on->expr.n; i++)
		for (size_t j = 0; j < ARRAY_SIZE(words); j++)
			if (on->expr.v[i].op == words[j].op && format_find(f, words[j].name))
				return maker_fault(m, -EINVAL,
						   "%s has a field '%s', and by itself the word "
						   "is of the thread at work: expected args.%s for "
						   "the field",
						   f->name, words[j].name, words[j].name);
	return 0;
}

int make_on(struct maker *m)
{
	const struct probe_arg *on = m->place->on;
	struct made made;
	int r;

	if (!on)
		return 0;
	m->what = on->text;
	r = is_comm(on) || is_stack(on) ? maker_fault(m, -EINVAL, "expected a number")
					: check_on(m, on);
	if (r == 0)
		r = make_typed(m, on, &made);
	if (r == 0)
		r = need_plain(m, &made);
	if (r == 0 && is_text_type(made.type))
		r = maker_fault(m, -EINVAL, "expected a number");
	if (r < 0)
		return r;
	last_op(m)->flags |= AX_OP_KEEP;
	last_op(m)->to = 0;
	m->list->depth = 0;
	return 0;
}

/* Since the other probe. */
static int make_between(struct maker *m)
{
	int r = make_on(m);

	m->what = "latency";
	m->list->depth = 0;
	if (r == 0)
		r = make_op(m, AX_CODE_FIND, m->place->on ? 0 : AX_OP_IMMEDIATE, 8, 0);
	m->list->depth = 0;
	return r == 0 ? make_leaf(m, AX_CODE_ELAPSED, 0, 8, 0) : r;
}

static int make_latency(struct maker *m)
{
	struct made made = {.type = VALUE_UNSIGNED, .size = 8};
	int r;

	if (m->spec->n_args)
		return error_set(m->e, -EINVAL,
				 "'latency' is of no value: expected what to divide "
				 "it by behind 'by', as in 'by comm'");
	m->what = "latency";
	m->list->depth = 0;
	r = m->place->between ? make_between(m) : make_elapsed(m);
	return r < 0 ? r : store_made(m, &made, "latency");
}

static int refuse_values(struct maker *m)
{
	return error_set(m->e, -EINVAL,
			 "'%s' only begins or ends something: expected no values and no 'by' "
			 "there, but perhaps 'if'",
			 m->spec->symbol ? m->spec->symbol : "the probe");
}

static int make_action(struct maker *m, enum trace_action action)
{
	int r = 0;

	switch (action) {
	case TRACE_PRINT:
	case TRACE_WATCH:
		if (m->spec->n_by)
			return error_set(m->e, -EINVAL,
					 "'watch' prints records, there is nothing to divide 'by': "
					 "expected count, hist, stats or latency");
		return action == TRACE_PRINT ? make_asked(m) : make_values(m);
	case TRACE_SET:
		return m->place->variable ? make_set(m) : 0;
	case TRACE_HIST:
		r = make_measured(m, "hist");
		break;
	case TRACE_STATS:
		r = make_measured(m, "stats");
		break;
	case TRACE_LATENCY:
		r = make_latency(m);
		break;
	case TRACE_START:
		return m->spec->n_args || m->spec->n_by ? refuse_values(m) : make_on(m);
	case TRACE_ARM:
	case TRACE_DISARM:
		return m->spec->n_args || m->spec->n_by ? refuse_values(m) : 0;
	default:
		break;
	}
	return r < 0 ? r : make_keys(m, action == TRACE_COUNT);
}

/* There can be thousands of programs. */
static struct ax_probe_op *shrunk(struct op_list *l)
{
	struct ax_probe_op *v = l->n ? realloc(l->v, l->n * sizeof(*v)) : NULL;

	if (!l->n)
		free(l->v);
	return v || !l->n ? v : l->v;
}

int fetch_compile(const struct probe_spec *p, enum trace_action action,
		  const struct fetch_place *place, struct fetch_texts *texts, struct fetch *ret,
		  struct error *e)
{
	struct maker m = {.spec = p, .place = place, .texts = texts, .out = ret, .e = e};
	int r;

	*ret = (struct fetch){0};
	m.list = &m.main;
	r = make_condition(&m);
	if (r == 0)
		r = make_action(&m, action);
	ret->ops = shrunk(&m.main);
	ret->n_ops = m.main.n;
	ret->entry_ops = shrunk(&m.entry);
	ret->n_entry_ops = m.entry.n;
	if (r < 0)
		fetch_free(ret);
	return r;
}

void fetch_shown_free(struct fetch_shown *s)
{
	free(s->name);
	if (s->shape)
		shape_free(s->shape);
	*s = (struct fetch_shown){0};
}

void fetch_free(struct fetch *f)
{
	for (size_t i = 0; i < f->n_values; i++)
		fetch_shown_free(&f->values[i]);
	for (size_t i = 0; i < f->n_keys; i++)
		fetch_shown_free(&f->keys[i]);
	free(f->ops);
	free(f->entry_ops);
	*f = (struct fetch){0};
}
