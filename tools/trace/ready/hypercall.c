// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace hypercall: what guests of KVM ask for, and how long the host keeps them waiting. */
#include "probes/kvm/exits.h"
#include "probes/kvm/layout.h"
#include "tools/trace/ready/hypercall_table.h"
#include "tools/trace/ready/scripts.h"

struct request {
	const char *nr;
	bool all, live;
	struct ax_hypercall_config wanted;
	struct kvm_tracepoints places;
	struct vms vms;
	struct watch_hypercall_row *rows;
	size_t n_rows;
};

/* --- records --- */

static void put_text(struct ready *r, const struct ax_hypercall_event *e, const struct vm *vm)
{
	char exit[KVM_EXIT_NAME], name[HYPERCALL_NAME];

	ready_time(r, e->head.time_ns);
	ready_number(r, e->head.pid, 7);
	ready_cell(r, vm->name, 16);
	ready_number(r, e->vcpu, 4);
	ready_cell(r, kvm_exit_name(e->isa, e->reason, exit), 12);
	ready_duration(r, e->duration_ns, 8);
	if (e->called) {
		trace_out_text(&r->out, hypercall_name(e->nr, name));
		for (size_t i = 0; i < AX_HYPERCALL_ARGS; i++)
			trace_out_printf(&r->out, "%s0x%llx", i ? ", " : " (",
					 (unsigned long long)e->args[i]);
		trace_out_char(&r->out, ')');
	}
	trace_out_char(&r->out, '\n');
}

static void put_json(struct ready *r, const struct ax_hypercall_event *e, const struct vm *vm)
{
	char exit[KVM_EXIT_NAME];
	const char *text;

	ready_json_head(r, &e->head, e->called ? "hypercall" : "exit");
	ready_json_string(r, "vm", vm->name, strlen(vm->name));
	ready_json_number(r, "vcpu", e->vcpu);
	if (e->called) {
		trace_out_printf(&r->out, ",\"nr\":%llu", (unsigned long long)e->nr);
		text = kvm_call_name(e->nr);
		if (text)
			ready_json_string(r, "call", text, strlen(text));
		for (size_t i = 0; i < AX_HYPERCALL_ARGS; i++)
			trace_out_printf(&r->out, "%s%llu", i ? "," : ",\"args\":[",
					 (unsigned long long)e->args[i]);
		trace_out_char(&r->out, ']');
	}
	text = kvm_isa_name(e->isa);
	ready_json_string(r, "isa", text, strlen(text));
	ready_json_number(r, "reason", e->reason);
	text = kvm_exit_name(e->isa, e->reason, exit);
	ready_json_string(r, "exit", text, strlen(text));
	ready_json_number(r, "duration_ns", (int64_t)e->duration_ns);
	trace_out_text(&r->out, "}\n");
}

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_hypercall_event *e = record;
	struct request *q = r->own;
	struct vm vm;

	if (len >= sizeof(struct ax_hypercall_vcpu) && e->head.type == AX_WATCH_VCPU) {
		if (vms_note(&q->vms, record) < 0)
			return -ENOMEM;
		return READY_PART;
	}
	if (len < sizeof(*e))
		return READY_HIDDEN;
	vm = vms_find(&q->vms, e->head.pid);
	if (r->json)
		put_json(r, e, &vm);
	else
		put_text(r, e, &vm);
	return READY_SHOWN;
}

/* --- the table --- */

static int read_counts(struct ready *r, uint64_t *events, struct error *e)
{
	struct request *q = r->own;
	struct watch_hypercall_row *rows = NULL;
	ssize_t n = watch_hypercall_table(r->watch, &rows, e);

	if (n < 0)
		return (int)n;
	free(q->rows);
	q->rows = rows;
	q->n_rows = (size_t)n;
	*events = 0;
	for (size_t i = 0; i < q->n_rows; i++)
		*events += rows[i].cell.count;
	return 0;
}

