/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The preflight check of an interface itself; preflight_rules.c has what rules do there. */
#include "iface/preflight.h"

#include <stdarg.h>
#include <sys/sysinfo.h>

#include "machine/mounts.h"
#include "iface/preflight_priv.h"

/*
 * What a page holds beside a frame's data in a buffer for XDP: headroom (256), the Ethernet header
 * and struct skb_shared_info (320 on 64 bit). veth counts so; other drivers may need more.
 */
#define PAGE_OVERHEAD (256 + 14 + 320)

static void report_v(struct check *c, enum finding_state state, const char *what, const char *fix,
		     const char *more, const char *fmt, va_list ap)
{
	struct finding f = {.state = state, .what = what, .others = c->others};
	int n;

	vsnprintf(f.why, sizeof(f.why), fmt, ap);
	n = (int)strlen(f.why);
	snprintf(f.why + n, sizeof(f.why) - (size_t)n, "%s", more);
	snprintf(f.fix, sizeof(f.fix), "%s", fix ? fix : "");
	c->bad += state == FINDING_BAD;
	c->report(c->arg, &f);
}

void found(struct check *c, enum finding_state state, const char *what, const char *fix,
	   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_v(c, state, what, fix, "", fmt, ap);
	va_end(ap);
}

void found_repair(struct check *c, int r, enum finding_state bad, const char *what, const char *fix,
		  const char *fmt, ...)
{
	char more[96] = "";
	va_list ap;

	if (r < 0)
		snprintf(more, sizeof(more), "; repairing it failed: %s", strerror(-r));
	va_start(ap, fmt);
	report_v(c, r == 0 ? FINDING_FIXED : bad, what, fix, more, fmt, ap);
	va_end(ap);
}

/* --- the interface --- */

/* Drivers that had native XDP before kernels could say so (6.3). */
static bool driver_known(const char *driver)
{
	static const char *const drivers[] = {
		"veth",	 "virtio_net",	  "tun",	   "i40e",	"ice",	   "igb",     "igc",
		"ixgbe", "ixgbevf",	  "mlx4_en",	   "mlx5_core", "bnxt_en", "nfp",     "ena",
		"gve",	 "hv_netvsc",	  "mvneta",	   "mvpp2",	"cpsw",	   "ti_cpsw", "sfc",
		"qede",	 "thunder-nicvf", "fsl_dpaa2_eth", "stmmac",	"vmxnet3", "bonding",
	};

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
		if (streq(driver, drivers[i]))
			return true;
	return false;
}

static bool queues_fit(const struct device *d, const struct device *peer)
{
	return !d->veth || !peer->place || d->queues.rx >= peer->queues.tx;
}

static void check_driver(struct check *c)
{
	const struct device *d = &c->dev;
	const char *kind = d->kind[0] ? d->kind : "unknown";
	enum finding_state bad = c->mode == ATTACH_NATIVE ? FINDING_BAD : FINDING_NOTE;

	if (!d->up)
		found(c, FINDING_NOTE, "link", "", "%s is down: nothing arrives there", d->name);
	c->generic = c->mode == ATTACH_GENERIC || (c->mode == ATTACH_AUTO && d->generic);
	if (c->mode == ATTACH_GENERIC)
		found(c, FINDING_NOTE, "driver", "",
		      "driver %s; generic mode was asked for: it works on any interface, about 4 "
		      "times slower than native XDP",
		      kind);
	else if (d->knows_xdp ? d->xdp & ETHTOOL_XDP_BASIC : driver_known(d->kind))
		found(c, FINDING_OK, "driver", "", "driver %s has native XDP", kind);
	else if (!d->knows_xdp)
		found(c, FINDING_NOTE, "driver", "",
		      "driver %s: only loading a program tells whether it has native XDP", kind);
	else if (!d->veth || queues_fit(d, &c->peer))
		found(c, bad, "driver", "", "driver %s has no native XDP now: %s", kind,
		      c->mode == ATTACH_NATIVE ? "a program is refused in native mode"
					       : "programs run in generic mode, about 4 times "
						 "slower");
	if (c->mode == ATTACH_AUTO && d->knows_xdp && !(d->xdp & ETHTOOL_XDP_BASIC))
		c->generic = true;
}

