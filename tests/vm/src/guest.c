/* SPDX-License-Identifier: GPL-2.0-or-later */
// flags: -pthread
/*
 * A virtual machine of a few instructions: each vCPU makes hypercalls and halts.
 *
 *   guest [-name NAME] VCPUS TIMES NR...     (as qemu, -name is only for those who look)
 *
 * TIMES times: CPUID, then a hypercall for each NR, with the arguments 7, 8, 9, 10.
 */
#include <cpuid.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY	  0x10000
#define CODE_AT	  0x1000
#define VCPUS_MAX 8

struct vcpu {
	int fd;
	struct kvm_run *run;
	pthread_t thread;
	unsigned long ended; /* with HLT */
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int check(int r, const char *what)
{
	if (r < 0)
		die(what);
	return r;
}

/* --- the guest's code, for 16 bits --- */

struct code {
	uint8_t *at;
};

static void put(struct code *c, const void *bytes, size_t n)
{
	memcpy(c->at, bytes, n);
	c->at += n;
}

static void load(struct code *c, uint8_t opcode, uint32_t value)
{
	uint8_t mov[] = {0x66, opcode};

	put(c, mov, sizeof(mov));
	put(c, &value, sizeof(value));
}

static int is_amd(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0, &a, &b, &c, &d) && (b == signature_AMD_ebx || b == 0x6f677948);
}

static void write_code(uint8_t *memory, uint32_t times, int n, char **numbers)
{
	static const uint8_t cpuid[] = {0x0f, 0xa2}, dec_ebp[] = {0x66, 0x4d}, hlt[] = {0xf4};
	static const uint8_t vmcall[] = {0x0f, 0x01, 0xc1}, vmmcall[] = {0x0f, 0x01, 0xd9};
	struct code c = {.at = memory + CODE_AT};
	uint8_t jnz[4] = {0x0f, 0x85}, *loop;
	int16_t back;

	load(&c, 0xbd, times);
	loop = c.at;
	load(&c, 0xb8, 0);
	put(&c, cpuid, sizeof(cpuid));
	for (int i = 0; i < n; i++) {
		load(&c, 0xb8, (uint32_t)strtoul(numbers[i], NULL, 0)); /* eax */
		load(&c, 0xbb, 7);
		load(&c, 0xb9, 8);
		load(&c, 0xba, 9);
		load(&c, 0xbe, 10);
		put(&c, is_amd() ? vmmcall : vmcall, sizeof(vmcall));
	}
	put(&c, dec_ebp, sizeof(dec_ebp));
	back = (int16_t)(loop - (c.at + sizeof(jnz)));
	memcpy(jnz + 2, &back, sizeof(back));
	put(&c, jnz, sizeof(jnz));
	put(&c, hlt, sizeof(hlt));
}

/* --- the machine --- */

static int make_vm(int kvm, uint8_t *memory)
{
	struct kvm_userspace_memory_region region = {
		.memory_size = MEMORY,
		.userspace_addr = (uintptr_t)memory,
	};
	int vm = check(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");

	check(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	return vm;
}

static void make_vcpu(struct vcpu *v, int kvm, int vm, int number)
{
	int size = check(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");
	struct kvm_regs regs = {.rip = CODE_AT, .rflags = 2};
	struct kvm_sregs sregs;

	v->fd = check(ioctl(vm, KVM_CREATE_VCPU, number), "KVM_CREATE_VCPU");
	v->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (v->run == MAP_FAILED)
		die("mmap of a vCPU");
	check(ioctl(v->fd, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	check(ioctl(v->fd, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	check(ioctl(v->fd, KVM_SET_REGS, &regs), "KVM_SET_REGS");
}

static void *run_vcpu(void *arg)
{
	struct vcpu *v = arg;

	for (;;) {
		check(ioctl(v->fd, KVM_RUN, 0), "KVM_RUN");
		if (v->run->exit_reason == KVM_EXIT_HLT) {
			v->ended = 1;
			return NULL;
		}
		if (v->run->exit_reason != KVM_EXIT_INTR) {
			fprintf(stderr, "the guest ended with reason %u\n", v->run->exit_reason);
			return NULL;
		}
	}
}

int main(int argc, char **argv)
{
	struct vcpu v[VCPUS_MAX] = {0};
	unsigned long ended = 0;
	int kvm, vm, n;
	uint8_t *memory;

	if (argc > 2 && !strcmp(argv[1], "-name")) {
		argv += 2;
		argc -= 2;
	}
	n = argc > 3 ? atoi(argv[1]) : 0;
	if (n < 1 || n > VCPUS_MAX) {
		fprintf(stderr, "usage: guest [-name NAME] VCPUS TIMES NR...\n");
		return 2;
	}
	kvm = check(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	write_code(memory, (uint32_t)strtoul(argv[2], NULL, 0), argc - 3, argv + 3);
	vm = make_vm(kvm, memory);
	for (int i = 0; i < n; i++)
		make_vcpu(&v[i], kvm, vm, i);
	for (int i = 0; i < n; i++)
		if (pthread_create(&v[i].thread, NULL, run_vcpu, &v[i]))
			die("pthread_create");
	for (int i = 0; i < n; i++) {
		pthread_join(v[i].thread, NULL);
		ended += v[i].ended;
	}
	printf("%lu of %d vCPUs halted\n", ended, n);
	return ended == (unsigned long)n ? 0 : 1;
}
