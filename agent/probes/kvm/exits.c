// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The numbers and names are those of Linux 6.18, with their prefixes taken off: of
 * arch/x86/include/uapi/asm/vmx.h (EXIT_REASON_..., numbered by Intel's manual, volume 3, appendix
 * C), of arch/x86/include/uapi/asm/svm.h (SVM_EXIT_..., numbered by AMD's manual, volume 2,
 * appendix C), and of include/uapi/linux/kvm_para.h (KVM_HC_...).
 */
#include "probes/kvm/exits.h"

struct named {
	uint32_t number;
	const char *name;
};

static const struct named vmx_exits[] = {
	{0, "EXCEPTION_NMI"},
	{1, "EXTERNAL_INTERRUPT"},
	{2, "TRIPLE_FAULT"},
	{3, "INIT_SIGNAL"},
	{4, "SIPI_SIGNAL"},
	{7, "INTERRUPT_WINDOW"},
	{8, "NMI_WINDOW"},
	{9, "TASK_SWITCH"},
	{10, "CPUID"},
	{12, "HLT"},
	{13, "INVD"},
	{14, "INVLPG"},
	{15, "RDPMC"},
	{16, "RDTSC"},
	{18, "VMCALL"},
	{19, "VMCLEAR"},
	{20, "VMLAUNCH"},
	{21, "VMPTRLD"},
	{22, "VMPTRST"},
	{23, "VMREAD"},
	{24, "VMRESUME"},
	{25, "VMWRITE"},
	{26, "VMOFF"},
	{27, "VMON"},
	{28, "CR_ACCESS"},
	{29, "DR_ACCESS"},
	{30, "IO_INSTRUCTION"},
	{31, "MSR_READ"},
	{32, "MSR_WRITE"},
	{33, "INVALID_STATE"},
	{34, "MSR_LOAD_FAIL"},
	{36, "MWAIT_INSTRUCTION"},
	{37, "MONITOR_TRAP_FLAG"},
	{39, "MONITOR_INSTRUCTION"},
	{40, "PAUSE_INSTRUCTION"},
	{41, "MCE_DURING_VMENTRY"},
	{43, "TPR_BELOW_THRESHOLD"},
	{44, "APIC_ACCESS"},
	{45, "EOI_INDUCED"},
	{46, "GDTR_IDTR"},
	{47, "LDTR_TR"},
	{48, "EPT_VIOLATION"},
	{49, "EPT_MISCONFIG"},
	{50, "INVEPT"},
	{51, "RDTSCP"},
	{52, "PREEMPTION_TIMER"},
	{53, "INVVPID"},
	{54, "WBINVD"},
	{55, "XSETBV"},
	{56, "APIC_WRITE"},
	{57, "RDRAND"},
	{58, "INVPCID"},
	{59, "VMFUNC"},
	{60, "ENCLS"},
	{61, "RDSEED"},
	{62, "PML_FULL"},
	{63, "XSAVES"},
	{64, "XRSTORS"},
	{67, "UMWAIT"},
	{68, "TPAUSE"},
	{74, "BUS_LOCK"},
	{75, "NOTIFY"},
	{77, "TDCALL"},
	{84, "MSR_READ_IMM"},
	{85, "MSR_WRITE_IMM"},
};

