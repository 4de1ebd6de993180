/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exposed ports: whose they are, the sockets that keep others from them, and what the kernel is
 * told. What was exposed stays so while no agent runs: the next one claims it anew, and takes it as
 * it is where a port was bound by somebody meanwhile.
 */
#ifndef AX_INGRESS_INGRESS_H
#define AX_INGRESS_INGRESS_H

#include "base/util.h"

struct agent;
struct app;
struct declared;
struct expose_list;
struct service;

int ingress_open(struct agent *a);
/* Memory and sockets only: the kernel keeps what it was told. */
void ingress_close(struct agent *a);

/* Claims what the app (or service) exposes now, and gives back what it did before. -EADDRINUSE with
 * a sentence that names who has the port; then it has none of them that it did not have before. */
int ingress_app(struct agent *a, const struct app *app, struct error *e);
int ingress_service(struct agent *a, const struct service *s, struct error *e);
/* The same for an app that does not run, and that connections start. It takes over from one of its
 * name that has ended, and whoever runs by that name from it: the port is nobody's meanwhile. */
int ingress_declared(struct agent *a, const struct declared *d, struct error *e);
void ingress_declared_gone(struct agent *a, const struct declared *d);
/* An app has what clashes with one of these. */
bool ingress_is_taken(const struct agent *a, const struct expose_list *l);
/* Its backends are others. */
void ingress_service_moved(struct agent *a, struct service *s);
/* Gives back what the service exposes but does not in its next configuration: another one may claim
 * it first. */
void ingress_service_next(struct agent *a, const struct service *s, const struct expose_list *next);
void ingress_app_gone(struct agent *a, const struct app *app);
void ingress_service_gone(struct agent *a, struct service *s);

/* A private app has its device now. */
void ingress_device(struct agent *a, const struct app *app);

/* Tries to keep ports that others' connections of before have been in the way of; and when; 0:
 * never. */
void ingress_due(struct agent *a, uint64_t now_ns);
uint64_t ingress_deadline(const struct agent *a);

/* For the loop: LOOP_INGRESS. */
void ingress_on_link(struct agent *a);

/* No program of the instance's is left at the host's interfaces. Also for an agent of which there
 * is hardly more than its instance and netlink socket. */
void ingress_detach(struct agent *a);

/* What a former agent exposed is led on as it was, whatever else the programs are told, until
 * ingress_sweep(). */
void ingress_adopt(struct agent *a);

/* Forgets what a former agent exposed and nobody has claimed. */
int ingress_sweep(struct agent *a);

#endif
