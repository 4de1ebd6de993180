// SPDX-License-Identifier: GPL-2.0-or-later
// flags: -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread
/* What the ready commands count, as the tests of ax trace malloc and others have it, too. */
#include "../../net/src/tallied.c"