static const struct named svm_exits[] = {
	{0x0, "READ_CR0"},
	{0x2, "READ_CR2"},
	{0x3, "READ_CR3"},
	{0x4, "READ_CR4"},
	{0x8, "READ_CR8"},
	{0x10, "WRITE_CR0"},
	{0x12, "WRITE_CR2"},
	{0x13, "WRITE_CR3"},
	{0x14, "WRITE_CR4"},
	{0x18, "WRITE_CR8"},
	{0x20, "READ_DR0"},
	{0x21, "READ_DR1"},
	{0x22, "READ_DR2"},
	{0x23, "READ_DR3"},
	{0x24, "READ_DR4"},
	{0x25, "READ_DR5"},
	{0x26, "READ_DR6"},
	{0x27, "READ_DR7"},
	{0x30, "WRITE_DR0"},
	{0x31, "WRITE_DR1"},
	{0x32, "WRITE_DR2"},
	{0x33, "WRITE_DR3"},
	{0x34, "WRITE_DR4"},
	{0x35, "WRITE_DR5"},
	{0x36, "WRITE_DR6"},
	{0x37, "WRITE_DR7"},
	{0x60, "INTR"},
	{0x61, "NMI"},
	{0x62, "SMI"},
	{0x63, "INIT"},
	{0x64, "VINTR"},
	{0x65, "CR0_SEL_WRITE"},
	{0x66, "IDTR_READ"},
	{0x67, "GDTR_READ"},
	{0x68, "LDTR_READ"},
	{0x69, "TR_READ"},
	{0x6a, "IDTR_WRITE"},
	{0x6b, "GDTR_WRITE"},
	{0x6c, "LDTR_WRITE"},
	{0x6d, "TR_WRITE"},
	{0x6e, "RDTSC"},
	{0x6f, "RDPMC"},
	{0x70, "PUSHF"},
	{0x71, "POPF"},
	{0x72, "CPUID"},
	{0x73, "RSM"},
	{0x74, "IRET"},
	{0x75, "SWINT"},
	{0x76, "INVD"},
	{0x77, "PAUSE"},
	{0x78, "HLT"},
	{0x79, "INVLPG"},
	{0x7a, "INVLPGA"},
	{0x7b, "IOIO"},
	{0x7c, "MSR"},
	{0x7d, "TASK_SWITCH"},
	{0x7e, "FERR_FREEZE"},
	{0x7f, "SHUTDOWN"},
	{0x80, "VMRUN"},
	{0x81, "VMMCALL"},
	{0x82, "VMLOAD"},
	{0x83, "VMSAVE"},
	{0x84, "STGI"},
	{0x85, "CLGI"},
	{0x86, "SKINIT"},
	{0x87, "RDTSCP"},
	{0x88, "ICEBP"},
	{0x89, "WBINVD"},
	{0x8a, "MONITOR"},
	{0x8b, "MWAIT"},
	{0x8c, "MWAIT_COND"},
	{0x8d, "XSETBV"},
	{0x8e, "RDPRU"},
	{0x8f, "EFER_WRITE_TRAP"},
	{0x90, "CR0_WRITE_TRAP"},
	{0x91, "CR1_WRITE_TRAP"},
	{0x92, "CR2_WRITE_TRAP"},
	{0x93, "CR3_WRITE_TRAP"},
	{0x94, "CR4_WRITE_TRAP"},
	{0x95, "CR5_WRITE_TRAP"},
	{0x96, "CR6_WRITE_TRAP"},
	{0x97, "CR7_WRITE_TRAP"},
	{0x98, "CR8_WRITE_TRAP"},
	{0x99, "CR9_WRITE_TRAP"},
	{0x9a, "CR10_WRITE_TRAP"},
	{0x9b, "CR11_WRITE_TRAP"},
	{0x9c, "CR12_WRITE_TRAP"},
	{0x9d, "CR13_WRITE_TRAP"},
	{0x9e, "CR14_WRITE_TRAP"},
	{0x9f, "CR15_WRITE_TRAP"},
	{0xa2, "INVPCID"},
	{0xa5, "BUS_LOCK"},
	{0xa6, "IDLE_HLT"},
	{0x400, "NPF"},
	{0x401, "AVIC_INCOMPLETE_IPI"},
	{0x402, "AVIC_UNACCELERATED_ACCESS"},
	{0x403, "VMGEXIT"},
	{0xf0000000, "SW"},
	{0x80000001, "VMGEXIT_MMIO_READ"},
	{0x80000002, "VMGEXIT_MMIO_WRITE"},
	{0x80000003, "VMGEXIT_NMI_COMPLETE"},
	{0x80000004, "VMGEXIT_AP_HLT_LOOP"},
	{0x80000005, "VMGEXIT_AP_JUMP_TABLE"},
	{0x80000010, "VMGEXIT_PSC"},
	{0x80000011, "VMGEXIT_GUEST_REQUEST"},
	{0x80000012, "VMGEXIT_EXT_GUEST_REQUEST"},
	{0x80000013, "VMGEXIT_AP_CREATION"},
	{0x8000fffd, "VMGEXIT_HV_FEATURES"},
	{0x8000fffe, "VMGEXIT_TERM_REQUEST"},
	{0x8000ffff, "VMGEXIT_UNSUPPORTED_EVENT"},
};
/* 0x40 to 0x5f on AMD are exceptions, by their vectors. */
#define SVM_EXCEPTIONS	   0x40
#define SVM_EXCEPTIONS_END 0x60
static const char *const exceptions[SVM_EXCEPTIONS_END - SVM_EXCEPTIONS] = {
	"DE", "DB", "NMI", "BP", "OF", "BR", "UD", "NM", "DF", "CSO", "TS",
	"NP", "SS", "GP",  "PF", NULL, "MF", "AC", "MC", "XF", "VE",  "CP",
};

