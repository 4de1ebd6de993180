// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/near.h"

#define WORD_MAX 64 /* longer words are not compared */

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that make b of a; more than `max` is
 * max + 1. */
static size_t edit_distance(const char *a, const char *b, size_t max)
{
	size_t rows[3][WORD_MAX + 1], *two_up = rows[0], *up = rows[1], *row = rows[2];
	size_t la = strnlen(a, WORD_MAX + 1), lb = strnlen(b, WORD_MAX + 1), least_up = 0;

	if (la > WORD_MAX || lb > WORD_MAX || (la > lb ? la - lb : lb - la) > max)
		return max + 1;
	for (size_t j = 0; j <= lb; j++)
		up[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t least = i, *spare = two_up;

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t replace = up[j - 1] + (a[i - 1] != b[j - 1]);

			row[j] = min3(up[j] + 1, row[j - 1] + 1, replace);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    two_up[j - 2] + 1 < row[j])
				row[j] = two_up[j - 2] + 1;
			least = row[j] < least ? row[j] : least;
		}
		if (least > max && least_up > max) /* a swap looks back two rows */
			return max + 1;
		least_up = least;
		two_up = up;
		up = row;
		row = spare;
	}
	return up[lb] > max ? max + 1 : up[lb];
}

const char *nearest_word(const char *word, const char *const *candidates, size_t n)
{
	size_t best = strlen(word) / 3 + 1;
	const char *nearest = NULL;

	for (size_t i = 0; i < n && best > 0; i++) {
		size_t distance = edit_distance(word, candidates[i], best - 1);

		if (distance < best) {
			best = distance;
			nearest = candidates[i];
		}
	}
	return nearest;
}

void near_start(struct near *n, const char *want)
{
	*n = (struct near){.want = want, .best = strlen(want) < 6 ? 2 : 3};
}

bool near_look(struct near *n, const char *name)
{
	size_t len = strlen(n->want), distance;

	if (!n->best)
		return false;
	/* compilers call a changed copy of f f.isra.0, f.constprop.0, f.part.0 */
	if (!strncmp(name, n->want, len) && name[len] == '.')
		distance = 0;
	else
		distance = edit_distance(n->want, name, n->best - 1);
	if (distance >= n->best || strlen(name) >= sizeof(n->name))
		return false;
	n->best = distance;
	snprintf(n->name, sizeof(n->name), "%s", name);
	return true;
}
