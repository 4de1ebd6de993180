// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SYNs of nobody, more than sockets can send: a program that the kernel runs on frames which then
 * leave by a device as they do for XDP_TX (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18).
 *
 *  flood DEVICE SOURCE_MAC DESTINATION_MAC ADDRESS PORT RATE SECONDS
 *      Prints how many a second it made, and a second of its processor time. Exits with 3 where the
 * kernel does not do this.
 *
 * The program gives each frame another source address, in 32.0.0.0/3, and another port, so that no
 * checksum changes: of two words of 16 bits, one is what the other is not.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "netutil.h"

#define LIVE_FRAMES (1U << 1) /* BPF_F_TEST_XDP_LIVE_FRAMES */
#define TURN_NS	    10000000  /* so often some are made */

struct frame {
	struct ether_header eth;
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));
enum {
	SADDR = offsetof(struct frame, ip) + offsetof(struct iphdr, saddr),
	SPORT = offsetof(struct frame, tcp) + offsetof(struct tcphdr, source),
	SEQ = offsetof(struct frame, tcp) + offsetof(struct tcphdr, seq),
};

static int bpf(int cmd, union bpf_attr *a)
{
	return (int)syscall(SYS_bpf, cmd, a, sizeof(*a));
}

/* --- instructions: registers dst, src --- */

static struct bpf_insn insn(int code, int dst, int src, int off, int imm)
{
	return (struct bpf_insn){.code = (__u8)code,
				 .dst_reg = (__u8)(dst & 15),
				 .src_reg = (__u8)(src & 15),
				 .off = (__s16)off,
				 .imm = imm};
}

static struct bpf_insn alu(int op, int dst, int imm)
{
	return insn(BPF_ALU64 | op | BPF_K, dst, 0, 0, imm);
}

static struct bpf_insn mov(int dst, int src)
{
	return insn(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static struct bpf_insn load32(int dst, int src, int off)
{
	return insn(BPF_LDX | BPF_MEM | BPF_W, dst, src, off, 0);
}

static struct bpf_insn store16(int dst, int off, int src)
{
	return insn(BPF_STX | BPF_MEM | BPF_H, dst, src, off, 0);
}

static uint32_t sum(const void *data, size_t size, uint32_t s)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < size; i += 2)
		s += (uint32_t)p[i] << 8 | p[i + 1];
	return s;
}

static uint16_t folded(uint32_t s)
{
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return htons((uint16_t)~s);
}

static void make_frame(struct frame *f, char **argv)
{
	const struct ether_addr *mac = ether_aton(argv[2]);

	*f = (struct frame){
		.eth.ether_type = htons(ETHERTYPE_IP),
		.ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_TCP},
		.tcp = {.doff = 5, .syn = 1, .window = htons(8192)},
	};
	if (!mac)
		fail("MAC");
	memcpy(f->eth.ether_shost, mac, ETH_ALEN);
	mac = ether_aton(argv[3]);
	if (!mac || inet_pton(AF_INET, argv[4], &f->ip.daddr) != 1)
		fail("address");
	memcpy(f->eth.ether_dhost, mac, ETH_ALEN);
	f->ip.tot_len = htons(sizeof(f->ip) + sizeof(f->tcp));
	f->tcp.dest = htons((uint16_t)atoi(argv[5]));
	/* what the program writes sums up to this */
	f->ip.saddr = 0xffff;
	f->tcp.source = 0xffff;
	f->ip.check = folded(sum(&f->ip, sizeof(f->ip), 0));
	f->tcp.check = folded(
		sum(&f->tcp, sizeof(f->tcp), sum(&f->ip.saddr, 8, IPPROTO_TCP + sizeof(f->tcp))));
}

