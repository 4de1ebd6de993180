/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An instance of a test's own, with the real dataplane, out of everybody's way. */
#ifndef AX_TESTS_INSTANCE_H
#define AX_TESTS_INSTANCE_H

#include "machine/instance.h"

#define BPFFS "/sys/fs/bpf"

/* A network namespace and a bpf filesystem that end with the process. */
int own_namespaces(void);

/* "t" and the process id, so that tests run side by side; tests/run looks for what is left of it.
 * The cgroup's path goes to `cgroup`. */
int own_instance(struct instance *inst, char cgroup[4096]);

#endif
