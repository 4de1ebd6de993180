/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs of others made of packets, which is all that is known of them. */
#ifndef AX_TOOLS_XDP_FOREIGN_WORDS_H
#define AX_TOOLS_XDP_FOREIGN_WORDS_H

#include "iface/iface.h"

/* "XDP_DROP by NAME (id 7)" of an AX_TAPPED_OUT. */
void foreign_put_action(const struct xdp_foreign_tap *tap, const struct ax_tapped *p, FILE *to);

/* --- which of it is most, for ax xdp top --- */

#define FOREIGN_ACTIONS_MAX 64 /* actions of up to ten programs, and of those that follow them */
#define FOREIGN_WORDS_MAX   128

struct foreign_action {
	char words[FOREIGN_WORDS_MAX];
	uint32_t key, place, action; /* see struct ax_explain of struct ax_tapped */
	double packets, bytes;	     /* of those that were looked at */
};
struct foreign_actions {
	struct foreign_action v[FOREIGN_ACTIONS_MAX];
	size_t n;
	uint64_t *wanted; /* of each CPU the number of the packet whose end is to come; 0: none */
	uint32_t n_cpus;
};
void foreign_actions_free(struct foreign_actions *all);
/* As if nothing had been added. */
void foreign_actions_clear(struct foreign_actions *all);
/* Of each record that the tap gives. 0 or -ENOMEM. */
int foreign_actions_add(struct foreign_actions *all, const struct xdp_foreign_tap *tap,
			const struct ax_tapped *p);

#endif