/* Frames come back as whoever had them left them: all of one is written anew. */
static size_t write_frame(struct bpf_insn *to, const struct frame *f)
{
	const size_t words = sizeof(*f) / sizeof(uint16_t);
	uint16_t word;

	for (size_t i = 0; i < words; i++) {
		memcpy(&word, (const char *)f + i * sizeof(word), sizeof(word));
		to[i] = insn(BPF_ST | BPF_MEM | BPF_H, 6, 0, (int)(i * sizeof(word)), word);
	}
	return words;
}

static int load_program(const struct frame *f)
{
	const struct bpf_insn last[] = {
		insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32),
		mov(1, 0),
		alu(BPF_AND, 1, 0xff1f), /* the first byte is the lower one */
		alu(BPF_OR, 1, 0x0020),
		store16(6, SADDR, 1),
		alu(BPF_XOR, 1, 0xffff),
		store16(6, SADDR + 2, 1),
		alu(BPF_RSH, 0, 16),
		store16(6, SPORT, 0),
		alu(BPF_XOR, 0, 0xffff),
		store16(6, SEQ, 0),
		alu(BPF_MOV, 0, XDP_TX),
		insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	const size_t n_last = sizeof(last) / sizeof(last[0]);
	struct bpf_insn prog[64] = {
		load32(6, 1, offsetof(struct xdp_md, data)),
		load32(2, 1, offsetof(struct xdp_md, data_end)),
		mov(1, 6),
		alu(BPF_ADD, 1, sizeof(struct frame)),
		alu(BPF_MOV, 0, XDP_DROP),
	};
	union bpf_attr a = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uintptr_t)prog,
		.license = (uintptr_t) "GPL",
	};
	size_t check = 5, n = check + 1;

	n += write_frame(prog + n, f);
	memcpy(prog + n, last, sizeof(last));
	n += n_last;
	/* too short: to the exit */
	prog[check] = insn(BPF_JMP | BPF_JGT | BPF_X, 1, 2, (int)(n - check - 2), 0);
	a.insn_cnt = (__u32)n;
	return bpf(BPF_PROG_LOAD, &a);
}

/* Returns the errno. */
static int run(int prog, const struct frame *f, unsigned ifindex, uint32_t n)
{
	struct xdp_md md = {.data_end = sizeof(*f), .ingress_ifindex = ifindex};
	union bpf_attr a = {.test = {
				    .prog_fd = (uint32_t)prog,
				    .data_in = (uintptr_t)f,
				    .data_size_in = sizeof(*f),
				    .ctx_in = (uintptr_t)&md,
				    .ctx_size_in = sizeof(md),
				    .repeat = n,
				    .flags = LIVE_FRAMES,
			    }};

	return bpf(BPF_PROG_TEST_RUN, &a) ? errno : 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t begin = now_ns(), end, rate, made = 0, lasted;
	unsigned ifindex = argc == 8 ? if_nametoindex(argv[1]) : 0;
	struct frame f;
	int prog, err;

	if (!ifindex)
		fail("device");
	make_frame(&f, argv);
	rate = strtoull(argv[6], NULL, 10);
	end = begin + strtoull(argv[7], NULL, 10) * 1000000000;
	prog = load_program(&f);
	if (prog < 0)
		fail("program");
	err = run(prog, &f, ifindex, 1);
	if (err)
		return err == EINVAL || err == EOPNOTSUPP
			       ? 3
			       : (fprintf(stderr, "%s\n", strerror(err)), 1);
	while (now_ns() < end) {
		uint64_t due = (now_ns() - begin) / 1000 * rate / 1000000;
		struct timespec turn = {.tv_nsec = TURN_NS};

		if (due > made) {
			uint32_t n = due - made > 4096 ? 4096 : (uint32_t)(due - made);

			err = run(prog, &f, ifindex, n);
			if (err && err != EINTR)
				fail("run");
			made += n;
		} else {
			nanosleep(&turn, NULL);
		}
	}
	lasted = (now_ns() - begin) / 1000;
	printf("%llu, of processor time %.0f\n", (unsigned long long)(made * 1000000 / lasted),
	       (double)made * CLOCKS_PER_SEC / (double)clock());
	return 0;
}