/* Those for x86; the others' numbers are never used there. */
static const struct named calls[] = {
	{1, "VAPIC_POLL_IRQ"}, {2, "MMU_OP"},	    {5, "KICK_CPU"},	   {9, "CLOCK_PAIRING"},
	{10, "SEND_IPI"},      {11, "SCHED_YIELD"}, {12, "MAP_GPA_RANGE"},
};

const char *kvm_isa_name(uint32_t isa)
{
	return isa == KVM_ISA_VMX ? "vmx" : isa == KVM_ISA_SVM ? "svm" : "unknown";
}

static const char *find(const struct named *v, size_t n, uint32_t number)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].number == number)
			return v[i].name;
	return NULL;
}

/* Intel's lowest 16 bits are the reason; of the others, two say under which circumstances. */
static void vmx_name(uint32_t reason, char buf[KVM_EXIT_NAME])
{
	const char *name = find(vmx_exits, ARRAY_SIZE(vmx_exits), reason & 0xffff);
	char number[16];

	snprintf(number, sizeof(number), "%u", reason & 0xffff);
	snprintf(buf, KVM_EXIT_NAME, "%s%s%s", name ? name : number,
		 reason & UINT32_C(0x80000000) ? "|FAILED_VMENTRY" : "",
		 reason & UINT32_C(0x08000000) ? "|SGX_ENCLAVE_MODE" : "");
}

static void svm_name(uint32_t reason, char buf[KVM_EXIT_NAME])
{
	const char *name = find(svm_exits, ARRAY_SIZE(svm_exits), reason);
	bool exception = reason >= SVM_EXCEPTIONS && reason < SVM_EXCEPTIONS_END;

	if (reason == UINT32_MAX)
		name = "ERR";
	if (exception && exceptions[reason - SVM_EXCEPTIONS])
		snprintf(buf, KVM_EXIT_NAME, "EXCP_%s", exceptions[reason - SVM_EXCEPTIONS]);
	else if (name)
		snprintf(buf, KVM_EXIT_NAME, "%s", name);
	else
		snprintf(buf, KVM_EXIT_NAME, "0x%x", reason);
}

const char *kvm_exit_name(uint32_t isa, uint32_t reason, char buf[KVM_EXIT_NAME])
{
	if (isa == KVM_ISA_VMX)
		vmx_name(reason, buf);
	else if (isa == KVM_ISA_SVM)
		svm_name(reason, buf);
	else
		snprintf(buf, KVM_EXIT_NAME, "0x%x", reason);
	return buf;
}

const char *kvm_call_name(uint64_t nr)
{
	return nr <= UINT32_MAX ? find(calls, ARRAY_SIZE(calls), (uint32_t)nr) : NULL;
}

const char *kvm_call_nth(size_t i)
{
	return i < ARRAY_SIZE(calls) ? calls[i].name : NULL;
}

int kvm_call_parse(const char *text, uint64_t *ret)
{
	char *end;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (!strcasecmp(text, calls[i].name)) {
			*ret = calls[i].number;
			return 0;
		}
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, starts_with(text, "0x") ? 16 : 10);
	return errno || *end ? -EINVAL : 0;
}
