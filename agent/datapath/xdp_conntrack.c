// SPDX-License-Identifier: GPL-2.0-or-later
/* Whether lists can ask the kernel's connection tracking for states. */
#include <fcntl.h>
#include <sys/stat.h>

#include "datapath/xdp_datapath.h"

#define TYPES	 "/sys/kernel/btf/"
#define FUNCTION "bpf_xdp_ct_lookup" /* who has this one has that of tc, too (Linux 5.18) */

/* Whether the kernel's connection tracking may be there. Whether programs can ask it (Linux 5.18,
 * and the module's types), loading one says. */
bool datapath_xdp_has_conntrack(void)
{
	return access("/sys/module/nf_conntrack", F_OK) == 0;
}

/* Whether types of the kernel's name the function. */
static bool types_have(const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	autofree char *types = NULL;
	struct stat st;
	ssize_t n = 0;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return false;
	types = malloc((size_t)st.st_size);
	while (types && len < (size_t)st.st_size &&
	       (n = read(fd, types + len, (size_t)st.st_size - len)) > 0)
		len += (size_t)n;
	return types && memmem(types, len, FUNCTION, sizeof(FUNCTION));
}

bool datapath_xdp_can_ask_conntrack(void)
{
	const char *module = TYPES "nf_conntrack";

	if (!datapath_xdp_has_conntrack())
		return false;
	return types_have(access(module, F_OK) == 0 ? module : TYPES "vmlinux");
}
