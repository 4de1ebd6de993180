// SPDX-License-Identifier: GPL-2.0-or-later
/* Values that flags and the config file share: one function each that knows what is right. */
#include "yaml/read.h"

#include <arpa/inet.h>
#include <ctype.h>

#define DURATION_MAX_MS (24u * 60 * 60 * 1000)

static const char *const net_modes[] = {[NET_PRIVATE] = "private", [NET_HOST] = "host"};
static const char *const restart_policies[] = {
	[RESTART_NO] = "no", [RESTART_ON_FAILURE] = "on-failure", [RESTART_ALWAYS] = "always"};

const char *net_mode_name(enum net_mode m)
{
	return net_modes[m];
}

const char *restart_policy_name(enum restart_policy p)
{
	return restart_policies[p];
}

static int find_word(const char *s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (streq(s, words[i]))
			return (int)i;
	return -1;
}

const char *want_net(const char *s, enum net_mode *ret)
{
	int i = find_word(s, net_modes, ARRAY_SIZE(net_modes));

	if (i < 0)
		return "private or host";
	*ret = (enum net_mode)i;
	return NULL;
}

const char *want_restart(const char *s, enum restart_policy *ret)
{
	int i = find_word(s, restart_policies, ARRAY_SIZE(restart_policies));

	if (i < 0)
		return "no, on-failure or always";
	*ret = (enum restart_policy)i;
	return NULL;
}

const char *want_name(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > 63 || s[0] == '-' || s[len - 1] == '-' ||
	    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != len)
		return "a name of 1 to 63 lower-case letters, digits and hyphens (none at its "
		       "ends)";
	return NULL;
}

static bool is_loopback(const struct ax_addr *a)
{
	return addr_is_v4(a) ? a->b[12] == IN_LOOPBACKNET : IN6_IS_ADDR_LOOPBACK(a->b);
}

const char *want_unicast(const struct ax_addr *a)
{
	bool v4 = addr_is_v4(a);
	uint32_t host = ntohl(a->w[3]);

	if (addr_is_zero(a) || (v4 && host == INADDR_ANY))
		return "a unicast address, not the unspecified one";
	if (is_loopback(a))
		return "a unicast address, not a loopback one";
	if (v4 ? IN_MULTICAST(host) : IN6_IS_ADDR_MULTICAST(a->b))
		return "a unicast address, not a multicast one";
	if (v4 && host == INADDR_BROADCAST)
		return "a unicast address, not the broadcast one";
	if (!v4 && IN6_IS_ADDR_LINKLOCAL(a->b)) /* means nothing without an interface */
		return "a unicast address, not a link-local one";
	return NULL;
}

const char *want_server(const struct ax_addr *a)
{
	return is_loopback(a) ? NULL : want_unicast(a);
}

/* One of the addresses in a list, into the field of its family. */
static const char *want_vip(const char *s, struct ax_addr *ip4, struct ax_addr *ip6)
{
	struct ax_addr a, *to;
	const char *want;

	if (addr_parse(s, &a) < 0)
		return "an IPv4 or IPv6 address, or one of each with a comma between";
	want = want_unicast(&a);
	if (want)
		return want;
	to = addr_is_v4(&a) ? ip4 : ip6;
	if (!addr_is_zero(to))
		return "at most one IPv4 and one IPv6 address";
	*to = a;
	return NULL;
}

const char *want_vips(const char *s, struct ax_addr *ip4, struct ax_addr *ip6)
{
	struct ax_addr v4 = {0}, v6 = {0};
	const char *comma = strchrnul(s, ',');
	size_t len = (size_t)(comma - s);
	char first[ADDR_STRLEN];
	const char *want;

	if (len >= sizeof(first))
		len = sizeof(first) - 1; /* too long for an address even when cut off */
	memcpy(first, s, len);
	first[len] = '\0';
	want = want_vip(first, &v4, &v6);
	if (!want && *comma)
		want = want_vip(comma + 1, &v4, &v6);
	if (want)
		return want;
	*ip4 = v4;
	*ip6 = v6;
	return NULL;
}

