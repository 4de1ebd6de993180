// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures XDP programs: those that ax has on an interface, found by their pins, and xdp-filter's,
 * from the object file that libxdp comes with. Each command prints one JSON object on one line.
 *
 *   xdpbench [OPTION...] filter PINS         what ax has on an interface, on one packet again and
 * again xdpbench [OPTION...] sources PINS N      the same, each packet from one of N addresses
 *   xdpbench [OPTION...] balancer PINS [N]   the same with programs that change the packet
 *   xdpbench [OPTION...] xdpfilter           xdp-filter
 *   xdpbench [OPTION...] flood OUT           sends frames by interface OUT
 *   xdpbench [OPTION...] flood OUT IN        the same, with xdp-filter on interface IN
 *   xdpbench [OPTION...] send OUT            sends them without measuring anything beside
 *   xdpbench [OPTION...] syns OUT RATE MS    sends so many SYNs a second for so long
 *   xdpbench addresses N                     those addresses, a line each
 *
 *   -c CPU       where to run                    -n N        packets at a time (1000000)
 *   -r N         how many times (5)              -i IFACE    where the packet comes in
 *   -p udp|tcp   -s ADDR:PORT   -d ADDR:PORT     the packet
 *   -P N         xdpfilter, flood: as many ports, from that of -d on
 *   -y           SYNs, each from another address and port (flood, send, syns)
 *   -o FILE      xdp-filter's object file
 *   -e VERDICT   what has to become of it: drop, pass, tx or redirect
 *
 * What a program costs is the time of its runs minus that of the same number of runs of a program
 * that does nothing, one after the other; of some such pairs the median.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "xdpbench.skel.h"

#define FRAME	   64u
#define ROUNDS_MAX 99u
#define FACTOR	   2654435761u /* of any_address() */

/* xdp-filter's map of ports: in network byte order -> these flags, below a counter. */
#define XDPFILTER_DST (1u << 1)
#define XDPFILTER_TCP (1u << 2)
#define XDPFILTER_UDP (1u << 3)

struct options {
	unsigned packets, rounds;
	unsigned ifindex;
	unsigned ports;
	int verdict;	    /* -1: any */
	const char *object; /* xdp-filter's file */
	bool tcp, syn;
	struct sockaddr_in src, dst;
	uint8_t frame[FRAME];
};

struct sample {
	double program, nothing; /* ns per packet */
};

static int failed(const char *what, int err)
{
	fprintf(stderr, "xdpbench: %s failed: %s\n", what, strerror(err < 0 ? -err : err));
	return 1;
}

/* --- the packet --- */

