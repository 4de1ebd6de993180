/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <glob.h>
#include <linux/if_link.h>

#include "net/link_groups.h"
#include "net/netlink_request.h"

/* --- of an interface --- */

static void on_link(void *arg, const struct nlmsghdr *nlh)
{
	const struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return;
	mnl_attr_for_each (a, nlh, sizeof(struct ifinfomsg))
		if (mnl_attr_get_type(a) == IFLA_GROUP &&
		    mnl_attr_get_payload_len(a) >= sizeof(uint32_t))
			*(uint32_t *)arg = mnl_attr_get_u32(a);
}

int nl_link_group(struct nl *nl, unsigned ifindex, uint32_t *group)
{
	struct nl_request rq;

	*group = 0;
	if (!ifindex)
		return -ENODEV;
	nl_request_init(&rq, nl);
	nl_put_getlink(&rq, NULL, ifindex);
	return nl_request_send(&rq, NULL, on_link, group);
}

/* --- names --- */

#define FILE_MAX (1u << 20)

/* 1: there was one. */
static int add_file(const char *path, FILE *to)
{
	autofree char *text = NULL;
	int r = file_read(path, FILE_MAX, &text);

	if (r)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	fprintf(to, "%s\n", text);
	return 1;
}

/* Those of group.d, in the order of their names. */
static int add_files(const char *dir, FILE *to)
{
	char pattern[64];
	glob_t found;
	int r = 0;

	snprintf(pattern, sizeof(pattern), "%s/group.d/*.conf", dir);
	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && r >= 0; i++)
		r = add_file(found.gl_pathv[i], to);
	globfree(&found);
	return r < 0 ? r : 0;
}

static int add_all(FILE *to)
{
	int r = add_file("/etc/iproute2/group", to);

	if (r == 0)
		r = add_file("/usr/share/iproute2/group", to);
	if (r >= 0)
		r = add_files("/etc/iproute2", to);
	if (r >= 0)
		r = add_files("/usr/share/iproute2", to);
	return r;
}

int link_groups_read(struct link_groups *g)
{
	size_t size;
	FILE *to;
	int r;

	g->text = NULL;
	to = open_memstream(&g->text, &size);
	if (!to)
		return -ENOMEM;
	r = add_all(to);
	if (fclose(to) && !r)
		r = -ENOMEM;
	return r < 0 ? r : 0;
}

void link_groups_free(struct link_groups *g)
{
	free(g->text);
	g->text = NULL;
}

/* "5 lan" or "0x5 lan", with a comment behind # if wanted. */
static bool is_line_of(const char *line, size_t len, const char *name, uint32_t *ret)
{
	char copy[160], *end, *word, *rest;
	unsigned long n;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, line, len);
	copy[len] = '\0';
	copy[strcspn(copy, "#")] = '\0';
	word = strtok_r(copy, " \t\r", &rest);
	if (!word || word[0] < '0' || word[0] > '9')
		return false;
	n = strtoul(word, &end, word[1] == 'x' ? 16 : 10);
	word = strtok_r(NULL, " \t\r", &rest);
	if (*end || n > UINT32_MAX || !word || !streq(word, name))
		return false;
	*ret = (uint32_t)n;
	return true;
}

int link_groups_find(const struct link_groups *g, const char *name, uint32_t *ret)
{
	for (const char *line = g->text; line && *line;) {
		size_t len = strcspn(line, "\n");

		if (is_line_of(line, len, name, ret))
			return 0;
		line += len + (line[len] == '\n');
	}
	*ret = 0;
	return streq(name, "default") ? 0 : -ENOENT;
}
