/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values that flags and the config file share, so that both take the same words; those of other
 * rooms too stand in base/values.h. */
#ifndef AX_CONFIG_SPEC_H
#define AX_CONFIG_SPEC_H

#include "config/config.h"

/* For the file. Each returns NULL, or what was expected instead and leaves its results alone. */
const char *want_vips(const char *s, struct ax_addr *ip4, struct ax_addr *ip6);
const char *want_net(const char *s, enum net_mode *ret);
const char *want_restart(const char *s, enum restart_policy *ret);
const char *want_splice(const char *s, enum splice_mode *ret);

/* For flags. "A[,A6]" in either order; "5s", "300ms", "2m" or seconds; private|host;
 * no|on-failure|always; auto|on|off|forced; a DNS label. -EINVAL with a sentence. */
int spec_parse_ip(const char *s, struct ax_addr *ip4, struct ax_addr *ip6, struct error *e);
int spec_parse_duration_ms(const char *s, uint32_t *ret, struct error *e);
int spec_parse_net(const char *s, enum net_mode *ret, struct error *e);
int spec_parse_restart(const char *s, enum restart_policy *ret, struct error *e);
int spec_parse_splice(const char *s, enum splice_mode *ret, struct error *e);
int spec_check_name(const char *s, struct error *e);

const char *net_mode_name(enum net_mode m);
const char *restart_policy_name(enum restart_policy p);
const char *splice_mode_name(enum splice_mode m);

#endif
