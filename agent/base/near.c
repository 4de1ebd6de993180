// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/near.h"

#define NEAR_MAX 64 /* longer names are not compared */

/* Levenshtein's distance; more than `max` is max + 1. */
static unsigned distance(const char *a, const char *b, unsigned max)
{
	unsigned row[NEAR_MAX + 1];
	size_t la = strnlen(a, NEAR_MAX + 1), lb = strnlen(b, NEAR_MAX + 1);

	if (la > NEAR_MAX || lb > NEAR_MAX || (la > lb ? la - lb : lb - la) > max)
		return max + 1;
	for (unsigned j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned i = 1; i <= la; i++) {
		unsigned diagonal = row[0], least = i;

		row[0] = i;
		for (unsigned j = 1; j <= lb; j++) {
			unsigned above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);

			best = above + 1 < best ? above + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			least = best < least ? best : least;
			diagonal = above;
			row[j] = best;
		}
		if (least > max)
			return max + 1;
	}
	return row[lb];
}

void near_start(struct near *n, const char *want)
{
	*n = (struct near){.want = want, .best = strlen(want) < 6 ? 2 : 3};
}

bool near_look(struct near *n, const char *name)
{
	size_t len = strlen(n->want);
	unsigned d;

	if (!n->best)
		return false;
	/* compilers call a changed copy of f f.isra.0, f.constprop.0, f.part.0 */
	if (!strncmp(name, n->want, len) && name[len] == '.')
		d = 0;
	else
		d = distance(n->want, name, n->best - 1);
	if (d >= n->best || strlen(name) >= sizeof(n->name))
		return false;
	n->best = d;
	snprintf(n->name, sizeof(n->name), "%s", name);
	return true;
}
