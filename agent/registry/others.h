/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Apps of other nodes that there is a way to, by their names and addresses. Who knows of them (the
 * room cluster) puts them in and takes them out; whoever makes services of names is told which
 * names are stale.
 */
#ifndef AX_REGISTRY_OTHERS_H
#define AX_REGISTRY_OTHERS_H

#include "base/address.h"
#include "base/util.h"

struct agent;
struct name;

struct other_port {
	uint16_t port; /* host byte order */
	uint8_t proto; /* IPPROTO_TCP or IPPROTO_UDP */
	uint16_t via;  /* its node's port for it (routes: translate); 0: none */
	uint16_t via6; /* the same for its IPv6 address, at the node's */
	uint8_t only;  /* 4 or 6: at the address of that family alone; 0: not known, or both */
};

#define OTHER_NAME_MAX 63
#define OTHER_WHY_MAX  159

/* What an app's node says of it as a backend of a service of that name there, for one family. */
struct other_state {
	char service[OTHER_NAME_MAX + 1];
	bool v4;
	bool checked, down, drained;
	char why[OTHER_WHY_MAX + 1]; /* printable ASCII; "": there is none */
};

/* A part of its owner's memory, as is what it points to; none of it changes while it is in. */
struct other_app {
	const char *node, *app; /* names; of another cluster's NAME.CLUSTER */
	const char *cluster;	/* NULL: this one */
	struct ax_addr ip4, ip6;
	const struct other_port *ports; /* where it listens */
	size_t n_ports;
	const struct other_state *states; /* services that say nothing of it are not there */
	size_t n_states;
	bool stopping; /* it is about to end: no new connections */
	/* the table's own */
	struct other_app *next; /* of the same name */
	bool in;
};

/* -ENOMEM: it is not in then. */
int other_add(struct agent *a, struct other_app *r);
/* NULL-safe in that what is not in is left alone. */
void other_remove(struct agent *a, struct other_app *r);

/* Whether it listens there, at its address of that family. Port 0: anywhere. */
bool other_listens(const struct other_app *r, bool v4, uint16_t port, uint8_t proto);

/* What its node says of it as a backend of that service; of another cluster's, whose services are
 * others, as one of the service that its own name is there. NULL: nothing. */
const struct other_state *other_state_of(const struct other_app *r, const char *service, bool v4);

/* Why it is down, cut and made printable; NULL: there is no reason. */
void other_state_why(struct other_state *s, const char *why);

/* The first of a name that listens anywhere; NULL: nobody does. */
const struct other_app *other_serving(const struct name *n);

/* Whose address that is; NULL: nobody's. Of several the one that came first. */
const struct other_app *other_of_addr(const struct agent *a, const struct ax_addr *addr);

/* Whoever has that name has changed, or may be another. */
void name_stale(struct agent *a, struct name *n);
/* All names that apps of other nodes have. */
void others_all_stale(struct agent *a);
/* The next stale name, which is no longer, and stays until others_settled(). NULL: there is none.
 */
struct name *others_next_stale(struct agent *a);

void others_settled(struct agent *a, struct name *n);

void others_free(struct agent *a);

#endif
