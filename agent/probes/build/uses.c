// SPDX-License-Identifier: GPL-2.0-or-later
/* Of each file, what was done with it. */
#include <fcntl.h>
#include <sys/stat.h>

#include "probes/build/priv.h"

static uint32_t open_access(const struct build_event *ev)
{
	uint32_t access = 0;

	if (S_ISDIR(ev->file_mode) || ev->flags & O_PATH)
		return 0;
	switch (ev->flags & O_ACCMODE) {
	case O_RDONLY:
		access = BUILD_READ;
		break;
	case O_WRONLY:
		access = BUILD_WRITE;
		break;
	default:
		access = BUILD_READ | BUILD_WRITE;
	}
	if (ev->flags & O_TRUNC || (ev->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return BUILD_WRITE; /* there is nothing yet that could be read */
	return ev->flags & O_CREAT ? access | BUILD_WRITE : access;
}

uint32_t build_event_access(const struct build_event *ev, bool second)
{
	switch (ev->type) {
	case AX_BUILD_OPEN:
		return second ? 0 : open_access(ev);
	case AX_BUILD_EXEC:
		return second ? BUILD_RUN | BUILD_READ : BUILD_RUN;
	case AX_BUILD_RENAME:
		return second && !(ev->flags & BUILD_RENAME_EXCHANGE) ? BUILD_REMOVE : BUILD_MOVE;
	case AX_BUILD_LINK:
	case AX_BUILD_SYMLINK:
	case AX_BUILD_MKDIR:
	case AX_BUILD_MKNOD:
	case AX_BUILD_TRUNCATE:
		return second ? 0 : BUILD_WRITE;
	case AX_BUILD_UNLINK:
	case AX_BUILD_RMDIR:
		return second ? 0 : BUILD_REMOVE;
	case AX_BUILD_CHMOD:
		return second ? 0 : BUILD_CHANGE;
	default:
		return 0;
	}
}

static void count(struct build *b, uint32_t file, uint32_t access)
{
	if (file == BUILD_NONE || !access)
		return;
	b->nodes[file].n++;
	b->n_uses++;
}

static void put(struct build *b, size_t event, uint32_t file, uint32_t access)
{
	struct build_node *n;

	if (file == BUILD_NONE || !access)
		return;
	n = &b->nodes[file];
	b->uses[n->first + n->n++] =
		(struct build_use){.event = (uint32_t)event,
				   .access = access,
				   .cmd = build_actor(b, b->events[event].cmd)};
}

int build_uses_make(struct build *b)
{
	size_t first = 0;

	for (size_t i = 0; i < b->n_events; i++) {
		const struct build_event *ev = &b->events[i];

		count(b, ev->file, build_event_access(ev, false));
		count(b, ev->file2, build_event_access(ev, true));
	}
	b->uses = calloc(b->n_uses ? b->n_uses : 1, sizeof(*b->uses));
	if (!b->uses)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_nodes; i++) {
		b->nodes[i].first = first;
		first += b->nodes[i].n;
		b->nodes[i].n = 0;
	}
	for (size_t i = 0; i < b->n_events; i++) {
		const struct build_event *ev = &b->events[i];

		put(b, i, ev->file, build_event_access(ev, false));
		put(b, i, ev->file2, build_event_access(ev, true));
	}
	return 0;
}
