/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of exits and hypercalls, of machines by their command lines, and where records have fields.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#if defined(__x86_64__)
#include <asm/svm.h>
#include <asm/vmx.h>
#endif
#include <linux/kvm_para.h>

#include "probes/kvm/exits.h"
#include "probes/kvm/guest.h"
#include "probes/kvm/layout.h"

/* --- exits --- */

static void is_exit(uint32_t isa, uint32_t reason, const char *expected)
{
	char buf[KVM_EXIT_NAME];

	assert_string_equal(kvm_exit_name(isa, reason, buf), expected);
}

static void test_exit_names(void **state)
{
	(void)state;
	is_exit(KVM_ISA_VMX, 18, "VMCALL");
	is_exit(KVM_ISA_VMX, 0, "EXCEPTION_NMI");
	is_exit(KVM_ISA_VMX, 33 | 0x80000000u, "INVALID_STATE|FAILED_VMENTRY");
	is_exit(KVM_ISA_VMX, 10 | 0x08000000u, "CPUID|SGX_ENCLAVE_MODE");
	is_exit(KVM_ISA_VMX, 999, "999");
	is_exit(KVM_ISA_SVM, 0x81, "VMMCALL");
	is_exit(KVM_ISA_SVM, 0x400, "NPF");
	is_exit(KVM_ISA_SVM, 0x4e, "EXCP_PF");
	is_exit(KVM_ISA_SVM, 0x4f, "0x4f");
	is_exit(KVM_ISA_SVM, 0x5f, "0x5f");
	is_exit(KVM_ISA_SVM, UINT32_MAX, "ERR");
	is_exit(KVM_ISA_SVM, 18, "WRITE_CR2");
	is_exit(7, 18, "0x12");
	assert_string_equal(kvm_isa_name(KVM_ISA_VMX), "vmx");
	assert_string_equal(kvm_isa_name(KVM_ISA_SVM), "svm");
	assert_string_equal(kvm_isa_name(3), "unknown");
}

#if defined(__x86_64__)
/* As the headers that are installed have them. */
static void test_exit_names_of_linux(void **state)
{
	static const struct {
		uint32_t reason;
		const char *name;
	} vmx[] = {VMX_EXIT_REASONS},
	  svm[] = {
		  {SVM_EXIT_READ_CR0, "READ_CR0"},
		  {SVM_EXIT_WRITE_CR8, "WRITE_CR8"},
		  {SVM_EXIT_EXCP_BASE + 6, "EXCP_UD"},
		  {SVM_EXIT_EXCP_BASE + 13, "EXCP_GP"},
		  {SVM_EXIT_EXCP_BASE + 18, "EXCP_MC"},
		  {SVM_EXIT_INTR, "INTR"},
		  {SVM_EXIT_VINTR, "VINTR"},
		  {SVM_EXIT_CPUID, "CPUID"},
		  {SVM_EXIT_HLT, "HLT"},
		  {SVM_EXIT_IOIO, "IOIO"},
		  {SVM_EXIT_MSR, "MSR"},
		  {SVM_EXIT_SHUTDOWN, "SHUTDOWN"},
		  {SVM_EXIT_VMMCALL, "VMMCALL"},
		  {SVM_EXIT_XSETBV, "XSETBV"},
		  {SVM_EXIT_CR15_WRITE_TRAP, "CR15_WRITE_TRAP"},
		  {SVM_EXIT_INVPCID, "INVPCID"},
		  {SVM_EXIT_NPF, "NPF"},
		  {SVM_EXIT_AVIC_UNACCELERATED_ACCESS, "AVIC_UNACCELERATED_ACCESS"},
		  {SVM_EXIT_VMGEXIT, "VMGEXIT"},
		  {SVM_VMGEXIT_GUEST_REQUEST, "VMGEXIT_GUEST_REQUEST"},
	  };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vmx); i++)
		is_exit(KVM_ISA_VMX, vmx[i].reason, vmx[i].name);
	for (size_t i = 0; i < ARRAY_SIZE(svm); i++)
		is_exit(KVM_ISA_SVM, svm[i].reason, svm[i].name);
}
#endif