static int put_counts(struct ready *r, struct error *e)
{
	struct request *q = r->own;

	if (q->live)
		return 0;
	if (hypercall_put_table(r, &q->vms, q->rows, q->n_rows, q->all) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

/* --- the command --- */

static int after_attach(struct ready *r, struct error *e)
{
	const struct request *q = r->own;
	struct watch_hypercall_places p = {
		.exit = q->places.exit,
		.hypercall = q->places.hypercall,
		.entry = q->places.entry,
	};

	return watch_hypercall_attach(r->watch, &p, e);
}

static int check(struct ready *r, const char *word, struct error *e)
{
	struct request *q = r->own;
	uint64_t nr = 0;

	(void)word;
	if (q->nr && q->all)
		return error_set(e, -EINVAL,
				 "--nr is about hypercalls, and --all about every exit: expected "
				 "one");
	if (r->count && !q->live)
		return error_set(e, -EINVAL,
				 "-n is a number of lines of --live: expected that with it");
	if (r->args.output == TRACE_CTF && !q->live)
		return error_set(e, -EINVAL,
				 "-o ctf is for the lines of --live: expected that with it");
	if (q->nr && kvm_call_parse(q->nr, &nr) < 0)
		return error_set(e, -EINVAL,
				 "'%.64s' is no hypercall: expected a number or a name, as in "
				 "--nr 10 or --nr SEND_IPI",
				 q->nr);
	q->wanted.nr = nr;
	return 0;
}

static int load(struct ready *r, struct error *e)
{
	struct request *q = r->own;
	int err = kvm_tracepoints(&q->places, e);

	q->wanted.only = q->nr != NULL;
	q->wanted.all = q->all;
	q->wanted.live = q->live;
	q->wanted.layout = q->places.layout;
	if (err == 0)
		err = watch_hypercall_load(&r->options, &q->wanted, &r->watch, e);
	if (err == 0 && q->live && !r->json)
		trace_out_text(&r->out, "TIME                PID VM               VCPU EXIT        "
					"     TOOK CALL\n");
	return err;
}

struct args {
	struct ready r;
	struct request q;
};

static int write_script(const struct ready *r, FILE *f)
{
	const struct request *q = r->own;

	script_hypercalls(
		&(struct script_hypercalls){
			.only = q->nr, .all = q->all, .live = q->live, .nr = q->wanted.nr},
		f);
	return 0;
}

static int run_hypercall(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .check = check,
		      .write_script = write_script,
		      .load = load,
		      .put = put,
		      .after_attach = after_attach,
		      .read_counts = read_counts,
		      .put_counts = put_counts,
		      .own = &a.q},
	};
	int status = ready_command(&a.r, argc, argv);

	ready_end(&a.r);
	vms_free(&a.q.vms);
	free(a.q.rows);
	return status;
}

static const struct words call_words = {.nth = kvm_call_nth};

static const struct opt options[] = {
	{"nr", 0, OPT_STRING, "NR", "only this hypercall: its number or name",
	 offsetof(struct args, q.nr), &call_words},
	{"all", 'a', OPT_FLAG, NULL, "every exit, by its reason", offsetof(struct args, q.all),
	 NULL},
	{"live", 'l', OPT_FLAG, NULL, "print each one, instead of a table at the end",
	 offsetof(struct args, q.live), NULL},
};

const struct command cmd_trace_hypercall = {
	.name = "trace hypercall",
	.about = "measure the hypercalls and exits of virtual machines",
	.run = run_hypercall,
	.syntax =
		{
			.usage = "ax trace hypercall [--nr NR | -a] [-l] [-p PID] [-c CMD] [--app "
				 "NAME] [-d TIME]",
			.about = "Measures, for each vCPU of the guests of KVM, how often which "
				 "hypercall was made and how long it took, from the exit (VMCALL "
				 "or VMMCALL) to the next entry into the guest; with -a the same "
				 "of every exit, by its reason. At the end there is a table and "
				 "for each vCPU a histogram.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{ready_opts, ARRAY_SIZE(ready_opts), offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPT_OUTPUT - TRACE_OPT_APP,
				 offsetof(struct args, r.args)},
				{trace_record_opts, TRACE_RECORD_OPTS,
				 offsetof(struct args, r.args)}},
		},
};
