// SPDX-License-Identifier: GPL-2.0-or-later
/* The values of a rule's action, capture and rate, which are small languages of their own. */
#include "rules/defaults.h"
#include "rules/key.h"
#include "rules/priv.h"

#define CPU_MAX 8191 /* NR_CPUS of the largest kernels */

/* --- action --- */

static int want_target(struct rule *r, const char *target, struct rule_fault *f)
{
	uint64_t cpu;

	switch (r->verdict) {
	case AX_VERDICT_REDIRECT:
		if (!value_is_interface(target))
			return fault_set(f, NULL, "redirect and an interface's name");
		break;
	case AX_VERDICT_CPU:
		if (value_number(target, CPU_MAX, &cpu) < 0)
			return fault_set(f, NULL, "cpu and its number of 0 to %d", CPU_MAX);
		r->cpu = (uint32_t)cpu;
		return 0;
	default:
		if (!value_is_name(target))
			return fault_set(f, NULL,
					 "balance and a balancer's name: letters, digits and . _ "
					 "- :");
		break;
	}
	r->target = strdup(target);
	return r->target ? 0 : -ENOMEM;
}

int rule_parse_action(struct rule *r, const char *value, struct rule_fault *f)
{
	size_t len = strcspn(value, " \t");
	const char *target = value + len + strspn(value + len, " \t");
	char word[sizeof("challenge")], hint[96];
	int i;

	if (len < sizeof(word)) {
		memcpy(word, value, len);
		word[len] = '\0';
	} else {
		strcpy(word, "?");
	}
	i = value_word(word, ax_verdict_names, ARRAY_SIZE(ax_verdict_names));
	if (i < 0 || (!rule_verdict_has_target((enum ax_verdict)i) && value[len]))
		return fault_set(f, NULL, "%s%s", rule_key(KEY_ACTION)->want,
				 i < 0 ? value_hint(word, ax_verdict_names,
						    ARRAY_SIZE(ax_verdict_names), hint)
				       : "");
	r->verdict = (enum ax_verdict)i;
	return rule_verdict_has_target(r->verdict) ? want_target(r, target, f) : 0;
}

/* --- capture --- */

static int add_capture(void *arg, char *item, struct rule_fault *f)
{
	struct rule *r = arg;
	uint64_t bytes;

	if (f->item == 0) {
		if (value_number(item, AX_CAPTURE_MAX, &bytes) < 0 || bytes == 0)
			return -EINVAL;
		r->capture = (uint32_t)bytes;
		return 0;
	}
	if (streq(item, "ring") && !r->capture_ring) {
		r->capture_ring = true;
		return 0;
	}
	if (streq(item, "frame") && !r->capture_frame) {
		r->capture_frame = true;
		return 0;
	}
	if (!starts_with(item, "slot=") || r->slot)
		return -EINVAL;
	if (!value_is_name(item + 5))
		return fault_set(f, NULL, "slot= and a name of letters, digits and . _ - :");
	r->slot = strdup(item + 5);
	return r->slot ? 0 : -ENOMEM;
}

int rule_parse_capture(struct rule *r, const char *value, struct rule_fault *f)
{
	char found[64];
	int code = value_each(value, 4, f, add_capture, r);

	if (code < 0)
		return code;
	if (!r->slot)
		r->capture_ring = true;
	if (r->capture_ring || r->capture <= AX_SLOT_BYTES)
		return 0;
	f->item = 0;
	snprintf(found, sizeof(found), "\"%u\"", r->capture);
	return fault_set(f, found, "at most %d bytes for a slot alone (the ring takes more)",
			 AX_SLOT_BYTES);
}

/* --- rate --- */

#define PACKETS_MAX 1000000000ull   /* a second: above it there is nothing to limit */
#define BITS_MAX    100000000000ull /* a byte then costs 5 units of struct ax_limit */
#define BURST_MAX_S (24 * 60 * 60)  /* so that time stamps in 1/64 ns have room */