static uint16_t header_checksum(const struct iphdr *ip)
{
	const uint16_t *w = (const void *)ip;
	uint32_t sum = 0;

	for (size_t i = 0; i < sizeof(*ip) / 2; i++)
		sum += w[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* 64 bytes from Ethernet on. No UDP checksum; TCP's is of no interest to what is measured. */
static void make_frame(struct options *o)
{
	struct ethhdr *eth = (void *)o->frame;
	struct iphdr *ip = (void *)(eth + 1);
	struct tcphdr *tcp = (void *)(ip + 1);
	struct udphdr *udp = (void *)(ip + 1);

	memset(o->frame, 0, sizeof(o->frame));
	memcpy(eth->h_dest, "\2\0\0\0\0\1", ETH_ALEN);
	memcpy(eth->h_source, "\2\0\0\0\0\2", ETH_ALEN);
	eth->h_proto = htons(ETH_P_IP);
	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tot_len = htons(FRAME - sizeof(*eth)),
		.ttl = 64,
		.protocol = o->tcp ? IPPROTO_TCP : IPPROTO_UDP,
		.saddr = o->src.sin_addr.s_addr,
		.daddr = o->dst.sin_addr.s_addr,
	};
	ip->check = header_checksum(ip);
	if (o->tcp)
		*tcp = (struct tcphdr){
			.source = o->src.sin_port,
			.dest = o->dst.sin_port,
			.doff = 5,
			.syn = o->syn,
			.ack = !o->syn,
			.window = htons(1000),
			.check = htons(1),
		};
	else
		*udp = (struct udphdr){
			.source = o->src.sin_port,
			.dest = o->dst.sin_port,
			.len = htons(FRAME - sizeof(*eth) - sizeof(*ip)),
		};
}

static uint32_t sum_of(const void *data, size_t len, uint32_t sum)
{
	const uint16_t *w = data;

	for (size_t i = 0; i < len / 2; i++)
		sum += w[i];
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* What the program writes into each sums up to all bits twice. */
static void make_syn(struct options *o)
{
	struct iphdr *ip = (void *)(o->frame + sizeof(struct ethhdr));
	struct tcphdr *tcp = (void *)(ip + 1);

	o->tcp = true;
	make_frame(o);
	ip->tot_len = htons(sizeof(*ip) + sizeof(*tcp));
	ip->saddr = htonl(0xffff);
	ip->check = 0;
	ip->check = fold(sum_of(ip, sizeof(*ip), 0));
	tcp->source = 0xffff;
	tcp->check = 0;
	tcp->check = fold(sum_of(tcp, sizeof(*tcp),
				 sum_of(&ip->saddr, 8, htons(IPPROTO_TCP) + htons(sizeof(*tcp)))));
}

/* --- running --- */

/* The processor's time, and not the clock's: others may be at work on this machine. The kernel's
 * own figure has no fractions. */
static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int run(const struct options *o, int prog, double *ns, uint32_t *verdict)
{
	struct xdp_md md = {.data_end = FRAME, .ingress_ifindex = o->ifindex};
	LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = o->frame, .data_size_in = FRAME, .ctx_in = &md,
		    .ctx_size_in = sizeof(md), .repeat = (int)o->packets);
	double begin = now_ns();

	if (bpf_prog_test_run_opts(prog, &t) < 0)
		return -errno;
	*ns = (now_ns() - begin) / o->packets;
	*verdict = t.retval;
	return 0;
}

static int compare_net(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	double d = (x->program - x->nothing) - (y->program - y->nothing);

	return d < 0 ? -1 : d > 0;
}

/* The median. Whoever prints more goes on with the line. */
static void report(const struct options *o, struct sample *s, size_t packets)
{
	const struct sample *m = &s[o->rounds / 2];

	qsort(s, o->rounds, sizeof(*s), compare_net);
	printf("{\"value\":%.2f,\"unit\":\"ns\",\"program\":%.2f,\"nothing\":%.2f,\"packets\":%zu",
	       m->program - m->nothing, m->program, m->nothing, packets);
}

static int check_verdict(const struct options *o, uint32_t verdict)
{
	if (o->verdict < 0 || (uint32_t)o->verdict == verdict)
		return 0;
	fprintf(stderr, "xdpbench: the packet's verdict is %u and not %d\n", verdict, o->verdict);
	return 1;
}

/* Runs both programs in turns. The first pair only warms up. */
static int compare(const struct options *o, int prog, int nothing)
{
	struct sample s[ROUNDS_MAX];
	uint32_t verdict, pass;

	for (unsigned i = 0; i <= o->rounds; i++) {
		struct sample *now = &s[i ? i - 1 : 0];
		int r = run(o, nothing, &now->nothing, &pass);

		if (!r)
			r = run(o, prog, &now->program, &verdict);
		if (r)
			return failed("running a program", r);
		if (pass != XDP_PASS || check_verdict(o, verdict))
			return 1;
	}
	report(o, s, (size_t)o->packets * (o->rounds + 1));
	puts("}");
	return 0;
}

/* --- programs --- */

/* has_frags: ax loads its own so where it can, and a program array takes only programs that are
 * alike in this and in their attach type. */
static struct xdpbench *load(const struct options *o, unsigned addresses, bool has_frags)
{
	struct xdpbench *skel = xdpbench__open();
	struct bpf_program *p;

	if (!skel)
		return NULL;
	skel->rodata->addresses = addresses;
	skel->rodata->frame_len = FRAME;
	skel->rodata->first_port = ntohs(o->dst.sin_port);
	skel->rodata->ports = o->ports;
	memcpy(skel->bss->head, o->frame, FRAME);
	bpf_object__for_each_program (p, skel->obj) {
		if (has_frags)
			bpf_program__set_flags(p, BPF_F_XDP_HAS_FRAGS);
		else
			bpf_program__set_expected_attach_type(p, 0);
	}
	if (xdpbench__load(skel) < 0) {
		xdpbench__destroy(skel);
		return NULL;
	}
	return skel;
}

static int open_pin(const char *pins, const char *name)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", pins, name);
	return bpf_obj_get(path);
}