static void check_mtu(struct check *c)
{
	unsigned limit = (unsigned)getpagesize() - PAGE_OVERHEAD;
	const struct device *d = &c->dev;
	char fix[FIX_SIZE];

	if (c->generic)
		return;
	if (d->veth && c->peer.place && c->peer.mtu > limit)
		found(c, FINDING_NOTE, "mtu", "",
		      "frames from %s (MTU %u) come in several buffers: ax's programs take them, "
		      "others that do not are refused beside them",
		      c->peer.name, c->peer.mtu);
	else if (!d->veth && d->knows_xdp && !(d->xdp & ETHTOOL_XDP_FRAGS) && d->mtu > limit) {
		snprintf(fix, sizeof(fix), "ip link set dev %s mtu %u", d->quoted, limit);
		found(c, c->mode == ATTACH_NATIVE ? FINDING_BAD : FINDING_NOTE, "mtu", fix,
		      "MTU %u does not fit into one buffer, and driver %s takes no frames of "
		      "several: native mode is refused",
		      d->mtu, d->kind);
	} else
		found(c, FINDING_OK, "mtu", "", "MTU %u", d->mtu);
}

static void check_queues(struct check *c)
{
	const struct device *d = &c->dev, *peer = &c->peer;
	unsigned cpus = (unsigned)get_nprocs();
	char fix[FIX_SIZE];

	if (c->mode == ATTACH_GENERIC || !d->queues.rx)
		return;
	if (!queues_fit(d, peer)) {
		if (d->queues.rx_max >= peer->queues.tx)
			snprintf(fix, sizeof(fix), "ethtool -L %s rx %u", d->quoted,
				 peer->queues.tx);
		else
			snprintf(fix, sizeof(fix), "%sethtool -L %s tx %u", peer->place->prefix,
				 peer->quoted, d->queues.rx);
		found(c, c->mode == ATTACH_NATIVE ? FINDING_BAD : FINDING_NOTE, "queues", fix,
		      "%u rx queues are fewer than the %u tx queues of its peer %s: native mode is "
		      "refused%s",
		      d->queues.rx, peer->queues.tx, peer->name,
		      c->mode == ATTACH_AUTO ? ", generic mode is about 4 times slower" : "");
	} else if (streq(d->kind, "virtio_net") && d->queues.tx_max < d->queues.rx + cpus)
		found(c, FINDING_NOTE, "queues", "",
		      "%u queues at most do not give each of %u CPUs one of its own for sending "
		      "from XDP: they share them under a lock",
		      d->queues.tx_max, cpus);
	else
		found(c, FINDING_OK, "queues", "", "%u rx, %u tx", d->queues.rx, d->queues.tx);
}

static bool is_ours(const char *name)
{
	return starts_with(name, "ax_");
}

static void check_program(struct check *c, uint32_t id, const char *mode)
{
	char name[32];

	if (!id)
		return;
	kernel_program_name(id, name);
	if (is_ours(name))
		found(c, FINDING_OK, "program", "", "ax's program %s (id %u) is there in %s mode",
		      name, id, mode);
	else if (streq(name, "xdp_dispatcher"))
		found(c, FINDING_NOTE, "program", "",
		      "libxdp's dispatcher (id %u) is there in %s mode, with programs of others",
		      id, mode);
	else
		found(c, FINDING_NOTE, "program", "",
		      "another's program %s (id %u) is there in %s mode: ax does not take its "
		      "place unless told so",
		      name, id, mode);
}

static void check_programs(struct check *c)
{
	const struct device *d = &c->dev;

	check_program(c, d->native, "native");
	check_program(c, d->generic, "generic");
	check_program(c, d->offloaded, "offloaded");
	if (!d->native && !d->generic && !d->offloaded)
		found(c, FINDING_OK, "program", "", "no program is attached");
}

