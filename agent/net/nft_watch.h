/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of nf_tables that somebody else takes away: `nft flush ruleset` takes all, and so does
 * starting Debian's nftables.service. (A table of which a socket is the owner would be left alone,
 * since Linux 5.12; it goes with the agent's socket before 6.9, and it cannot be several agents'.)
 */
#ifndef AX_NET_NFT_WATCH_H
#define AX_NET_NFT_WATCH_H

#include "base/util.h"

/* A socket that is readable when anything of nf_tables changes, which does not block; or a negative
 * errno. The caller's. */
int nft_watch_open(void);

/* Takes what it has to say. Sets went[i] if tables[i], of family inet, went, or may have, since
 * changes were lost; it may have come back since. */
void nft_watch_read(int fd, const char *const *tables, bool *went, size_t n);

#endif
