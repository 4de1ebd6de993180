/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exposed ports as text, for flags, the file and the control socket alike. */
#ifndef AX_CONFIG_EXPOSE_H
#define AX_CONFIG_EXPOSE_H

#include "config/config.h"

/* "[ADDRESS:|INTERFACE:]PORT:PORT[/tcp|/udp]", also with ranges of ports of the same length:
 * appended to the list. Returns NULL, or what was expected instead and the list is as it was;
 * *r is -ENOMEM where memory is out, else 0. */
const char *want_expose(const char *s, struct expose_list *l, int *r);
/* The same for flags. */
int spec_parse_expose(const char *s, struct expose_list *l, struct error *e);

bool expose_eq(const struct expose *a, const struct expose *b);
/* Whether there is a packet that would be for both. (The kernel sees it so, too: it lets no two
 * sockets bind what clashes here.) */
bool expose_clashes(const struct expose *x, const struct expose *y);

#define EXPOSE_STRLEN (ADDR_STRLEN + 32)
/* As want_expose() takes it, the protocol always with it. */
char *expose_format(const struct expose *x, char buf[EXPOSE_STRLEN]);
/* "tcp" or "udp" */
const char *expose_proto(const struct expose *x);

#endif
