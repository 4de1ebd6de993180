// SPDX-License-Identifier: GPL-2.0-or-later
// flags: -Itests/net/src tests/net/src/netutil.c
/* Datagrams with a source of our choice, as the tests on this machine have them. */
#include "../../net/src/spoof.c"