static const struct unit {
	const char *name;
	bool bits;
	uint64_t factor;
} units[] = {
	{"gbit", true, 1000000000}, {"mbit", true, 1000000}, {"kbit", true, 1000}, {"bit", true, 1},
	{"mpps", false, 1000000},   {"kpps", false, 1000},   {"pps", false, 1},
};

uint64_t rate_default_burst(uint64_t rate, bool bits)
{
	uint64_t burst = (bits ? rate / 8 : rate) / RATE_BURST_PART,
		 least = bits ? RATE_BYTES_MIN : 1;

	return burst > least ? burst : least;
}

/* The number before the unit, both parts apart. */
static int split_number(const char *s, uint64_t max, uint64_t *ret, const char **unit)
{
	char digits[24];
	size_t len = strspn(s, "0123456789");

	if (len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, s, len);
	digits[len] = '\0';
	*unit = s + len;
	return value_number(digits, max, ret);
}

static int set_rate(struct rule *r, const char *item, struct rule_fault *f)
{
	const char *unit;
	uint64_t n;

	if (split_number(item, BITS_MAX, &n, &unit) < 0 || n == 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		const struct unit *u = &units[i];

		if (strcasecmp(unit, u->name) != 0)
			continue;
		if (n > (u->bits ? BITS_MAX : PACKETS_MAX) / u->factor)
			return fault_set(f, NULL, "at most 1000mpps or 100gbit");
		r->rate = n * u->factor;
		r->rate_bits = u->bits;
		return 0;
	}
	return fault_set(f, NULL, "a unit: pps, kpps, mpps, bit, kbit, mbit or gbit");
}

static int set_burst(struct rule *r, const char *text, struct rule_fault *f)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} sizes[] = {{"", 1}, {"k", 1000}, {"kb", 1000}, {"m", 1000000}, {"mb", 1000000}};
	uint64_t per_second = r->rate_bits ? (r->rate + 7) / 8 : r->rate, n;
	size_t n_sizes = r->rate_bits ? ARRAY_SIZE(sizes) : 1;
	const char *unit;

	if (split_number(text, UINT32_MAX, &n, &unit) < 0 || n == 0)
		n_sizes = 0;
	for (size_t i = 0; i < n_sizes; i++) {
		if (strcasecmp(unit, sizes[i].name) != 0)
			continue;
		n *= sizes[i].factor;
		if (n > per_second * BURST_MAX_S && n > RATE_BYTES_MIN)
			return fault_set(f, NULL, "a burst of at most a day's worth");
		r->burst = n;
		return 0;
	}
	return fault_set(f, NULL,
			 r->rate_bits ? "burst= and a number of bytes such as 15000, 64k or 1m"
				      : "burst= and a number of packets");
}

/* "src", "src/24", "src/24/64" */
static int set_per(struct rule *r, const char *text, struct rule_fault *f)
{
	static const char want[] = "per=src, per=src/24 or per=src/24/64, with a length for IPv4 "
				   "of 0 to 32, then one for IPv6 of 0 to 128";
	uint8_t len4 = RATE_PREFIX4, len6 = RATE_PREFIX6;

	if (!streq(text, "src") &&
	    (!starts_with(text, "src/") || value_prefix_lengths(text + 4, &len4, &len6) < 0))
		return fault_set(f, NULL, want);
	r->per_source = true;
	r->per4 = len4;
	r->per6 = len6;
	return 0;
}

static int add_rate(void *arg, char *item, struct rule_fault *f)
{
	struct rule *r = arg;

	if (f->item == 0)
		return set_rate(r, item, f);
	if (starts_with(item, "burst=") && !r->burst)
		return set_burst(r, item + 6, f);
	if (starts_with(item, "per=") && !r->per_source)
		return set_per(r, item + 4, f);
	return fault_set(f, NULL, "burst=N or per=src behind the rate, each once");
}

int rule_parse_rate(struct rule *r, const char *value, struct rule_fault *f)
{
	int code = value_each(value, 3, f, add_rate, r);

	if (code == 0 && !r->burst)
		r->burst = rate_default_burst(r->rate, r->rate_bits);
	return code;
}
