// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/process/mappings.h"
#include "probes/process/process.h"
#include "tools/trace/ready/stacks.h"

#define NAME_SIZE 1024
/* What a program loads comes later than it does itself; of many processes only some are looked at
 * again, the others when they are seen first. */
#define LOOK_AGAIN_MAX 16

void stacks_begin(struct stacks *s)
{
	/* without them, processes that end soon have no names */
	if (processes_new(&s->names) < 0)
		s->names = NULL;
	if (mappings_open(&s->mappings) < 0)
		s->mappings = NULL;
}

void stacks_look(struct stacks *s)
{
	s->looks = 0;
	if (s->mappings)
		mappings_read(s->mappings);
}

void stacks_note(struct stacks *s, int pid)
{
	if (!s->names)
		return;
	if (s->looks++ < LOOK_AGAIN_MAX)
		processes_note_again(s->names, pid);
	else
		processes_note(s->names, pid);
}

void stacks_see(struct stacks *s, int pid)
{
	if (s->names)
		processes_note(s->names, pid);
}

static bool find(struct stacks *s, int pid, uint64_t address, struct place_name *n)
{
	struct place_name seen;

	if (s->names && processes_symbolise(s->names, pid, address, n) == 0 && n->function)
		return true;
	if (s->mappings && mappings_symbolise(s->mappings, pid, address, &seen) == 0) {
		*n = seen;
		return true;
	}
	return n->file != NULL;
}

static void name_of(struct stacks *s, int pid, uint64_t address, char to[NAME_SIZE])
{
	struct place_name n = {.offset = address};

	/* an address to return to may be behind the end of the function that calls */
	if (find(s, pid, address - 1, &n))
		n.offset++;
	else
		n = (struct place_name){.offset = address};
	place_name_text(&n, to, NAME_SIZE);
}

static bool is_code(struct stacks *s, int pid, uint64_t address)
{
	struct place_name ignored;

	return (s->names && processes_has_code(s->names, pid, address)) ||
	       (s->mappings && mappings_symbolise(s->mappings, pid, address, &ignored) == 0);
}

size_t stacks_callers(struct stacks *s, int pid, const uint64_t *addresses, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!is_code(s, pid, addresses[i] - 1))
			return i;
	return n;
}

void stacks_put(struct ready *r, struct stacks *s, int pid, const uint64_t *addresses, size_t n)
{
	char name[NAME_SIZE];

	if (r->json)
		trace_out_char(&r->out, '[');
	for (size_t i = 0; i < n; i++) {
		name_of(s, pid, addresses[i], name);
		trace_out_text(&r->out, !r->json ? "        " : i ? "," : "");
		if (r->json)
			trace_out_json(&r->out, name, strlen(name));
		else
			trace_out_safe(&r->out, name, strlen(name));
		if (!r->json)
			trace_out_char(&r->out, '\n');
	}
	if (r->json)
		trace_out_char(&r->out, ']');
}

void stacks_free(struct stacks *s)
{
	if (s->names)
		processes_free(s->names);
	if (s->mappings)
		mappings_close(s->mappings);
	*s = (struct stacks){0};
}