/* --- hypercalls --- */

static void test_call_names(void **state)
{
	uint64_t nr;

	(void)state;
	assert_string_equal(kvm_call_name(KVM_HC_SEND_IPI), "SEND_IPI");
	assert_string_equal(kvm_call_name(KVM_HC_KICK_CPU), "KICK_CPU");
	assert_string_equal(kvm_call_name(KVM_HC_CLOCK_PAIRING), "CLOCK_PAIRING");
	assert_string_equal(kvm_call_name(KVM_HC_SCHED_YIELD), "SCHED_YIELD");
	assert_null(kvm_call_name(42));
	assert_null(kvm_call_name(UINT64_C(0x10000000a)));
	for (size_t i = 0; kvm_call_nth(i); i++) {
		assert_int_equal(kvm_call_parse(kvm_call_nth(i), &nr), 0);
		assert_string_equal(kvm_call_name(nr), kvm_call_nth(i));
	}
}

static void test_call_numbers(void **state)
{
	static const char *const wrong[] = {"",	   "x",	      "-1",  "+1",
					    " 1",  "1 ",      "0x",  "0xg",
					    "42,", "SEND_IP", "1e3", "18446744073709551616"};
	uint64_t nr;

	(void)state;
	assert_int_equal(kvm_call_parse("42", &nr), 0);
	assert_int_equal(nr, 42);
	assert_int_equal(kvm_call_parse("0x2A", &nr), 0);
	assert_int_equal(nr, 42);
	assert_int_equal(kvm_call_parse("018446744073709551615", &nr), 0);
	assert_true(nr == UINT64_MAX);
	assert_int_equal(kvm_call_parse("send_ipi", &nr), 0);
	assert_int_equal(nr, KVM_HC_SEND_IPI);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(kvm_call_parse(wrong[i], &nr), -EINVAL);
}

/* --- machines --- */

/* `words`: with a NUL behind each. */
#define IS_GUEST(words, expected) is_guest(words, sizeof(words) - 1, expected)
static void is_guest(const char *words, size_t len, const char *expected)
{
	/* of just this size, so that a sanitizer sees what is read behind it */
	char *copy = malloc(len ? len : 1);
	char *name;

	assert_non_null(copy);
	memcpy(copy, words, len);
	name = guest_name(copy, len);
	if (expected)
		assert_string_equal(name, expected);
	else
		assert_null(name);
	free(name);
	free(copy);
}

static void test_guest_names(void **state)
{
	(void)state;
	IS_GUEST("qemu\0-name\0web\0-m\0001\0", "web");
	IS_GUEST("qemu\0-name\0guest=web,debug-threads=on\0", "web");
	IS_GUEST("qemu\0-name\0debug-threads=on,guest=web\0", "web");
	IS_GUEST("qemu\0--name\0web,process=x\0", "web");
	IS_GUEST("qemu\0-name\0guest=a,,b,,,process=c\0", "a,b,");
	IS_GUEST("qemu\0-name\0a,,guest=b\0", NULL); /* has a '=': it is no name alone */
	IS_GUEST("firecracker\0--id\0box,1\0", "box,1");
	IS_GUEST("lkvm\0run\0--name\0box\0", "box");
	IS_GUEST("qemu\0-m\0001\0", NULL);
	IS_GUEST("qemu\0-name\0", NULL);
	IS_GUEST("qemu\0-name\0\0", NULL);
	IS_GUEST("qemu\0-name\0guest=\0", NULL);
	IS_GUEST("qemu\0-name\0debug-threads=on\0", NULL);
	IS_GUEST("", NULL);
	IS_GUEST("qemu\0-name\0cut", "cut");
	IS_GUEST("qemu\0-name\0cut,", "cut");
	IS_GUEST("qemu\0-name\0cut,,", "cut,");
	IS_GUEST("qemu\0--id\0cut", "cut");
	IS_GUEST("qemu\0-nam", NULL);
}

