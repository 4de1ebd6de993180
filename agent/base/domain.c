// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/domain.h"

#define LABEL_MAX 63

/* One label at s: its length, or 0 where it is none. No other byte stands for itself in every
 * place where names are written. */
static size_t label_len(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return n <= LABEL_MAX && (s[n] == '.' || !s[n]) ? n : 0;
}

/* (The last label of a name is no number: that is an address with a part missing.) */
static bool labels_are_good(const char *s)
{
	bool number = false;

	while (*s) {
		size_t n = label_len(s);

		if (!n)
			return false;
		number = strspn(s, "0123456789") == n;
		s += n + (s[n] == '.');
	}
	return !number;
}

const char *want_domain(const char *s, bool pattern, char ret[DOMAIN_STRLEN])
{
	static const char name[] = "a name such as www.example.com (in other scripts: xn--...)";
	static const char either[] =
		"a name such as www.example.com, *.example.com or * (in other scripts: xn--...)";
	const char *rest = s, *want = pattern ? either : name;
	size_t len = strlen(s);

	if (len && s[len - 1] == '.')
		len--;
	if (!len || len >= DOMAIN_STRLEN)
		return want;
	if (pattern && *s == '*') {
		if (s[1] && (s[1] != '.' || !s[2]))
			return want;
		rest += s[1] ? 2 : 1;
	}
	if (!labels_are_good(rest))
		return want;
	for (size_t i = 0; i < len; i++)
		ret[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + ('a' - 'A') : s[i]);
	ret[len] = 0;
	return NULL;
}

bool domain_matches(const char *pattern, const char *name)
{
	size_t below, len;

	if (*pattern != '*')
		return streq(pattern, name);
	if (!pattern[1])
		return true;
	below = strlen(pattern + 1); /* with its dot */
	len = strlen(name);
	return len > below && streq(name + len - below, pattern + 1);
}
