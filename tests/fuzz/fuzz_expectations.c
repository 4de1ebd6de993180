// SPDX-License-Identifier: GPL-2.0-or-later
/* Any text: expectations are either taken, and each can be judged, or there are errors with a
 * place. */
#include "config/expect.h"
#include "config/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static const char policy[] = "apps: {web: {command: x}, db: {command: x, labels: a=b}}\n"
			     "services: {shop: {ports: ['80:90'], backends: [web, labels: a=b]}}\n"
			     "policy: {rules: [deny: {from: web, to: shop, port: 90, name: r}]}\n";

static void judge(const struct expectations *all)
{
	struct config_errors errs;
	struct config c;

	check(config_parse(policy, sizeof(policy) - 1, &c, &errs) == 0);
	for (size_t i = 0; i < all->n; i++) {
		autofree char *why = NULL;
		int r = expectation_holds(&c, &all->v[i], &why);

		check(all->v[i].line && all->v[i].port);
		check((r == 0 || r == 1 || r == -EINVAL) && why && *why);
	}
	config_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_errors errs;
	struct expectations all;
	int r = expectations_parse((const char *)data, size, &all, &errs);

	check((r == 0) == (errs.n == 0));
	if (r == 0)
		judge(&all);
	expectations_free(&all);
	config_errors_free(&errs);
	return 0;
}
