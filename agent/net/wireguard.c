/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/wireguard.h"

#include <linux/genetlink.h>
#include <linux/wireguard.h>
#include <sys/random.h>

#include "net/netlink_request.h"
#include "net/wireguard_message.h"

struct wg {
	struct nl *nl;
	uint16_t family; /* its number, which the kernel gives out */
};

/* --- the socket --- */

static void on_family(void *arg, const struct nlmsghdr *nlh)
{
	const struct nlattr *a;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct genlmsghdr))
		return;
	mnl_attr_for_each (a, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID &&
		    mnl_attr_get_payload_len(a) == sizeof(uint16_t))
			*(uint16_t *)arg = mnl_attr_get_u16(a);
}

static int find_family(struct nl *nl, uint16_t *ret)
{
	struct nl_request rq;
	struct genlmsghdr *g;
	int r;

	nl_request_init(&rq, nl);
	g = mnl_nlmsg_put_extra_header(nl_request_add(&rq, GENL_ID_CTRL, 0), sizeof(*g));
	g->cmd = CTRL_CMD_GETFAMILY;
	g->version = 1;
	mnl_attr_put_strz(rq.last, CTRL_ATTR_FAMILY_NAME, WG_GENL_NAME);
	r = nl_request_send(&rq, NULL, on_family, ret);
	return r == -ENOENT || (!r && !*ret) ? -EOPNOTSUPP : r;
}

int wg_open(struct wg **ret)
{
	struct wg *wg = calloc(1, sizeof(*wg));
	int r = wg ? nl_open_generic(&wg->nl) : -ENOMEM;

	r = r ? r : find_family(wg->nl, &wg->family);
	if (r)
		wg_close(wg);
	else
		*ret = wg;
	return r;
}

void wg_close(struct wg *wg)
{
	if (!wg)
		return;
	if (wg->nl)
		nl_close(wg->nl);
	free(wg);
}

/* --- reading --- */

struct reading {
	unsigned ifindex;
	struct wg_device *d;
};

static void put_dump(struct nlmsghdr *nlh, void *arg)
{
	wg_put_get(nlh, ((const struct reading *)arg)->ifindex);
}

static int on_device(void *arg, const struct nlmsghdr *nlh)
{
	return wg_parse(nlh, ((struct reading *)arg)->d);
}

static void forget_device(void *arg)
{
	wg_device_free(((struct reading *)arg)->d);
}

int wg_read(struct wg *wg, unsigned ifindex, struct wg_device *ret)
{
	struct reading reading = {.ifindex = ifindex, .d = ret};
	const struct nl_dump d = {.type = wg->family,
				  .put = put_dump,
				  .on_entry = on_device,
				  .restart = forget_device,
				  .arg = &reading};

	*ret = (struct wg_device){0};
	return nl_dump_run(wg->nl, &d);
}

/* --- changing --- */

int wg_set(struct wg *wg, unsigned ifindex, const uint8_t private_key[WG_KEY_SIZE], uint16_t port)
{
	struct nl_request rq;
	int r;

	nl_request_init(&rq, wg->nl);
	wg_put_key(nl_request_add(&rq, wg->family, 0), ifindex, private_key, port);
	r = nl_request_send(&rq, NULL, NULL, NULL);
	explicit_bzero(rq.buf, sizeof(rq.buf));
	return r;
}

int wg_peer_put(struct wg *wg, unsigned ifindex, const struct wg_peer *p)
{
	size_t at = 0;
	int r;

	do {
		struct nl_request rq;

		nl_request_init(&rq, wg->nl);
		at = wg_put_peer(nl_request_add(&rq, wg->family, 0), ifindex, p, at);
		r = nl_request_send(&rq, NULL, NULL, NULL);
	} while (!r && at < p->n_allowed);
	return r;
}

int wg_peer_move(struct wg *wg, unsigned ifindex, const struct wg_peer *p)
{
	struct nl_request rq;

	nl_request_init(&rq, wg->nl);
	wg_put_move(nl_request_add(&rq, wg->family, 0), ifindex, p);
	return nl_request_send(&rq, NULL, NULL, NULL);
}

int wg_peer_remove(struct wg *wg, unsigned ifindex, const uint8_t key[WG_KEY_SIZE])
{
	struct nl_request rq;

	nl_request_init(&rq, wg->nl);
	wg_put_remove(nl_request_add(&rq, wg->family, 0), ifindex, key);
	return nl_request_send(&rq, NULL, NULL, NULL);
}

int wg_make_key(uint8_t ret[WG_KEY_SIZE])
{
	ssize_t n = getrandom(ret, WG_KEY_SIZE, 0);

	if (n != WG_KEY_SIZE)
		return n < 0 ? -errno : -EIO;
	ret[0] &= 248;
	ret[31] = (ret[31] & 127) | 64;
	return 0;
}