const char *want_duration_ms(const char *s, uint32_t *ret)
{
	static const struct {
		const char *suffix;
		uint32_t ms;
	} units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}};
	uint64_t value = 0;
	const char *p = s;

	for (; isdigit((unsigned char)*p) && value <= DURATION_MAX_MS; p++)
		value = value * 10 + (uint64_t)(*p - '0');
	for (size_t i = 0; p != s && i < ARRAY_SIZE(units); i++) {
		if (!streq(p, units[i].suffix))
			continue;
		if (value * units[i].ms > DURATION_MAX_MS)
			break;
		*ret = (uint32_t)value * units[i].ms;
		return NULL;
	}
	return "a duration such as 5s, 300ms or 2m, at most 24 hours (1440m)";
}

/* --- the same for flags --- */

static int result(struct error *e, const char *what, const char *s, const char *want)
{
	if (!want)
		return 0;
	return error_set(e, -EINVAL, "%s \"%.80s\" is not valid: use %s", what, s, want);
}

int spec_parse_ip(const char *s, struct ax_addr *ip4, struct ax_addr *ip6, struct error *e)
{
	return result(e, "address", s, want_vips(s, ip4, ip6));
}

int spec_parse_duration_ms(const char *s, uint32_t *ret, struct error *e)
{
	return result(e, "duration", s, want_duration_ms(s, ret));
}

int spec_parse_net(const char *s, enum net_mode *ret, struct error *e)
{
	return result(e, "network mode", s, want_net(s, ret));
}

int spec_parse_restart(const char *s, enum restart_policy *ret, struct error *e)
{
	return result(e, "restart policy", s, want_restart(s, ret));
}

int spec_check_name(const char *s, struct error *e)
{
	return result(e, "name", s, want_name(s));
}

/* --- command lines --- */

/* Appends the word's next characters, up to the end of a quoted part or one that is not quoted.
 * *p is behind the opening quote, and ends behind the closing one; NULL when there is none. */
static const char *copy_quoted(const char *p, char quote, char **out)
{
	while (*p && *p != quote) {
		/* as in a shell: within double quotes a backslash is one unless it hides something
		 */
		if (quote == '"' && *p == '\\' && p[1] && strchr("\"\\$`", p[1]))
			p++;
		*(*out)++ = *p++;
	}
	return *p ? p + 1 : NULL;
}

/* Copies the word at p without its quotes. Returns where it ended or NULL, with *want set. */
static const char *copy_word(const char *p, char *out, const char **want)
{
	while (p && *p && !isspace((unsigned char)*p)) {
		if (*p == '\'' || *p == '"') {
			p = copy_quoted(p + 1, *p, &out);
			if (!p)
				*want = "a closing quote at the end";
		} else if (*p == '\\' && !p[1]) {
			*want = "a character after the backslash at the end";
			p = NULL;
		} else {
			if (*p == '\\')
				p++;
			*out++ = *p++;
		}
	}
	*out = '\0';
	return p;
}

int split_words(const char *s, struct strv *ret, const char **want)
{
	autofree char *word = malloc(strlen(s) + 1);
	struct strv words = {0};
	int r = word ? 0 : -ENOMEM;

	*want = NULL;
	while (r == 0) {
		s += strspn(s, " \t\r\n\v\f");
		if (!*s)
			break;
		s = copy_word(s, word, want);
		r = s ? strv_add(&words, word) : -EINVAL;
	}
	if (r < 0)
		strv_free(&words);
	else
		*ret = words;
	return r;
}

/* --- near words --- */

#define WORD_MAX 32

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that make b of a. */
static size_t edit_distance(const char *a, size_t la, const char *b, size_t lb)
{
	size_t d[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t i = 0; i <= la; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= lb; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		for (size_t j = 1; j <= lb; j++) {
			size_t replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, replace);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	}
	return d[la][lb];
}

const char *nearest_word(const char *word, const char *const *candidates, size_t n)
{
	size_t len = strlen(word), best = len / 3 + 1;
	const char *nearest = NULL;

	if (len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t other = strlen(candidates[i]), distance;

		if (other > WORD_MAX)
			continue;
		distance = edit_distance(word, len, candidates[i], other);
		if (distance < best) {
			best = distance;
			nearest = candidates[i];
		}
	}
	return nearest;
}
