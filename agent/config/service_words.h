/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words of services that are one of a few, by name. (Strategies: strategy.h.) */
#ifndef AX_CONFIG_SERVICE_WORDS_H
#define AX_CONFIG_SERVICE_WORDS_H

#include "config/config.h"

const char *affinity_name(enum service_affinity v);
const char *hash_name(enum service_hash v);
const char *udp_choice_name(enum service_udp v);
const char *on_remove_name(enum service_on_remove v);

/* NULL and *ret, or what was expected. */
const char *want_affinity(const char *s, enum service_affinity *ret);
const char *want_hash(const char *s, enum service_hash *ret);
const char *want_udp_choice(const char *s, enum service_udp *ret);
const char *want_on_remove(const char *s, enum service_on_remove *ret);

/* The i-th name, NULL behind the last. */
const char *affinity_nth(size_t i);
const char *hash_nth(size_t i);
const char *udp_choice_nth(size_t i);
const char *on_remove_nth(size_t i);

#endif
