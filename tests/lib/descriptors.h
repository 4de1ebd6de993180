/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_TESTS_DESCRIPTORS_H
#define AX_TESTS_DESCRIPTORS_H

/* How many this process has open; only differences mean something. */
unsigned count_descriptors(void);

#endif
