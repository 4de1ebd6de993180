// SPDX-License-Identifier: GPL-2.0-or-later
/* Any text as the gate's result: what is understood is written as it was read, and any bytes as a
 * program that may use splice(2). */
#include "probes/elf/image.h"
#include "splice/facts.h"
#include "splice/gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_text(const char *text)
{
	/* as the seeds have them */
	static const struct gate_kernel k = {.kernel = "6.18.0 #1 SMP", .boot = "boot"};
	static struct gate_result r;
	autofree char *again = NULL;
	struct gate_verdict v;

	if (gate_parse(text, &k, &r))
		return;
	check(r.n <= GATE_LINES_MAX);
	gate_judge(&r, &v);
	check(v.state == GATE_KNOWN && v.same == (r.n == 0));
	check(gate_format(&r, &k, &again) == 0 && streq(text, again));
}

static void check_file(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct error e = {0};
	struct image im;

	if (!copy)
		return;
	memcpy(copy, data, size);
	if (image_open_memory(&im, copy, size, "fuzz", &e) == 0)
		check(facts_of_image(&im, true) <= FACT_USES &&
		      facts_of_image(&im, false) <= FACT_USES);
	image_close(&im);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = strndup((const char *)data, size);

	if (!text)
		return 0;
	check_text(text);
	check_file(data, size);
	return 0;
}
