// SPDX-License-Identifier: GPL-2.0-or-later
// flags: -Itests/net/src tests/net/src/netutil.c
// build: dynamic
/* Random bytes both ways, as the tests of splicing have them on this machine, too. With splice: on
 * a static program is refused. */
#include "../../net/src/talk.c"
