// SPDX-License-Identifier: GPL-2.0-or-later
/* What the actions of a script do when their records come, in the order of their times. */
#include "tools/trace/script/script.h"

/* --- tables --- */

static void choose(struct script_run *run, size_t table)
{
	run->t.table = (uint32_t)table;
	run->t.table_name = run->script.tables[table - 1].name;
}

static bool is_chosen(uint32_t tables, size_t table)
{
	return !tables || tables >> table & 1;
}

static void show_table(struct script_run *run, size_t table, uint64_t real_ns)
{
	struct session_table now = {0};
	struct trace *t = &run->t;
	int r;

	choose(run, table);
	r = trace_read_table(t, &now);
	if (r < 0) {
		t->out.error = -r;
		return;
	}
	session_table_since(&now, &run->cleared[table]);
	if (!t->json && now.n)
		trace_out_printf(&t->out, "%s:\n", t->table_name);
	if (now.n)
		trace_put_table(t, &now, t->json ? real_ns : 0);
	if (!t->json && now.n)
		trace_out_char(&t->out, '\n');
	session_table_free(&now);
}

void script_show(struct script_run *run, uint32_t tables, uint64_t real_ns)
{
	for (size_t i = 1; i <= run->script.n_tables; i++)
		if (is_chosen(tables, i))
			show_table(run, i, real_ns);
}

/* The kernel goes on counting: what it had is taken away from then on, so that nothing that is
 * counted meanwhile is lost. */
static void clear(struct script_run *run, uint32_t tables)
{
	for (size_t i = 1; i <= run->script.n_tables; i++) {
		struct session_table now = {0};
		int r;

		if (!is_chosen(tables, i))
			continue;
		choose(run, i);
		r = trace_read_table(&run->t, &now);
		if (r < 0)
			run->t.out.error = -r;
		session_table_free(&run->cleared[i]);
		run->cleared[i] = now;
	}
}

uint64_t script_counted(const struct script_run *run)
{
	uint64_t sum = 0;

	for (size_t i = 1; i <= run->script.n_tables; i++) {
		struct session_table now = {0};

		if (session_table_of(run->t.session, (uint32_t)i, &now) < 0)
			continue;
		for (size_t j = 0; j < now.n; j++)
			sum += now.v[j].cell.count;
		session_table_free(&now);
	}
	return sum;
}

/* Processes of functions in keys may be gone when the table is shown. */
void script_look(struct script_run *run)
{
	for (size_t i = 1; i <= run->script.n_tables; i++) {
		choose(run, i);
		if (trace_table_has_names(&run->t))
			trace_note_table(&run->t);
	}
}

/* --- records --- */

static bool is_of_end(const struct script_run *run, size_t step)
{
	for (size_t i = 0; i < run->script.n_clauses; i++) {
		const struct script_clause *c = &run->script.clauses[i];

		if (step >= c->first && step < c->first + c->n)
			return c->event == SCRIPT_END;
	}
	return false;
}

int script_act(struct script_run *run, const struct ax_probe_record *r, size_t len)
{
	uint32_t part = session_probe(run->t.session, r->probe)->part;
	const struct script_step *step = &run->script.steps[part];
	bool end = is_of_end(run, part);

	if (run->exited && !end) {
		run->unshown += step->verb <= SCRIPT_FLOW;
		return 0;
	}
	switch (step->verb) {
	case SCRIPT_WATCH:
		return trace_put_record(&run->t, r, len);
	case SCRIPT_PRINT:
		return script_print(run, step, r, len);
	case SCRIPT_FLOW:
		return script_flow(run, r, len);
	case SCRIPT_SHOW:
		run->shown |= end;
		script_show(run, step->tables, r->time_ns + (uint64_t)run->t.real_offset_ns);
		return 0;
	case SCRIPT_CLEAR:
		clear(run, step->tables);
		return 0;
	default:
		run->exited = true;
		run->done = true;
		return 0;
	}
}
