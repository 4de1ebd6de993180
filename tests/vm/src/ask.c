// SPDX-License-Identifier: GPL-2.0-or-later
// flags: -Itests/net/src tests/net/src/netutil.c
/* Requests and answers, as the tests of splicing have them on this machine, too. */
#include "../../net/src/ask.c"