/* The generation that is current: the first entry of the root program's array. */
static int open_generation(const char *pins)
{
	int jumps = open_pin(pins, "jumps");
	uint32_t key = 0, id;
	int prog = -1;

	if (jumps < 0)
		return -1;
	if (!bpf_map_lookup_elem(jumps, &key, &id))
		prog = bpf_prog_get_fd_by_id(id);
	close(jumps);
	return prog;
}

/* What packets come to first; in a dispatcher it cannot be run alone, but what it jumps to can. */
static int open_root(const char *pins)
{
	int prog = open_pin(pins, "root");
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	if (prog >= 0 && !bpf_obj_get_info_by_fd(prog, &info, &len) &&
	    info.type == BPF_PROG_TYPE_XDP)
		return prog;
	if (prog >= 0)
		close(prog);
	return open_generation(pins);
}

static int measure_filter(const struct options *o, const char *pins)
{
	struct xdpbench *skel = load(o, 0, true);
	int prog = open_root(pins), r;

	if (!skel || prog < 0)
		r = failed("opening the programs", errno);
	else
		r = compare(o, prog, bpf_program__fd(skel->progs.nothing));
	if (prog >= 0)
		close(prog);
	xdpbench__destroy(skel);
	return r;
}

/* Programs that jump to `prog`. */
static struct xdpbench *load_around(const struct options *o, unsigned addresses, int prog)
{
	for (int has_frags = 1; has_frags >= 0; has_frags--) {
		struct xdpbench *skel = load(o, addresses, has_frags);
		uint32_t key = 0;

		if (!skel)
			return NULL;
		if (!bpf_map_update_elem(bpf_map__fd(skel->maps.target), &key, &prog, 0))
			return skel;
		xdpbench__destroy(skel);
	}
	return NULL;
}

static int measure_around(const struct options *o, const char *pins, unsigned addresses,
			  bool balancer)
{
	int prog = open_generation(pins), r;
	struct xdpbench *skel = prog >= 0 ? load_around(o, addresses, prog) : NULL;
	struct xdpbench *bare = load(o, addresses, true);

	if (!skel || !bare)
		r = failed("loading the programs", errno);
	else if (balancer)
		r = compare(o, bpf_program__fd(skel->progs.as_before),
			    bpf_program__fd(bare->progs.as_before));
	else
		r = compare(o, bpf_program__fd(skel->progs.any_source),
			    bpf_program__fd(bare->progs.any_source));
	if (prog >= 0)
		close(prog);
	xdpbench__destroy(skel);
	xdpbench__destroy(bare);
	return r;
}

/* --- xdp-filter --- */

static int fill_ports(const struct options *o, const struct bpf_map *ports)
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t *v = cpus > 0 ? calloc((size_t)cpus, sizeof(*v)) : NULL;
	int r = v ? 0 : -ENOMEM;

	for (int i = 0; v && i < cpus; i++)
		v[i] = XDPFILTER_DST | (o->tcp ? XDPFILTER_TCP : XDPFILTER_UDP);
	for (unsigned i = 0; i < o->ports && !r; i++) {
		uint32_t key = htons((uint16_t)(ntohs(o->dst.sin_port) + i));

		r = bpf_map__update_elem(ports, &key, sizeof(key), v, sizeof(*v) * (size_t)cpus, 0);
	}
	free(v);
	return r;
}

