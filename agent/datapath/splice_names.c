/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What became of messages of spliced connections (include/splicing.h), in words. */
#include "datapath/splice.h"

static const struct {
	const char *name;
	const char *text;
} counters[] = {
	[AX_SPLICE_JOINED] = {"joined", "joined"},
	[AX_SPLICE_FULL] = {"full", "too many connections are spliced"},
	[AX_SPLICE_REDIRECTED] = {"redirected", "handed from socket to socket"},
	[AX_SPLICE_PASSED] = {"passed", "by TCP"},
	[AX_SPLICE_OFF] = {"off", "splicing is switched off"},
	[AX_SPLICE_STATE] = {"state", "one end is closing"},
	[AX_SPLICE_GONE] = {"gone", "the other end is not spliced"},
	[AX_SPLICE_UNREAD] = {"unread", "the other end had not read what came by TCP"},
	[AX_SPLICE_NO_ROOM] = {"no-room", "the other end's receive buffer was full"},
	[AX_SPLICE_MEMORY] =
		{"memory",
		 "TCP was short of memory on this machine, or the other end's control group was"},
	[AX_SPLICE_BLOCKING] = {"blocking", "the other end's socket is not O_NONBLOCK"},
	[AX_SPLICE_LOWAT] = {"lowat", "the other end has set SO_RCVLOWAT"},
	[AX_SPLICE_PEEK_OFF] = {"peek-off", "the other end has set SO_PEEK_OFF"},
	[AX_SPLICE_TIMESTAMP] = {"timestamp", "one end wants timestamps"},
	[AX_SPLICE_INQ] = {"inq", "the other end has set TCP_INQ"},
	[AX_SPLICE_OOBINLINE] = {"oobinline", "the other end has set SO_OOBINLINE"},
	[AX_SPLICE_IS_ULP] = {"ulp", "one end has kTLS or the like"},
	[AX_SPLICE_REPAIR] = {"repair", "one end is in TCP_REPAIR"},
	[AX_SPLICE_CORK] = {"cork", "the sender has set TCP_CORK"},
	[AX_SPLICE_PACED] = {"paced", "the sender has set SO_MAX_PACING_RATE"},
	[AX_SPLICE_SYSCALL] = {"syscall", "sent by sendfile(), splice(), io_uring or the like"},
	[AX_SPLICE_FLAGS] = {"flags", "sent with MSG_MORE, MSG_OOB, MSG_ZEROCOPY or the like"},
	[AX_SPLICE_UNKNOWN] = {"unknown", "this kernel's sockets cannot be read"},
	[AX_SPLICE_ALONE] = {"alone", "no agent runs, or it is stopped"},
};
_Static_assert(ARRAY_SIZE(counters) == AX_SPLICE_COUNTS, "every count has a name");

const char *datapath_splice_counter_name(unsigned counter)
{
	return counter < AX_SPLICE_COUNTS ? counters[counter].name : "?";
}

const char *datapath_splice_counter_text(unsigned counter)
{
	return counter < AX_SPLICE_COUNTS ? counters[counter].text : "?";
}
