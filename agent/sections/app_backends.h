/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Apps of this machine as backends of the config's balancers (include/balance.h): the addresses
 * that balancers send from, and the list that turns back what apps answer to these.
 */
#ifndef AX_SECTIONS_APP_BACKENDS_H
#define AX_SECTIONS_APP_BACKENDS_H

#include "base/util.h"

struct agent;
struct rule_list;

/* Whether a NAT balancer of the list has such a backend now. */
bool app_backends_in(struct agent *a, const struct rule_list *l);

/* Makes the way, if it is not there. To be called before a list with such a backend judges. */
int app_backends_open(struct agent *a, struct error *e);

/* No list has such backends any more. */
void app_backends_close(struct agent *a);

#endif