static struct bpf_object *load_xdpfilter(const struct options *o)
{
	struct bpf_object *obj = bpf_object__open_file(o->object, NULL);
	struct bpf_map *m, *ports;
	int r;

	if (!obj)
		return NULL;
	bpf_object__for_each_map (m, obj)
		bpf_map__set_pin_path(m, NULL);
	r = bpf_object__load(obj);
	ports = bpf_object__find_map_by_name(obj, "filter_ports");
	if (!r)
		r = ports ? fill_ports(o, ports) : -ENOENT;
	if (!r)
		return obj;
	bpf_object__close(obj);
	errno = -r;
	return NULL;
}

static int measure_xdpfilter(const struct options *o)
{
	struct bpf_object *obj = load_xdpfilter(o);
	struct xdpbench *skel = load(o, 0, true);
	int r;

	if (!obj || !skel)
		r = failed("loading xdp-filter", errno);
	else
		r = compare(o, bpf_program__fd(bpf_object__next_program(obj, NULL)),
			    bpf_program__fd(skel->progs.nothing));
	bpf_object__close(obj);
	xdpbench__destroy(skel);
	return r;
}

/* How many packets it dropped: its map of packets and bytes by verdict. */
static uint64_t xdpfilter_dropped(const struct bpf_object *obj)
{
	const struct bpf_map *stats = bpf_object__find_map_by_name(obj, "xdp_stats_map");
	int cpus = libbpf_num_possible_cpus();
	uint32_t key = XDP_DROP;
	uint64_t *v, sum = 0;

	if (!stats || cpus <= 0 || bpf_map__value_size(stats) != 2 * sizeof(*v))
		return 0;
	v = calloc((size_t)cpus, 2 * sizeof(*v));
	if (v && !bpf_map_lookup_elem(bpf_map__fd(stats), &key, v))
		for (int i = 0; i < cpus; i++)
			sum += v[2 * i];
	free(v);
	return sum;
}

/* --- live frames --- */

/*
 * The kernel's own figure, which is of the time in which frames are made and, by the interrupt that
 * each batch of them raises, received; what it leaves out is waiting for other programs and, before
 * and after, for RCU.
 */
static int send_frames(const struct options *o, struct xdpbench *skel, unsigned out, double *ns)
{
	LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = o->frame, .data_size_in = FRAME,
		    .repeat = (int)o->packets, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	skel->bss->out = out;
	if (bpf_prog_test_run_opts(bpf_program__fd(o->syn ? skel->progs.syns : skel->progs.flood),
				   &t) < 0)
		return -errno;
	*ns = t.duration;
	return 0;
}

/* In turns with frames that are thrown away where they are made. */
static int send_all(const struct options *o, unsigned out)
{
	struct xdpbench *skel = load(o, 0, true);
	struct sample s[ROUNDS_MAX];
	int r = skel ? 0 : -errno;

	for (unsigned i = 0; i < o->rounds && !r; i++) {
		r = send_frames(o, skel, 0, &s[i].nothing);
		if (!r)
			r = send_frames(o, skel, out, &s[i].program);
	}
	xdpbench__destroy(skel);
	if (r)
		return failed("sending frames", r);
	report(o, s, (size_t)o->packets * o->rounds);
	return 0;
}

static int flood_xdpfilter(const struct options *o, unsigned out, unsigned in)
{
	struct bpf_object *obj = load_xdpfilter(o);
	struct bpf_link *link = NULL;
	int r;

	if (obj)
		link = bpf_program__attach_xdp(bpf_object__next_program(obj, NULL), (int)in);
	r = link ? send_all(o, out) : failed("attaching xdp-filter", errno);
	if (!r) {
		usleep(20000);
		printf(",\"dropped\":%llu}\n", (unsigned long long)xdpfilter_dropped(obj));
	}
	bpf_link__destroy(link);
	bpf_object__close(obj);
	return r;
}

