/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading the programs of an interface: between the files of this room that do. */
#ifndef AX_DATAPATH_XDP_PRIV_H
#define AX_DATAPATH_XDP_PRIV_H

#include "datapath/xdp_datapath.h"

struct bpf_map_info;
struct bpf_object;
struct filter;

/* All of its programs as the root is: a program array takes no others (since Linux 5.18, and for
 * the attach type since 6.18, 6.12.54, 6.1.157). */
void load_like_root(struct bpf_object *obj, bool has_frags);
/* The filter over the maps of d, open and not loaded yet. */
int datapath_xdp_filter(const struct datapath_xdp *d, const struct ax_layout *layout,
			struct filter **ret);
/* The descriptor of a program's map of that name, or a negative errno. */
int map_of_program(int prog, const char *name, struct bpf_map_info *mi);

#endif
