// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/kvm/exits.h"
#include "tools/lib/table.h"
#include "tools/trace/ready/hypercall_table.h"

#define POWERS (AX_HYPERCALL_POWERS + 1)

const char *hypercall_name(uint64_t nr, char buf[HYPERCALL_NAME])
{
	const char *name = kvm_call_name(nr);

	snprintf(buf, HYPERCALL_NAME, "%llu%s%s", (unsigned long long)nr, name ? " " : "",
		 name ? name : "");
	return buf;
}

static int by_vcpu(const void *a, const void *b)
{
	const struct watch_hypercall_row *x = a, *y = b;

	if (x->key.vm != y->key.vm)
		return x->key.vm < y->key.vm ? -1 : 1;
	if (x->key.vcpu != y->key.vcpu)
		return x->key.vcpu < y->key.vcpu ? -1 : 1;
	if (x->cell.count != y->cell.count)
		return x->cell.count > y->cell.count ? -1 : 1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

/* --- buckets --- */

static uint64_t bucket_least(size_t i)
{
	unsigned power = (unsigned)(i >> AX_HYPERCALL_FINE_BITS) + 2;

	return i < 8 ? i : (8 | (i & 7)) << (power - AX_HYPERCALL_FINE_BITS);
}

static uint64_t bucket_most(size_t i)
{
	return i + 1 < AX_HYPERCALL_BUCKETS ? bucket_least(i + 1) - 1 : UINT64_MAX;
}

/* 0: 0, 1: 1, 2: 2 and 3, ... */
static unsigned bucket_order(size_t i)
{
	uint64_t least = bucket_least(i);

	return least ? 64 - (unsigned)__builtin_clzll(least) : 0;
}

/* What they say together. False: memory is out. */
static bool times_of(const struct ax_hypercall_cell *c, struct trace_times *ret)
{
	autofree struct session_row *v = calloc(AX_HYPERCALL_BUCKETS, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; v && i < AX_HYPERCALL_BUCKETS; i++) {
		uint64_t least = bucket_least(i), most = bucket_most(i);

		if (!c->buckets[i])
			continue;
		v[n].cell = (struct ax_probe_cell){
			.count = c->buckets[i],
			.sum = n ? 0 : c->sum,
			.least = least > ~c->least ? ~least : c->least,
			.most = most < c->most ? most : c->most,
		};
		n++;
	}
	return v && trace_times_of(v, n, ret);
}

static void add_cell(struct ax_hypercall_cell *to, const struct ax_hypercall_cell *c)
{
	to->count += c->count;
	to->sum += c->sum;
	if (c->most > to->most)
		to->most = c->most;
	if (c->least > to->least)
		to->least = c->least;
	for (size_t i = 0; i < AX_HYPERCALL_BUCKETS; i++)
		to->buckets[i] += c->buckets[i];
}

/* --- text --- */

static void add_row(struct table *t, const struct vms *vms, const struct watch_hypercall_row *row,
		    bool all)
{
	struct vm vm = vms_find(vms, row->key.vm);
	char exit[KVM_EXIT_NAME], name[HYPERCALL_NAME], text[TRACE_DURATION_MAX];
	struct trace_times times = {0};

	times_of(&row->cell, &times);
	table_add(t, vm.name);
	table_addf(t, "%u", vm.pid);
	table_add(t, vm.app);
	table_addf(t, "%u", row->key.vcpu);
	if (!all)
		table_add(t, row->key.kind == AX_HYPERCALL_OTHER
				     ? "others"
				     : hypercall_name(row->key.nr, name));
	table_add(t, kvm_exit_name(row->key.isa, row->key.reason, exit));
	table_addf(t, "%llu", (unsigned long long)row->cell.count);
	table_add(t, trace_duration_text(row->cell.sum, text));
	table_add(t, trace_duration_text((uint64_t)times.mean, text));
	table_add(t, trace_duration_text(times.p50, text));
	table_add(t, trace_duration_text(times.p99, text));
	table_add(t, trace_duration_text(times.greatest, text));
}

static int put_rows(struct ready *r, const struct vms *vms, const struct watch_hypercall_row *rows,
		    size_t n, bool all)
{
	static const struct table_column columns[] = {
		{.title = "VM", .keep = 9, .min = 12},
		{.title = "PID", .keep = 9, .right = true},
		{.title = "APP", .keep = 3, .min = 8},
		{.title = "VCPU", .keep = 9, .right = true},
		{.title = "CALL", .keep = 9, .min = 12},
		{.title = "EXIT", .keep = 9, .min = 12},
		{.title = "COUNT", .keep = 9, .right = true},
		{.title = "TOTAL", .keep = 2, .right = true},
		{.title = "MEAN", .keep = 9, .right = true},
		{.title = "50%", .keep = 8, .right = true},
		{.title = "99%", .keep = 8, .right = true},
		{.title = "GREATEST", .keep = 5, .right = true},
	};
	struct table_column used[ARRAY_SIZE(columns)];
	struct table_style style = table_style_for(stdout);
	CLEANUP(table_free) struct table table;
	autofree char *text = NULL;
	size_t size = 0, n_used = 0;
	FILE *f;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (!all || !streq(columns[i].title, "CALL"))
			used[n_used++] = columns[i];
	table_init(&table, used, n_used);
	for (size_t i = 0; i < n; i++)
		add_row(&table, vms, &rows[i], all);
	if (r->args.path)
		style = (struct table_style){.headers = true};
	f = open_memstream(&text, &size);
	if (!f)
		return -ENOMEM;
	err = table_print(&table, &style, f);
	if (fclose(f) == 0)
		trace_out_put(&r->out, text, size);
	return err;
}

static void put_bars(struct ready *r, const struct ax_hypercall_cell *c)
{
	uint64_t powers[POWERS] = {0}, most = 0;
	unsigned first = POWERS, last = 0;

	for (size_t i = 0; i < AX_HYPERCALL_BUCKETS; i++) {
		unsigned order = bucket_order(i);

		if (!c->buckets[i])
			continue;
		powers[order] += c->buckets[i];
		first = order < first ? order : first;
		last = order;
		most = powers[order] > most ? powers[order] : most;
	}
	trace_out_printf(&r->out, "%-20s %10s\n", "NANOSECONDS", "COUNT");
	for (unsigned i = first; i <= last && i < POWERS; i++)
		trace_put_power_bar(&r->out, i, powers[i], most);
}

/* Of the rows of one vCPU. */
static int put_histogram(struct ready *r, const struct vms *vms,
			 const struct watch_hypercall_row *rows, size_t n)
{
	autofree struct ax_hypercall_cell *sum = calloc(1, sizeof(*sum));
	struct vm vm = vms_find(vms, rows->key.vm);
	struct trace_times times;

	if (!sum)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		add_cell(sum, &rows[i].cell);
	trace_out_char(&r->out, '\n');
	trace_out_safe(&r->out, vm.name, strlen(vm.name));
	trace_out_printf(&r->out, " (%u) vCPU %u\n", vm.pid, rows->key.vcpu);
	put_bars(r, sum);
	if (times_of(sum, &times))
		trace_put_times(&r->out, &times);
	return 0;
}

static int put_text(struct ready *r, const struct vms *vms, const struct watch_hypercall_row *rows,
		    size_t n, bool all)
{
	int err = put_rows(r, vms, rows, n, all);
	size_t end;

	for (size_t i = 0; err == 0 && i < n; i = end) {
		for (end = i + 1; end < n && rows[end].key.vm == rows[i].key.vm &&
				  rows[end].key.vcpu == rows[i].key.vcpu;)
			end++;
		err = put_histogram(r, vms, &rows[i], end - i);
	}
	return err;
}

/* --- JSON --- */

static void put_json_key(struct ready *r, const struct vms *vms, const struct ax_hypercall_key *key)
{
	struct vm vm = vms_find(vms, key->vm);
	char exit[KVM_EXIT_NAME];
	const char *name;

	trace_out_text(&r->out, "{\"key\":{\"vm\":");
	trace_out_json(&r->out, vm.name, strlen(vm.name));
	ready_json_number(r, "pid", vm.pid);
	if (*vm.app)
		ready_json_string(r, "app", vm.app, strlen(vm.app));
	ready_json_number(r, "vcpu", key->vcpu);
	if (key->kind == AX_HYPERCALL_CALL) {
		trace_out_text(&r->out, ",\"nr\":");
		trace_out_u64(&r->out, key->nr);
		name = kvm_call_name(key->nr);
		if (name)
			ready_json_string(r, "call", name, strlen(name));
	} else if (key->kind == AX_HYPERCALL_OTHER) {
		trace_out_text(&r->out, ",\"others\":true");
	}
	name = kvm_isa_name(key->isa);
	ready_json_string(r, "isa", name, strlen(name));
	ready_json_number(r, "reason", key->reason);
	name = kvm_exit_name(key->isa, key->reason, exit);
	ready_json_string(r, "exit", name, strlen(name));
	trace_out_char(&r->out, '}');
}

static void put_json_row(struct ready *r, const struct vms *vms,
			 const struct watch_hypercall_row *row)
{
	const struct ax_hypercall_cell *c = &row->cell;
	struct trace_times times;
	const char *comma = "";

	put_json_key(r, vms, &row->key);
	trace_out_printf(&r->out, ",\"count\":%llu,\"sum\":%llu", (unsigned long long)c->count,
			 (unsigned long long)c->sum);
	if (times_of(c, &times))
		trace_put_json_times(&r->out, &times);
	trace_out_text(&r->out, ",\"buckets\":[");
	for (size_t i = 0; i < AX_HYPERCALL_BUCKETS; i++) {
		if (!c->buckets[i])
			continue;
		trace_out_printf(&r->out, "%s{\"least\":%llu,\"greatest\":%llu,\"count\":%llu}",
				 comma, (unsigned long long)bucket_least(i),
				 (unsigned long long)bucket_most(i),
				 (unsigned long long)c->buckets[i]);
		comma = ",";
	}
	trace_out_text(&r->out, "]}");
}

int hypercall_put_table(struct ready *r, const struct vms *vms, struct watch_hypercall_row *rows,
			size_t n, bool all)
{
	if (n)
		qsort(rows, n, sizeof(*rows), by_vcpu);
	if (!r->json && n)
		return put_text(r, vms, rows, n, all);
	if (!r->json) {
		trace_out_text(&r->out, "nothing happened\n");
		return 0;
	}
	trace_out_text(&r->out, "{\"table\":[");
	for (size_t i = 0; i < n; i++) {
		if (i)
			trace_out_char(&r->out, ',');
		put_json_row(r, vms, &rows[i]);
	}
	trace_out_text(&r->out, "]}\n");
	return 0;
}
