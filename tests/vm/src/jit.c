// SPDX-License-Identifier: GPL-2.0-or-later
// flags: -pthread
/* A small just-in-time compiler, as the tests of this kernel have it. */
#include "../../net/src/jit.c"
