/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets that are connected, through a service, to a backend that it has lost or that is down
 * (`on-remove:`): they are ended, so that their programs connect anew. Backends that drain, that
 * are of another zone, or apps that are about to end, are not lost. That is a work (base/work.h),
 * which begins when those before it have ended.
 */
#ifndef AX_SERVICES_REMOVED_H
#define AX_SERVICES_REMOVED_H

#include "config/config.h"
#include "services/members.h"

/* Before the service's first removed_sync(), for each of its endpoints: what the kernel has was
 * told it by an earlier agent. 0 or a negative errno. */
int removed_adopt(struct agent *a, struct service *s, const struct ax_endpoint *ep);
/* The service has these members now, and the kernel knows it. */
void removed_sync(struct agent *a, struct service *s, const struct service_member *m, size_t n);
/* The service is gone, and the kernel knows it. */
void removed_all(struct agent *a, struct service *s);
/* What the kernel is told of the service's on-remove: enum ax_service_flag, for the next function.
 */
uint32_t removed_flags(const struct config_service *c);
/* When an agent starts and knows its services and apps, before it sweeps: those that the kernel has
 * besides are gone, and so are connections through them, as their config had it. 0 or a negative
 * errno. */
int removed_while_away(struct agent *a);
/* Memory only. */
void removed_forget(struct service *s);

#endif
