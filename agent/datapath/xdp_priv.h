/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading the programs of an interface: between the files of this room that do. */
#ifndef AX_DATAPATH_XDP_PRIV_H
#define AX_DATAPATH_XDP_PRIV_H

#include "datapath/xdp_datapath.h"

struct bpf_map;
struct bpf_map_info;
struct bpf_object;
struct filter;

/* All of its programs as the root is: a program array takes no others (since Linux 5.18, and for
 * the attach type since 6.18, 6.12.54, 6.1.157). */
void load_like_root(struct bpf_object *obj, bool has_frags);
#define PIN_NAME_MAX 64
/* The name of the directory of a place's pins. */
void datapath_xdp_pin_name(const char *place, char ret[PIN_NAME_MAX]);
const char *datapath_xdp_map_name(enum xdp_map m);
/* A list that needs so many entries of it takes the instance's own map of this kind. */
bool datapath_xdp_needs_shared(enum xdp_map m, uint32_t entries);
/* Fills a generation's arena, and takes descriptors of both into g. */
int generation_take(struct generation *g, int prog, int arena, const void *data, size_t size,
		    const struct ax_layout *layout);
/* The sum of a map of counts per CPU. */
int tap_count(int map, size_t cpus, struct ax_tap_count *ret);

/* --- lists for what leaves (xdp_egress.c): what their counterparts without `egress` do --- */
int datapath_egress_load(const struct datapath_xdp *d, const void *arena, size_t size,
			 const struct ax_layout *layout, struct generation *g);
/* The program that explains, of a generation that was found. */
int datapath_egress_find_tell(const struct datapath_xdp *d, struct generation *g);
int datapath_egress_explain(const struct generation *g, const void *frame, size_t len,
			    struct ax_explain *x, uint32_t *action, uint8_t **out, size_t *out_len);
int datapath_egress_programs(unsigned ifindex, uint32_t ours, struct datapath_xdp_programs *p);
bool datapath_egress_is_on(unsigned ifindex, uint32_t id);
int datapath_egress_attach(struct datapath_xdp *d, const char *dir, unsigned ifindex,
			   struct error *e);
int datapath_egress_detach(const char *dir, unsigned ifindex, struct error *e);
/* Agents' programs bring packets to an app past its device's egress, unless they are told that a
 * list is there. (xdp_apps.c) */
int datapath_egress_listed(const char *dir, uint32_t ifindex, bool on);

/* The filter over the maps of d, open and not loaded yet. */
int datapath_xdp_filter(const struct datapath_xdp *d, const struct ax_layout *layout,
			struct filter **ret);
/* xdp_fast.c: for a list with balancers. */
void datapath_xdp_fast_room(struct filter *skel);
/* The same: for a list of many rules in bit vectors. */
void datapath_xdp_found_room(const struct ax_layout *l, const volatile uint32_t *places,
			     struct bpf_map *founds);
/* The descriptor of a program's map of that name, or a negative errno. */
int map_of_program(int prog, const char *name, struct bpf_map_info *mi);

#endif
