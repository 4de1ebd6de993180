/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "registry/asked_names.h"
#include "base/address.h"
#include "registry/app_table.h"

struct asked_names {
	struct {
		struct ax_addr addr;
		char *name; /* NULL: none */
	} v[ASKED_NAMES];
	unsigned next; /* the oldest */
};

static int find(const struct asked_names *n, const struct ax_addr *addr)
{
	for (int i = 0; n && i < ASKED_NAMES; i++)
		if (n->v[i].name && addr_eq(&n->v[i].addr, addr))
			return i;
	return -1;
}

void asked_name_note(struct app *app, const struct ax_addr *addr, const char *name)
{
	int i = find(app->asked, addr);
	char *copy;

	if (i >= 0 && streq(app->asked->v[i].name, name))
		return;
	if (!app->asked)
		app->asked = calloc(1, sizeof(*app->asked));
	copy = app->asked ? strdup(name) : NULL;
	if (!copy)
		return;
	if (i < 0) {
		i = (int)app->asked->next;
		app->asked->next = (app->asked->next + 1) % ASKED_NAMES;
	}
	free(app->asked->v[i].name);
	app->asked->v[i].name = copy;
	app->asked->v[i].addr = *addr;
}

const char *asked_name(const struct app *app, const struct ax_addr *addr)
{
	int i = find(app->asked, addr);

	return i < 0 ? NULL : app->asked->v[i].name;
}

void asked_names_free(struct asked_names *n)
{
	for (int i = 0; n && i < ASKED_NAMES; i++)
		free(n->v[i].name);
	free(n);
}