static void check_offloads(struct check *c)
{
	bool hw_gro = device_has(&c->dev, ETHTOOL_FEATURE_HW_GRO);
	const struct device *d = &c->dev;
	char fix[FIX_SIZE];

	if (!hw_gro && !device_has(d, ETHTOOL_FEATURE_LRO))
		return;
	snprintf(fix, sizeof(fix), "ethtool -K %s %s off", d->quoted, hw_gro ? "rx-gro-hw" : "lro");
	found(c, FINDING_NOTE, "lro", fix,
	      "the device merges packets (%s): its driver turns that off for a program, or refuses "
	      "the program",
	      hw_gro ? "rx-gro-hw" : "lro");
}

static void check_peer(struct check *c)
{
	const struct device *d = &c->dev;

	if (!d->veth)
		return;
	if (!c->peer.place) {
		found(c, FINDING_NOTE, "peer", "",
		      "the other end of %s cannot be looked at (%s): what depends on its settings "
		      "is not checked",
		      d->name,
		      c->peer_error == -ENOENT ? "no process or name holds its network namespace"
					       : strerror(-c->peer_error));
		return;
	}
	if (!c->generic && !d->native && device_has(&c->peer, ETHTOOL_FEATURE_TSO))
		found(c, FINDING_NOTE, "tso", "",
		      "a native program turns off segmentation offload at its peer %s: bulk TCP "
		      "from the programs behind it gets about half as fast",
		      c->peer.name);
}

static void check_kernel(struct check *c, const struct instance *inst)
{
	char dir[200];
	struct error ignored = {0};
	int r = mount_bpffs(inst, false, dir, sizeof(dir), &ignored);

	if (r)
		found(c, FINDING_NOTE, "bpffs", "mount -t bpf bpf /sys/fs/bpf",
		      "no bpf filesystem is mounted: ax mounts one when it loads");
	else
		found(c, FINDING_OK, "bpffs", "", "mounted on %s", dir);
	r = kernel_has_freplace();
	if (r)
		found(c, FINDING_NOTE, "freplace", "",
		      "the kernel refuses to replace programs' functions (%s): one program an "
		      "interface, no sharing it through libxdp",
		      strerror(-r));
	else
		found(c, FINDING_OK, "freplace", "",
		      "several programs can share an interface through libxdp");
}

static void check_free(struct check *c)
{
	place_close(&c->there);
	place_close(&c->here);
	free(c->seen);
	strv_free(&c->devices);
	strv_free(&c->balancers);
	datapath_apps_close(&c->apps);
}

int preflight(const struct instance *inst, const char *ifname, const struct rule_list *l,
	      enum xdp_mode mode, bool fix, void (*report)(void *arg, const struct finding *f),
	      void *arg, struct error *e)
{
	CLEANUP(check_free)
	struct check c = {.here.fd = -1,
			  .there.fd = -1,
			  .mode = mode,
			  .fix = fix,
			  .report = report,
			  .arg = arg};
	int r = place_open(-1, &c.here);

	datapath_apps_open(inst, &c.apps);
	c.nat = datapath_xdp_has_nat(inst);
	if (r)
		return error_set(e, r, "the kernel's network devices cannot be asked: %s",
				 strerror(-r));
	r = device_load(&c.here, ifname, 0, &c.dev);
	if (r == -ENODEV)
		return error_set(e, r,
				 "there is no interface '%s' in this network namespace: "
				 "'ip link' lists them",
				 ifname);
	if (r)
		return error_set(e, r, "interface %s cannot be asked: %s", ifname, strerror(-r));
	if (c.dev.veth)
		c.peer_error = device_peer(&c.dev, &c.there, &c.peer);
	check_driver(&c);
	check_mtu(&c);
	check_queues(&c);
	check_programs(&c);
	check_offloads(&c);
	check_peer(&c);
	check_kernel(&c, inst);
	r = check_rules(&c, l);
	return r ? error_set(e, r, "out of memory") : c.bad;
}
