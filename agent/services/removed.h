/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets that are connected, through a service, to a backend that it has lost or that is down
 * (`on-remove:`): they are ended, so that their programs connect anew. Backends that drain, that
 * are of another zone, or apps that are about to end, are not lost. That is a work (base/work.h),
 * which begins when those before it have ended.
 */
#ifndef AX_SERVICES_REMOVED_H
#define AX_SERVICES_REMOVED_H

#include "services/members.h"

/* Before the service's first removed_sync(), for each of its endpoints: what the kernel has was
 * told it by an earlier agent. 0 or a negative errno. */
int removed_adopt(struct agent *a, struct service *s, const struct ax_endpoint *ep);
/* The service has these members now, and the kernel knows it. */
void removed_sync(struct agent *a, struct service *s, const struct service_member *m, size_t n);
/* The service is gone, and the kernel knows it. */
void removed_all(struct agent *a, struct service *s);
/* Memory only. */
void removed_forget(struct service *s);

#endif