static void test_long_guest_name(void **state)
{
	char words[4096] = "qemu\0-name\0";
	size_t at = sizeof("qemu\0-name\0") - 1;
	char *name;

	(void)state;
	memset(words + at, 'x', sizeof(words) - at);
	name = guest_name(words, sizeof(words));
	assert_non_null(name);
	assert_in_range(strlen(name), 64, 128);
	free(name);
}

/* --- layouts --- */

#define COMMON                                                                 \
	"format:\n"                                                            \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FIELD(type, name, offset, size) \
	"\tfield:" type " " name ";\toffset:" #offset ";\tsize:" #size ";\tsigned:0;\n"

static const char hypercall_text[] =
	"name: kvm_hypercall\nID: 114\n" COMMON FIELD("unsigned long", "nr", 8, 8)
		FIELD("unsigned long", "a0", 16, 8) FIELD("unsigned long", "a1", 24, 8)
			FIELD("unsigned long", "a2", 32, 8) FIELD("unsigned long", "a3", 40, 8);
/* As Linux 6.1 has them, and with other places. */
static const char entry_old[] =
	"name: kvm_entry\nID: 115\n" COMMON FIELD("unsigned int", "vcpu_id", 8, 4)
		FIELD("unsigned long", "rip", 16, 8);
static const char entry_new[] =
	"name: kvm_entry\nID: 115\n" COMMON FIELD("unsigned long", "rip", 8, 8)
		FIELD("unsigned int", "vcpu_id", 24, 4);
static const char exit_old[] =
	"name: kvm_exit\nID: 103\n" COMMON FIELD("unsigned int", "exit_reason", 8, 4)
		FIELD("unsigned long", "guest_rip", 16, 8) FIELD("u32", "isa", 24, 4)
			FIELD("unsigned int", "vcpu_id", 56, 4);
static const char exit_arm[] = "name: kvm_exit\nID: 103\n" COMMON FIELD("int", "ret", 8, 4)
	FIELD("unsigned int", "esr_ec", 12, 4);
static const char exit_odd[] =
	"name: kvm_exit\nID: 103\n" COMMON FIELD("char", "exit_reason[8]", 8, 8)
		FIELD("u32", "isa", 24, 4);

static int layout_of(const char *exit, const char *entry, struct ax_hypercall_layout *ret,
		     struct error *e)
{
	struct format formats[3];
	int r;

	assert_int_equal(format_parse(exit, &formats[0], NULL), 0);
	assert_int_equal(format_parse(hypercall_text, &formats[1], NULL), 0);
	assert_int_equal(format_parse(entry, &formats[2], NULL), 0);
	r = kvm_layout(&formats[0], &formats[1], &formats[2], ret, e);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		format_free(&formats[i]);
	return r;
}

static void test_layouts(void **state)
{
	struct ax_hypercall_layout l = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(layout_of(exit_old, entry_old, &l, &e), 0);
	assert_int_equal(l.reason.offset, 8);
	assert_int_equal(l.reason.size, 4);
	assert_int_equal(l.isa.offset, 24);
	assert_int_equal(l.vcpu.offset, 8);
	assert_int_equal(l.nr.offset, 8);
	assert_int_equal(l.nr.size, 8);
	assert_int_equal(l.args[3].offset, 40);
	assert_int_equal(layout_of(exit_old, entry_new, &l, &e), 0);
	assert_int_equal(l.vcpu.offset, 24);
	assert_int_equal(layout_of(exit_arm, entry_old, &l, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "kvm_exit has no field exit_reason"));
	assert_int_equal(layout_of(exit_odd, entry_old, &l, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "is no number"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_names),
#if defined(__x86_64__)
		cmocka_unit_test(test_exit_names_of_linux),
#endif
		cmocka_unit_test(test_call_names),
		cmocka_unit_test(test_call_numbers),
		cmocka_unit_test(test_guest_names),
		cmocka_unit_test(test_long_guest_name),
		cmocka_unit_test(test_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
