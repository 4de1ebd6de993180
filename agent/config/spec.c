// SPDX-License-Identifier: GPL-2.0-or-later
/* Values that flags and the config file share: one function each that knows what is right. */
#include "config/spec.h"
#include "base/values.h"

static const char *const net_modes[] = {[NET_PRIVATE] = "private", [NET_HOST] = "host"};
static const char *const restart_policies[] = {
	[RESTART_NO] = "no", [RESTART_ON_FAILURE] = "on-failure", [RESTART_ALWAYS] = "always"};
static const char *const splice_modes[] = {[SPLICE_AUTO] = "auto",
					   [SPLICE_ON] = "on",
					   [SPLICE_OFF] = "off",
					   [SPLICE_FORCED] = "forced"};

const char *net_mode_name(enum net_mode m)
{
	return m < ARRAY_SIZE(net_modes) ? net_modes[m] : NULL;
}

const char *restart_policy_name(enum restart_policy p)
{
	return p < ARRAY_SIZE(restart_policies) ? restart_policies[p] : NULL;
}

const char *splice_mode_name(enum splice_mode m)
{
	return m < ARRAY_SIZE(splice_modes) ? splice_modes[m] : NULL;
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

const char *want_splice(const char *s, enum splice_mode *ret)
{
	int i = find_word(s, splice_modes, ARRAY_SIZE(splice_modes));

	if (i < 0)
		return "auto, on, off or forced";
	*ret = (enum splice_mode)i;
	return NULL;
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

int spec_parse_splice(const char *s, enum splice_mode *ret, struct error *e)
{
	return result(e, "splice mode", s, want_splice(s, ret));
}

int spec_check_name(const char *s, struct error *e)
{
	return result(e, "name", s, want_name(s));
}
