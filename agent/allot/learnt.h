/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which addresses outside belong to names that rules speak of, and how long: what the agent's DNS
 * has answered. */
#ifndef AX_ALLOT_LEARNT_H
#define AX_ALLOT_LEARNT_H

#include "base/address.h"
#include "base/strv.h"
#include "party.h"

#define LEARNT_SHARE  512 /* of one app; one more takes the place of what would go first */
#define LEARNT_SURE   64  /* which it has also where others have all: who has most gives one */
#define LEARNT_ASKERS 4	  /* of one entry that are known: it goes with the last */

struct learnt;
struct learnt *learnt_new(void); /* NULL: out of memory */
void learnt_free(struct learnt *l);
size_t learnt_count(const struct learnt *l);

/* One name of an address. */
struct learnt_entry {
	struct ax_addr addr;
	const char *name;  /* as want_domain() makes it */
	uint64_t until_ns; /* CLOCK_BOOTTIME */
	uint32_t app;	   /* who had asked */
};

/* 1: the address has that name from now on; 0: it had it, and maybe for longer now; -ENOMEM, or
 * -ENOSPC if there is no place for more of that app. *e then has the time and the asker that hold.
 * *gone: what had to go for it, addr zero: nothing; its name is the caller's to free. What another
 * app has learnt, too, does not go for it. */
int learnt_put(struct learnt *l, struct learnt_entry *e, struct learnt_entry *gone);
/* Takes one that is over by then; its name is the caller's to free. False: there is none. */
bool learnt_take_old(struct learnt *l, uint64_t now_ns, struct learnt_entry *ret);
/* When the first is over; 0: there is none. */
uint64_t learnt_next_ns(const struct learnt *l);

/* The names of an address, into ret (the strings stay the table's); 0 or -ENOMEM. Free with
 * free(ret->v). */
int learnt_names(const struct learnt *l, const struct ax_addr *addr, struct strv *ret);
/* A name of the address that the app is known to have asked for, or NULL. */
const char *learnt_name(const struct learnt *l, const struct ax_addr *addr, uint32_t app);
/* Calls f for each address once, until it returns anything but 0, which is returned. */
int learnt_each(const struct learnt *l, int (*f)(void *arg, const struct ax_addr *addr), void *arg);

#endif
