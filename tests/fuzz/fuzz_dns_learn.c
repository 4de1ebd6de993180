// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as an upstream's answer, of which addresses are learnt; and as an entry of an egress
 * list: what is understood is understood again. */
#include "config/config.h"
#include "dns/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int cond)
{
	if (!cond)
		abort();
}

static void learn(const uint8_t *data, size_t size)
{
	char name[DOMAIN_STRLEN], again[DOMAIN_STRLEN];
	struct dns_learnt v[4];
	size_t n = dns_answer_addresses(data, size, name, v, ARRAY_SIZE(v));

	check(n <= ARRAY_SIZE(v));
	if (n)
		check(!want_domain(name, false, again) && streq(name, again));
	if (dns_asked_name(data, size, name))
		check(!want_domain(name, false, again) && streq(name, again));
}

static void read_list(const char *text)
{
	struct egress e = {0}, same = {0};
	int r, r2;

	if (!want_egress(text, &e, &r) && !r && e.mode == EGRESS_LIST) {
		autofree char *back = egress_format(&e);

		check(back && !want_egress(back, &same, &r2) && !r2 && egress_eq(&e, &same));
	}
	egress_free(&e);
	egress_free(&same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	learn(data, size);
	if (!text)
		return 0;
	read_list(text);
	free(text);
	return 0;
}
