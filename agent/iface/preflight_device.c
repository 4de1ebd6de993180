/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices as the preflight check sees them, and the other ends of veth pairs, wherever they are. */
#include "iface/preflight_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <sys/stat.h>

#include "net/netlink_request.h"

#define NAMED_NAMESPACES "/run/netns"

static int open_sockets(void *arg)
{
	struct place *p = arg;
	int r = nl_open(&p->nl);

	return r ? r : ethtool_open(&p->et);
}

int place_open(int netns_fd, struct place *ret)
{
	int r;

	*ret = (struct place){.fd = netns_fd};
	r = netns_fd < 0 ? open_sockets(ret) : netns_call(netns_fd, open_sockets, ret);
	if (r)
		place_close(ret);
	return r;
}

void place_close(struct place *p)
{
	nl_closep(&p->nl);
	ethtool_closep(&p->et);
	close_fd(&p->fd);
	p->nl = NULL;
	p->et = NULL;
}

/* --- devices --- */

/* For a shell: names of interfaces and namespaces may hold anything but blanks and slashes. */
static void quote(const char *s, char *ret, size_t size)
{
	size_t plain = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "_-.:@+,");
	autofile FILE *f = fmemopen(ret, size - 1, "w");

	memset(ret, 0, size);
	if (!f)
		return;
	if (!s[plain]) {
		fputs(s, f);
		return;
	}
	putc('\'', f);
	for (; *s; s++)
		if (*s == '\'')
			fputs("'\\''", f);
		else
			putc(*s, f);
	putc('\'', f);
}

static void parse_linkinfo(const struct nlattr *info, struct device *d)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested (a, info)
		if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
			snprintf(d->kind, sizeof(d->kind), "%s", mnl_attr_get_str(a));
}

static void parse_xdp(const struct nlattr *xdp, struct device *d)
{
	const struct nlattr *a;
	uint32_t id = 0;
	uint8_t attached = XDP_ATTACHED_NONE;

	mnl_attr_for_each_nested (a, xdp) {
		switch (mnl_attr_get_type(a)) {
		case IFLA_XDP_ATTACHED:
			attached = mnl_attr_get_u8(a);
			break;
		case IFLA_XDP_PROG_ID:
			id = mnl_attr_get_u32(a);
			break;
		case IFLA_XDP_DRV_PROG_ID:
			d->native = mnl_attr_get_u32(a);
			break;
		case IFLA_XDP_SKB_PROG_ID:
			d->generic = mnl_attr_get_u32(a);
			break;
		case IFLA_XDP_HW_PROG_ID:
			d->offloaded = mnl_attr_get_u32(a);
			break;
		}
	}
	if (attached == XDP_ATTACHED_DRV)
		d->native = id;
	else if (attached == XDP_ATTACHED_SKB)
		d->generic = id;
	else if (attached == XDP_ATTACHED_HW)
		d->offloaded = id;
}

static void on_link(void *arg, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct device *d = arg;
	const struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return;
	d->ifindex = (unsigned)ifi->ifi_index;
	d->up = ifi->ifi_flags & IFF_UP;
	mnl_attr_for_each (a, nlh, sizeof(*ifi)) {
		switch (mnl_attr_get_type(a)) {
		case IFLA_IFNAME:
			snprintf(d->name, sizeof(d->name), "%s", mnl_attr_get_str(a));
			break;
		case IFLA_MTU:
			d->mtu = mnl_attr_get_u32(a);
			break;
		case IFLA_LINK:
			d->link = mnl_attr_get_u32(a);
			break;
		case IFLA_LINK_NETNSID:
			d->link_nsid = (int)mnl_attr_get_u32(a);
			break;
		case IFLA_LINKINFO:
			parse_linkinfo(a, d);
			break;
		case IFLA_XDP:
			parse_xdp(a, d);
			break;
		}
	}
}

int device_load(const struct place *p, const char *name, unsigned ifindex, struct device *ret)
{
	struct device d = {.link_nsid = -1};
	char driver[sizeof(d.kind)];
	struct nl_request rq;
	int r;

	if (name && (!*name || strlen(name) >= IFNAMSIZ))
		return -ENODEV;
	nl_request_init(&rq, p->nl);
	nl_put_getlink(&rq, name, ifindex);
	r = nl_request_send(&rq, NULL, on_link, &d);
	if (!r && !d.ifindex)
		r = -ENODEV;
	if (r)
		return r;
	d.veth = streq(d.kind, "veth");
	if (!ethtool_driver(p->et, d.name, driver, sizeof(driver)))
		snprintf(d.kind, sizeof(d.kind), "%s", driver);
	quote(d.name, d.quoted, sizeof(d.quoted));
	/* A driver that has no answer to one of these has nothing that could be set there. */
	if (ethtool_features(p->et, d.ifindex, &d.features))
		d.features = 0;
	if (ethtool_queues(p->et, d.ifindex, &d.queues))
		d.queues = (struct ethtool_queues){0};
	d.knows_xdp = ethtool_xdp_features(p->et, d.ifindex, &d.xdp) == 0;
	d.place = p;
	*ret = d;
	return 0;
}

