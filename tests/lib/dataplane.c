/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>

#include "tests/lib/dataplane.h"
#include "machine/cgroup.h"
#include "tests/lib/instance.h"

struct own_dataplane own;

void dataplane_open(bool fresh)
{
	struct error e = {0};
	bool was_fresh;

	if (datapath_open(&own.inst, own.cgroup, &own.dp, &was_fresh, &e))
		fail_msg("%s", e.text);
	assert_int_equal(was_fresh, fresh);
}

void dataplane_reopen(void)
{
	datapath_close(own.dp);
	own.dp = NULL;
	dataplane_open(false);
}

int dataplane_setup(void **state)
{
	(void)state;
	memset(&own, 0, sizeof(own));
	if (own_instance(&own.inst, own.cgroup))
		return -1;
	snprintf(own.pins, sizeof(own.pins), BPFFS "/%s", own.inst.name);
	snprintf(own.staging, sizeof(own.staging), BPFFS "/%s-new", own.inst.name);
	return 0;
}

int dataplane_setup_open(void **state)
{
	struct error e = {0};
	bool fresh;

	if (dataplane_setup(state))
		return -1;
	if (datapath_open(&own.inst, own.cgroup, &own.dp, &fresh, &e))
		print_message("# %s\n", e.text);
	return own.dp && fresh ? 0 : -1;
}

int dataplane_teardown(void **state)
{
	struct error e;

	(void)state;
	datapath_close(own.dp);
	return datapath_remove(&own.inst, &e) || cgroup_remove(own.cgroup) ? -1 : 0;
}

int dataplane_map(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/map_%s", own.pins, name);
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	return fd;
}

struct datapath_backend dataplane_backend(uint32_t app, uint32_t weight)
{
	return (struct datapath_backend){
		.be = {.addr.b = {0xfd, [12] = (uint8_t)(app >> 8), (uint8_t)app}, .app = app},
		.weight = weight};
}

struct ax_service dataplane_service(const struct ax_endpoint *ep)
{
	autoclose int map = dataplane_map("services");
	struct ax_service s;

	assert_int_equal(bpf_map_lookup_elem(map, ep, &s), 0);
	return s;
}

size_t dataplane_count(const char *name, size_t key_size)
{
	autoclose int map = dataplane_map(name);
	char key[64];
	size_t n = 0;

	assert_true(key_size <= sizeof(key));
	for (int r = bpf_map_get_next_key(map, NULL, key); r == 0;
	     r = bpf_map_get_next_key(map, key, key))
		n++;
	return n;
}

size_t dataplane_count_chunks(void)
{
	return dataplane_count("backends", sizeof(struct ax_list_key)) +
	       dataplane_count("rings", sizeof(struct ax_list_key));
}

struct ax_backend dataplane_backend_at(const struct ax_service *s, uint32_t i)
{
	const struct ax_list_key key = {s->id, s->generation, i / AX_BACKENDS_CHUNK};
	autoclose int map = dataplane_map("backends");
	struct ax_backends c;

	assert_int_equal(bpf_map_lookup_elem(map, &key, &c), 0);
	return c.b[i % AX_BACKENDS_CHUNK];
}

uint32_t dataplane_app_at(const struct ax_service *s, uint32_t i)
{
	return dataplane_backend_at(s, i).app;
}

void dataplane_set_by(const struct ax_endpoint *ep, uint32_t strategy,
		      const struct datapath_backend *b, size_t n)
{
	const struct datapath_service s = {.strategy = strategy, .wait_ms = 1500};

	assert_int_equal(datapath_service_set(own.dp, ep, &s, b, n), 0);
}

void dataplane_set(const struct ax_endpoint *ep, const struct datapath_backend *b, size_t n)
{
	dataplane_set_by(ep, AX_STRATEGY_ROUND_ROBIN, b, n);
}
