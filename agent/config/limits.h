/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an app may use of the machine, in words that flags and the config file share. */
#ifndef AX_CONFIG_LIMITS_H
#define AX_CONFIG_LIMITS_H

#include "base/util.h"
#include "config/defaults.h"

#define VOLUME_PATH_MAX 1024

/* A directory or file that an app sees in another place. */
struct volume {
	char source[VOLUME_PATH_MAX], target[VOLUME_PATH_MAX]; /* absolute paths */
	bool read_only;
};

/* "16M": bytes, unless K, M or G says otherwise. 0: it is no size, or above `max`. */
uint64_t size_parse(const char *s, uint64_t max);

/* Each returns NULL, or what was expected instead and leaves its result alone. */
const char *want_memory(const char *s, uint64_t *ret); /* bytes */
const char *want_cpus(const char *s, uint32_t *ret);   /* thousandths of a processor */
const char *want_pids(const char *s, uint32_t *ret);
const char *want_volume(const char *s, struct volume *ret);

#endif