/* --- the namespace of a peer --- */

static void on_nsid(void *arg, const struct nlmsghdr *nlh)
{
	const struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWNSID)
		return;
	mnl_attr_for_each (a, nlh, sizeof(struct rtgenmsg))
		if (mnl_attr_get_type(a) == NETNSA_NSID)
			*(int *)arg = (int)mnl_attr_get_u32(a);
}

/* The number that the namespace of `nl` has for another one, negative when it has none. */
static int nsid_of(struct nl *nl, int netns_fd)
{
	struct rtgenmsg *gen;
	struct nl_request rq;
	int id = -1, r;

	nl_request_init(&rq, nl);
	gen = mnl_nlmsg_put_extra_header(nl_request_add(&rq, RTM_GETNSID, 0), sizeof(*gen));
	gen->rtgen_family = AF_UNSPEC;
	mnl_attr_put_u32(rq.last, NETNSA_FD, (uint32_t)netns_fd);
	r = nl_request_send(&rq, NULL, on_nsid, &id);
	return r ? r : id;
}

struct search {
	struct nl *nl;
	int nsid;
	ino_t *seen; /* there are far fewer namespaces than processes */
	size_t n, size;
};

static bool seen_before(struct search *s, ino_t ino)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->seen[i] == ino)
			return true;
	if (s->n == s->size) {
		size_t size = s->size ? 2 * s->size : 64;
		ino_t *seen = reallocarray(s->seen, size, sizeof(*seen));

		if (!seen)
			return false;
		s->seen = seen;
		s->size = size;
	}
	s->seen[s->n++] = ino;
	return false;
}

/* A descriptor of the namespace if it is the wanted one, else -1. */
static int try_path(struct search *s, int dir, const char *path)
{
	autoclose int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || seen_before(s, st.st_ino) ||
	    nsid_of(s->nl, fd) != s->nsid)
		return -1;
	return take_fd(&fd);
}

static int search_named(struct search *s, char *prefix, size_t size)
{
	DIR *d = opendir(NAMED_NAMESPACES);
	struct dirent *de;
	char quoted[140];
	int fd = -1;

	while (d && fd < 0 && (de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		fd = try_path(s, dirfd(d), de->d_name);
		quote(de->d_name, quoted, sizeof(quoted));
		snprintf(prefix, size, "ip netns exec %s ", quoted);
	}
	if (d)
		closedir(d);
	return fd;
}

static int search_processes(struct search *s, char *prefix, size_t size)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	char path[32];
	int fd = -1;

	while (d && fd < 0 && (de = readdir(d))) {
		unsigned long pid = strtoul(de->d_name, NULL, 10);

		if (!pid)
			continue;
		snprintf(path, sizeof(path), "%lu/ns/net", pid);
		fd = try_path(s, dirfd(d), path);
		snprintf(prefix, size, "nsenter -t %lu -n ", pid);
	}
	if (d)
		closedir(d);
	return fd;
}

/* The peer's namespace, from the descriptors that this machine has for namespaces: the kernel gives
 * away a number only. */
static int find_place(const struct place *from, int nsid, struct place *ret)
{
	struct search s = {.nl = from->nl, .nsid = nsid};
	char prefix[sizeof(ret->prefix)] = "";
	int fd = search_named(&s, prefix, sizeof(prefix));
	int r;

	if (fd < 0)
		fd = search_processes(&s, prefix, sizeof(prefix));
	free(s.seen);
	if (fd < 0)
		return -ENOENT;
	r = place_open(fd, ret); /* which closes fd if it fails */
	if (!r)
		memcpy(ret->prefix, prefix, sizeof(prefix));
	return r;
}

int device_peer(const struct device *d, struct place *p, struct device *ret)
{
	int r;

	*p = (struct place){.fd = -1};
	if (!d->link)
		return -ENODEV;
	if (d->link_nsid >= 0)
		r = find_place(d->place, d->link_nsid, p);
	else
		/* A second pair of sockets, so that whoever has the peer closes its place. */
		r = place_open(d->place->fd < 0 ? -1 : fcntl(d->place->fd, F_DUPFD_CLOEXEC, 0), p);
	return r ? r : device_load(p, NULL, d->link, ret);
}

static int attach_there(void *arg)
{
	const struct device *d = arg;

	return kernel_attach_pass(d->ifindex);
}

int device_attach_pass(const struct device *d)
{
	void *arg = (void *)d; /* which netns_call() only passes on */

	return d->place->fd < 0 ? attach_there(arg) : netns_call(d->place->fd, attach_there, arg);
}