/* Only sends. */
static int send_once(const struct options *o, unsigned out)
{
	struct xdpbench *skel = load(o, 0, true);
	double ns = 0;
	int r = skel ? send_frames(o, skel, out, &ns) : -errno;

	xdpbench__destroy(skel);
	if (r)
		return failed("sending frames", r);
	printf("{\"value\":%.2f,\"unit\":\"ns\",\"packets\":%u}\n", ns, o->packets);
	return 0;
}

/* --- a flood of SYNs --- */

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#define TURN_NS 5000000 /* so often some are sent; the kernel lets some time pass itself */
#define TURN	65536u	/* at most so many */

static int send_syns(const struct options *o, unsigned out, unsigned rate, unsigned ms)
{
	const struct timespec turn = {.tv_nsec = TURN_NS};
	LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = o->frame, .data_size_in = FRAME,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	uint64_t begin = clock_ns(), sent = 0, now;
	struct xdpbench *skel;
	int r = 0;

	skel = load(o, 0, true);
	if (!skel)
		return failed("loading the programs", errno);
	skel->bss->out = out;
	while (!r && (now = clock_ns() - begin) < ms * 1000000ull) {
		uint64_t due = now / 1000 * rate / 1000000 - sent;

		t.repeat = (int)(due > TURN ? TURN : due);
		if (due && bpf_prog_test_run_opts(bpf_program__fd(skel->progs.syns), &t) < 0 &&
		    errno != EINTR)
			r = -errno;
		sent += due ? (uint64_t)t.repeat : 0;
		if (due <= TURN)
			nanosleep(&turn, NULL);
	}
	xdpbench__destroy(skel);
	if (r)
		return failed("sending frames", r);
	printf("{\"value\":%.0f,\"unit\":\"1/s\"}\n", (double)sent * 1000 / ms);
	return 0;
}

static int flood(const struct options *o, int argc, char **argv)
{
	unsigned out = if_nametoindex(argv[0]), in = argc > 1 ? if_nametoindex(argv[1]) : 0;

	if (!out || (argc > 1 && !in))
		return failed("finding the interface", errno);
	if (in)
		return flood_xdpfilter(o, out, in);
	if (send_all(o, out))
		return 1;
	puts("}");
	return 0;
}

static int print_addresses(unsigned n)
{
	for (uint32_t i = 1; i <= n; i++) {
		uint32_t a = i * FACTOR;

		printf("%u.%u.%u.%u\n", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
	}
	return fflush(stdout) ? failed("writing", errno) : 0;
}

/* --- the command line --- */

static int read_number(const char *s, unsigned min, unsigned max, unsigned *ret)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(s, &end, 10);
	if (errno || end == s || *end || v < min || v > max)
		return -1;
	*ret = (unsigned)v;
	return 0;
}

static int read_end(char *s, struct sockaddr_in *ret)
{
	char *colon = strchr(s, ':');
	unsigned port;

	if (!colon || read_number(colon + 1, 0, UINT16_MAX, &port))
		return -1;
	*colon = '\0';
	ret->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, s, &ret->sin_addr) == 1 ? 0 : -1;
}

static int read_verdict(const char *s, int *ret)
{
	static const char *const names[] = {
		[XDP_ABORTED] = "aborted", [XDP_DROP] = "drop",		[XDP_PASS] = "pass",
		[XDP_TX] = "tx",	   [XDP_REDIRECT] = "redirect",
	};

	for (int i = 0; i <= XDP_REDIRECT; i++)
		if (!strcmp(s, names[i])) {
			*ret = i;
			return 0;
		}
	return -1;
}

