// SPDX-License-Identifier: GPL-2.0-or-later
/* libipt. Debian has no archive of it that could be linked: it is opened by who needs it. A static
 * ax has it inside if an archive was there when it was built. */
#include "base/library.h"
#include "probes/pt/priv.h"

#ifdef AX_LIBIPT_LINKED
const struct pt_library *pt_library(struct error *e)
{
	static const struct pt_library linked = {
		.errstr = pt_errstr,
		.pkt_alloc_decoder = pt_pkt_alloc_decoder,
		.pkt_free_decoder = pt_pkt_free_decoder,
		.pkt_sync_set = pt_pkt_sync_set,
		.pkt_next = pt_pkt_next,
		.image_alloc = pt_image_alloc,
		.image_free = pt_image_free,
		.image_set_callback = pt_image_set_callback,
		.insn_alloc_decoder = pt_insn_alloc_decoder,
		.insn_free_decoder = pt_insn_free_decoder,
		.insn_set_image = pt_insn_set_image,
		.insn_sync_forward = pt_insn_sync_forward,
		.insn_get_offset = pt_insn_get_offset,
		.insn_time = pt_insn_time,
		.insn_next = pt_insn_next,
		.insn_event = pt_insn_event,
	};

	(void)e;
	return &linked;
}
#else
static const struct library_function functions[] = {
	{"pt_errstr", offsetof(struct pt_library, errstr)},
	{"pt_pkt_alloc_decoder", offsetof(struct pt_library, pkt_alloc_decoder)},
	{"pt_pkt_free_decoder", offsetof(struct pt_library, pkt_free_decoder)},
	{"pt_pkt_sync_set", offsetof(struct pt_library, pkt_sync_set)},
	{"pt_pkt_next", offsetof(struct pt_library, pkt_next)},
	{"pt_image_alloc", offsetof(struct pt_library, image_alloc)},
	{"pt_image_free", offsetof(struct pt_library, image_free)},
	{"pt_image_set_callback", offsetof(struct pt_library, image_set_callback)},
	{"pt_insn_alloc_decoder", offsetof(struct pt_library, insn_alloc_decoder)},
	{"pt_insn_free_decoder", offsetof(struct pt_library, insn_free_decoder)},
	{"pt_insn_set_image", offsetof(struct pt_library, insn_set_image)},
	{"pt_insn_sync_forward", offsetof(struct pt_library, insn_sync_forward)},
	{"pt_insn_get_offset", offsetof(struct pt_library, insn_get_offset)},
	{"pt_insn_time", offsetof(struct pt_library, insn_time)},
	{"pt_insn_next", offsetof(struct pt_library, insn_next)},
	{"pt_insn_event", offsetof(struct pt_library, insn_event)},
};

const struct pt_library *pt_library(struct error *e)
{
	static const struct library libipt = {
		.file = "libipt.so.2",
		.name = "libipt",
		.package = "libipt2",
		.does = "Intel PT is decoded",
	};
	static struct pt_library opened;
	static bool done;

	if (!done && library_open(&libipt, functions, ARRAY_SIZE(functions), &opened, e))
		return NULL;
	done = true;
	return &opened;
}
#endif
