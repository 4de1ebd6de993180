/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A dataplane of the test's own, pinned, with its maps and its services' lists. */
#ifndef AX_TESTS_DATAPLANE_H
#define AX_TESTS_DATAPLANE_H

#include "datapath/datapath.h"
#include "machine/instance.h"

struct own_dataplane {
	struct instance inst;
	char cgroup[4096];
	char pins[64], staging[64];
	struct datapath *dp;
};
extern struct own_dataplane own;

/* For cmocka: with the dataplane not yet open, or open. */
int dataplane_setup(void **state);
int dataplane_setup_open(void **state);
int dataplane_teardown(void **state);

void dataplane_open(bool fresh);
/* As the next agent does: the one before it has died. */
void dataplane_reopen(void);

/* A descriptor of a pinned map, and how many entries it has. */
int dataplane_map(const char *name);
size_t dataplane_count(const char *name, size_t key_size);

/* --- services' lists --- */
struct datapath_backend dataplane_backend(uint32_t app, uint32_t weight);
void dataplane_set_by(const struct ax_endpoint *ep, uint32_t strategy,
		      const struct datapath_backend *b, size_t n);
void dataplane_set(const struct ax_endpoint *ep, const struct datapath_backend *b, size_t n);
struct ax_service dataplane_service(const struct ax_endpoint *ep);
struct ax_backend dataplane_backend_at(const struct ax_service *s, uint32_t i);
uint32_t dataplane_app_at(const struct ax_service *s, uint32_t i);
size_t dataplane_count_chunks(void);

#endif
