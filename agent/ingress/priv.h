/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of this room only. */
#ifndef AX_INGRESS_PRIV_H
#define AX_INGRESS_PRIV_H

#include "base/loop.h"
#include "config/expose.h"
#include "expose.h"
#include "registry/state.h"

enum { V4, V6, FAMILIES };

/* Whose ports, and where they lead. */
struct owner {
	const struct app *app;
	const struct service *service;	 /* if not an app */
	const struct declared *declared; /* if neither */
	const char *name;
	const struct expose_list *list;
	struct ax_addr vip[FAMILIES]; /* zero: none */
};

struct exposure {
	struct exposure *next;
	struct expose x;
	const struct app *app;
	const struct service *service;
	char *waits;	  /* else: an app of this name, which does not run */
	int fd[FAMILIES]; /* that keeps the port, -1 */
	bool has[FAMILIES];
	bool soon[FAMILIES];		     /* its entry has AX_EXPOSED_SOON */
	struct ax_exposed_key key[FAMILIES]; /* the kernel's entry, if has */
};

/* An interface of the host with our program. */
struct attached {
	unsigned ifindex;
	bool answers; /* also the one for answers of host-mode apps */
	bool made;    /* its clsact is ours */
};

struct ingress {
	struct exposure *list;
	struct loop_item links; /* fd -1: not watched */
	struct attached *attached;
	size_t n_attached;
	uint64_t again_ns; /* when ports are tried to be kept that could not be; 0: there is none */
	uint32_t again_ms; /* the interval, which grows */
	struct ax_endpoint *moved; /* UDP ports that lead to a service to which they did not */
	size_t n_moved;
	bool late_udp, late_tcp; /* a work of unjudged.c is to look at these */
	size_t n_mixed;		 /* services with backends of both modes */
	uint16_t told;		 /* enum ax_exposed_kind: what all is there for */
	uint16_t before; /* what a former agent had, until all of it is claimed or forgotten */
};

/* attach.c: the programs know which addresses are the host's, from now on. */
int ingress_watch(struct agent *a);
/* attach.c: all that packets need is there. 0 or a negative errno. */
int ingress_attach(struct agent *a);

/* ingress.c: interfaces have come or gone: those that something is exposed by are looked up. */
void ingress_links_changed(struct agent *a);

/* Keeps the port of one family from others, for what is not in the kernel's table yet. With `known`
 * it is: then who has the port meanwhile is put up with. */
int reserve(struct exposure *x, int family, bool known, struct error *e);
/* moved.c: such a port; and, once the kernel knows them all, that is done by a work. */
void moved_note(struct agent *a, const struct ax_endpoint *at);
void moved_forget(struct agent *a);

/* unjudged.c: ends what apps in host mode are connected to at exposed ports without having been
 * judged for it. The programs know the ports by then, and the host's addresses. */
void unjudged_end(struct agent *a, bool udp, bool tcp);

/* It has been told, but could not be kept: it is tried again. */
void reserve_later(struct agent *a);

#endif
