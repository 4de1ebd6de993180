// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What IP packets ask routers for, in IPv4's TOS or IPv6's traffic class: codepoints of
 * differentiated services (RFC 2474; names: IANA's registry "Differentiated Services Field
 * Codepoints") and of explicit congestion notification (RFC 3168).
 */
#include "rules/field.h"
#include "rules/priv.h"

static const char *const dscp_names[AX_DSCP_NONE] = {
	[0] = "cs0",   [8] = "cs1",   [16] = "cs2",  [24] = "cs3",  [32] = "cs4",  [40] = "cs5",
	[48] = "cs6",  [56] = "cs7",  [10] = "af11", [12] = "af12", [14] = "af13", [18] = "af21",
	[20] = "af22", [22] = "af23", [26] = "af31", [28] = "af32", [30] = "af33", [34] = "af41",
	[36] = "af42", [38] = "af43", [44] = "va",   [46] = "ef",   [1] = "le",
};

static const char *const ecn_names[AX_ECN_NONE] = {"not-ect", "ect1", "ect0", "ce"};

const char *dscp_name(unsigned dscp)
{
	return dscp < ARRAY_SIZE(dscp_names) ? dscp_names[dscp] : NULL;
}

int dscp_parse(const char *s)
{
	int i = value_word(s, dscp_names, ARRAY_SIZE(dscp_names));
	uint64_t n;

	if (i >= 0)
		return i;
	return value_number(s, AX_DSCP_NONE - 1, &n) < 0 ? -EINVAL : (int)n;
}

const char *ecn_name(unsigned ecn)
{
	return ecn < ARRAY_SIZE(ecn_names) ? ecn_names[ecn] : NULL;
}

int ecn_parse(const char *s)
{
	int i = value_word(s, ecn_names, ARRAY_SIZE(ecn_names));

	return i < 0 ? -EINVAL : i;
}

int dscp_add(const struct rule_field *row, struct condition *c, const char *item,
	     struct rule_fault *f)
{
	int dscp = dscp_parse(item);
	struct range range = {(uint32_t)dscp, (uint32_t)dscp};

	(void)f;
	if (dscp < 0 && value_range(item, row->last, false, &range) < 0)
		return -EINVAL;
	return field_add_range(c, &range);
}

void dscp_write(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct range *r = item;
	const char *name = r->lo == r->hi ? dscp_name(r->lo) : NULL;

	(void)row;
	field_separate(to);
	if (name)
		fputs(name, to->f);
	else if (r->lo == r->hi)
		fprintf(to->f, "%u", r->lo);
	else
		fprintf(to->f, "%u-%u", r->lo, r->hi);
}

int ecn_add(const struct rule_field *row, struct condition *c, const char *item,
	    struct rule_fault *f)
{
	int ecn = ecn_parse(item);

	(void)row;
	(void)f;
	return ecn < 0 ? ecn : field_add_range(c, &(struct range){(uint32_t)ecn, (uint32_t)ecn});
}

void ecn_write(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct range *r = item;

	(void)row;
	for (uint32_t v = r->lo; v <= r->hi; v++) {
		field_separate(to);
		fputs(ecn_names[v], to->f);
	}
}