static int use_cpu(const char *s)
{
	cpu_set_t set;
	unsigned cpu;

	if (read_number(s, 0, CPU_SETSIZE - 1, &cpu))
		return -1;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static int read_option(struct options *o, int c, char *arg)
{
	switch (c) {
	case 'c':
		return use_cpu(arg);
	case 'n':
		return read_number(arg, 1, 1000000000, &o->packets);
	case 'r':
		return read_number(arg, 1, ROUNDS_MAX, &o->rounds);
	case 'i':
		o->ifindex = if_nametoindex(arg);
		return o->ifindex ? 0 : -1;
	case 'p':
		o->tcp = !strcmp(arg, "tcp");
		return o->tcp || !strcmp(arg, "udp") ? 0 : -1;
	case 's':
		return read_end(arg, &o->src);
	case 'd':
		return read_end(arg, &o->dst);
	case 'P':
		return read_number(arg, 1, UINT16_MAX, &o->ports);
	case 'o':
		o->object = arg;
		return 0;
	case 'e':
		return read_verdict(arg, &o->verdict);
	case 'y':
		o->syn = true;
		return 0;
	default:
		return -1;
	}
}

static int usage(void)
{
	fputs("usage: xdpbench [-c CPU] [-n PACKETS] [-r ROUNDS] [-i IFACE] [-p udp|tcp]\n"
	      "                [-s ADDR:PORT] [-d ADDR:PORT] [-P PORTS] [-o FILE]\n"
	      "                [-e VERDICT] [-y]\n"
	      "                filter PINS | sources PINS N | balancer PINS [N] | xdpfilter |\n"
	      "                flood OUT [IN] | send OUT | syns OUT RATE MS\n"
	      "       xdpbench addresses N\n",
	      stderr);
	return 2;
}

static int command(const struct options *o, int argc, char **argv)
{
	const char *name = argc > 0 ? argv[0] : "";
	unsigned n = 0, ms;

	if (argc == 2 && !strcmp(name, "addresses") && !read_number(argv[1], 1, UINT32_MAX, &n))
		return print_addresses(n);
	if (argc == 2 && !strcmp(name, "filter"))
		return measure_filter(o, argv[1]);
	if (argc == 1 && !strcmp(name, "xdpfilter"))
		return measure_xdpfilter(o);
	if (argc == 2 && !strcmp(name, "send"))
		return send_once(o, if_nametoindex(argv[1]));
	if (argc == 4 && !strcmp(name, "syns") && !read_number(argv[2], 1, 100000000, &n) &&
	    !read_number(argv[3], 1, 1000000, &ms))
		return send_syns(o, if_nametoindex(argv[1]), n, ms);
	if ((argc == 2 || argc == 3) && !strcmp(name, "flood"))
		return flood(o, argc - 1, argv + 1);
	if (argc == 3 && read_number(argv[2], 1, UINT32_MAX, &n))
		return usage();
	if (argc == 3 && !strcmp(name, "sources"))
		return measure_around(o, argv[1], n, false);
	if ((argc == 2 || argc == 3) && !strcmp(name, "balancer"))
		return measure_around(o, argv[1], n, true);
	return usage();
}

int main(int argc, char **argv)
{
	struct options o = {
		.packets = 1000000,
		.rounds = 5,
		.verdict = -1,
		.object = "/usr/lib/x86_64-linux-gnu/bpf/xdpfilt_alw_all.o",
		.src = {.sin_addr.s_addr = htonl(0x0a000001), .sin_port = htons(1234)},
		.dst = {.sin_addr.s_addr = htonl(0x0a000002), .sin_port = htons(9)},
	};
	int c;

	while ((c = getopt(argc, argv, "+c:n:r:i:p:s:d:P:o:e:y")) != -1)
		if (read_option(&o, c, optarg)) {
			fprintf(stderr, "xdpbench: a bad value or option: -%c\n", c);
			return usage();
		}
	o.syn ? make_syn(&o) : make_frame(&o);
	libbpf_set_print(NULL);
	return command(&o, argc - optind, argv + optind);
}
