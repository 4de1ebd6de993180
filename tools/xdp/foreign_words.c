/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/xdp/foreign_words.h"

#include <linux/bpf.h>

#include "tools/lib/text.h"

#define CPUS_MAX 65536

void foreign_put_action(const struct xdp_foreign_tap *tap, const struct ax_tapped *p, FILE *to)
{
	static const char *const actions[] = {"XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX",
					      "XDP_REDIRECT"};
	const struct xdp_program_info *by = xdp_foreign_tap_by(tap, p);

	if (p->action < ARRAY_SIZE(actions))
		fputs(actions[p->action], to);
	else
		fputs("no action of XDP, which drops it", to);
	if (by) {
		fputs(" by ", to);
		text_put(by->name, to);
		fprintf(to, " (id %u)", by->id);
	}
}

void foreign_actions_free(struct foreign_actions *all)
{
	free(all->wanted);
	*all = (struct foreign_actions){0};
}

void foreign_actions_clear(struct foreign_actions *all)
{
	all->n = 0;
}

static int note_wanted(struct foreign_actions *all, const struct ax_tapped *p)
{
	uint32_t n = p->cpu + 1;
	uint64_t *more;

	if (p->cpu >= CPUS_MAX)
		return -ENOMEM;
	if (n > all->n_cpus) {
		more = realloc(all->wanted, n * sizeof(*more));
		if (!more)
			return -ENOMEM;
		memset(more + all->n_cpus, 0, (n - all->n_cpus) * sizeof(*more));
		all->wanted = more;
		all->n_cpus = n;
	}
	all->wanted[p->cpu] = p->number;
	return 0;
}

/* NULL: there is no room for so many. */
static struct foreign_action *
action_of(struct foreign_actions *all, const struct xdp_foreign_tap *tap, const struct ax_tapped *p)
{
	struct foreign_action *a;
	FILE *f;

	for (size_t i = 0; i < all->n; i++) {
		a = &all->v[i];
		if (a->key == p->told.key && a->place == p->told.rule && a->action == p->action)
			return a;
	}
	if (all->n == FOREIGN_ACTIONS_MAX)
		return NULL;
	a = &all->v[all->n];
	*a = (struct foreign_action){
		.key = p->told.key, .place = p->told.rule, .action = p->action};
	f = fmemopen(a->words, sizeof(a->words), "w");
	if (!f)
		return NULL;
	foreign_put_action(tap, p, f);
	fclose(f);
	a->words[sizeof(a->words) - 1] = '\0';
	all->n++;
	return a;
}

int foreign_actions_add(struct foreign_actions *all, const struct xdp_foreign_tap *tap,
			const struct ax_tapped *p)
{
	struct foreign_action *a;

	if (p->kind == AX_TAPPED_IN)
		return note_wanted(all, p);
	if (p->cpu >= all->n_cpus || all->wanted[p->cpu] != p->number)
		return 0; /* the filter does not want it */
	all->wanted[p->cpu] = 0;
	a = action_of(all, tap, p);
	if (!a)
		return 0;
	a->packets += p->sample;
	a->bytes += (double)p->sample * p->frame_len;
	return 0;
}
