/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A config that all nodes of the cluster have: from who reads it there (the room cluster) to who
 * makes it true (sections/shared_services.h). */
#ifndef AX_REGISTRY_SHARED_SOURCE_H
#define AX_REGISTRY_SHARED_SOURCE_H

#include <stdint.h>

struct shared_source {
	const char *text; /* NUL-terminated */
	int64_t revision; /* from 1 */
	char id[33];	  /* two of one revision, of a registry that began anew, differ */
	char cluster[64]; /* whose it is */
};

#endif
