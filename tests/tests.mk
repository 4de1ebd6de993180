# SPDX-License-Identifier: GPL-2.0-or-later
# Tests. Every program and script speaks TAP; tests/run counts and ends with
# 'N passed, N failed, N skipped'.

UNIT_BIN := $(patsubst tests/unit/%.c,$(OUT)/tests/unit/%,$(wildcard tests/unit/test_*.c))
PROG_BIN := $(patsubst tests/prog/%.c,$(OUT)/tests/prog/%,$(wildcard tests/prog/test_*.c))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(OUT)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_OBJ := $(AGENT_SRC:%.c=$(OUT)/fuzz/%.o)
FUZZ_CFLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
FUZZ_SECONDS ?= 3
FLAGS_asan := $(FLAGS_cc) $(SANITIZE) $(LIBS_DYN)
FLAGS_fuzz := $(CLANG) $(ALL_CFLAGS) $(FUZZ_CFLAGS) $(LIBS_DYN)

# What several tests share. The agent and this are there in three ways: with sanitizers, without, and
# as fuzz targets need them.
TESTLIB   := $(patsubst tests/lib/%.c,%.o,$(wildcard tests/lib/*.c))
TEST_INC  := -I. -Iagent -Iinclude -Ibpf
$(OUT)/asan/tests/lib/%.o: tests/lib/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SANITIZE) $(TEST_INC) -c $< -o $@
$(OUT)/tests/lib/%.o: tests/lib/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(TEST_INC) -c $< -o $@
$(OUT)/fuzz/tests/lib/%.o: tests/lib/%.c
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(ALL_CFLAGS) $(FUZZ_CFLAGS) $(TEST_INC) -c $< -o $@
$(OUT)/libtests-asan.a: $(addprefix $(OUT)/asan/tests/lib/,$(TESTLIB))
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)
$(OUT)/libtests.a: $(addprefix $(OUT)/tests/lib/,$(TESTLIB))
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)
$(OUT)/libtests-fuzz.a: $(addprefix $(OUT)/fuzz/tests/lib/,$(TESTLIB))
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)

# A line '// build: unsanitized' in a test's file says that sanitizers would take it too long.
PLAIN_BIN := $(patsubst tests/%.c,$(OUT)/tests/%,\
	     $(shell grep -lx '// build: unsanitized' tests/unit/test_*.c tests/prog/test_*.c))
LINK_TEST  = $(TEST_INC) $< $(filter %.a,$^) -lcmocka $(LIBS_DYN) -o $@
$(filter-out $(PLAIN_BIN),$(UNIT_BIN) $(PROG_BIN)): $(OUT)/tests/%: tests/%.c $(OUT)/libtests-asan.a \
		$(OUT)/libax-asan.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SANITIZE) $(LINK_TEST)
$(PLAIN_BIN): $(OUT)/tests/%: tests/%.c $(OUT)/libtests.a $(OUT)/libax.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -O2 $(LINK_TEST)

# libFuzzer comes with clang, so the fuzz targets are clang's whatever CC is.
$(OUT)/fuzz/agent/%.o: agent/%.c
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(ALL_CFLAGS) $(FUZZ_CFLAGS) -Iagent -Iinclude -c $< -o $@
$(OUT)/libax-fuzz.a: $(FUZZ_OBJ)
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)
$(OUT)/tests/fuzz/%: tests/fuzz/%.c $(OUT)/libtests-fuzz.a $(OUT)/libax-fuzz.a
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(ALL_CFLAGS) -O1 -g -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined $(TEST_INC) $< $(filter %.a,$^) $(LIBS_DYN) -o $@
$(UNIT_BIN) $(PROG_BIN): $(OUT)/flags/asan
$(ASAN_OBJ) $(addprefix $(OUT)/asan/tests/lib/,$(TESTLIB)): $(OUT)/flags/asan
$(addprefix $(OUT)/tests/lib/,$(TESTLIB)): $(OUT)/flags/cc
$(FUZZ_OBJ) $(FUZZ_BIN) $(addprefix $(OUT)/fuzz/tests/lib/,$(TESTLIB)): $(OUT)/flags/fuzz
$(OUT)/libax-fuzz.a $(OUT)/libtests.a $(OUT)/libtests-asan.a $(OUT)/libtests-fuzz.a: $(OUT)/flags/parts
-include $(UNIT_BIN:=.d) $(PROG_BIN:=.d) $(FUZZ_OBJ:.o=.d) $(FUZZ_BIN:=.d) \
	$(addprefix $(OUT)/asan/tests/lib/,$(TESTLIB:.o=.d)) $(addprefix $(OUT)/fuzz/tests/lib/,$(TESTLIB:.o=.d)) \
	$(addprefix $(OUT)/tests/lib/,$(TESTLIB:.o=.d))

# The programs inside the VM have no libraries beside them, and musl's own resolver.
VM_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARN) -Os -static
FLAGS_vm  := $(VM_CFLAGS)
VM_BIN := $(patsubst tests/vm/src/%.c,.output/vm/bin/%,$(filter-out %.bpf.c,$(wildcard tests/vm/src/*.c)))
VM_BPF := $(patsubst tests/vm/src/%.c,.output/vm/bin/%.o,$(wildcard tests/vm/src/*.bpf.c))
$(VM_BIN): $(OUT)/flags/vm
# What has the name of a program of net/ is that one, compiled for the VM.
VM_OF_NET := $(filter $(patsubst tests/net/src/%.c,.output/vm/bin/%,$(wildcard tests/net/src/*.c)),$(VM_BIN))
$(VM_OF_NET): .output/vm/bin/%: tests/net/src/%.c
# A line '// flags: ...' in a program's file is for the compiler; with a line '// build: dynamic' it has
# the libraries that ax has there.
.output/vm/bin/%: tests/vm/src/%.c
	$(call say,MUSL,$@)
	@mkdir -p $(@D)
	$(Q)$(if $(shell grep -lx '// build: dynamic' $<),$(CC) $(filter-out -static,$(VM_CFLAGS)),musl-gcc $(VM_CFLAGS)) $(shell sed -n 's|^// flags: ||p' $<) \
		-idirafter /usr/include -idirafter /usr/include/$(shell uname -m)-linux-gnu $< -o $@

# Programs of somebody else, that are loaded there.
$(VM_BPF): $(OUT)/flags/bpf
.output/vm/bin/%.bpf.o: tests/vm/src/%.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) $(shell sed -n 's|^// flags: ||p' $<) -c $< -o $@

# The suite of socket behaviours has BPF programs of its own, and the very objects of the agent's gate.
# It is static where libelf allows it, so
# that it runs on other kernels too.
SUITE     := $(OUT)/tests/splice/suite
SUITE_OBJ := $(patsubst %.c,$(OUT)/%.o,$(filter-out %.bpf.c,$(wildcard tests/splice/*.c)))
GATE_OBJ  := $(patsubst %.c,$(OUT)/%.o,$(wildcard agent/splice/behaviour*.c))
$(OUT)/tests/splice/splice.skel.h: $(OUT)/tests/splice/splice.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name splice > $@
$(SUITE_OBJ): $(OUT)/tests/splice/%.o: tests/splice/%.c $(OUT)/tests/splice/splice.skel.h
	$(call say,TEST,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -Iagent -I$(OUT)/tests/splice -c $< -o $@
$(SUITE_OBJ): $(OUT)/flags/cc
$(OUT)/tests/splice/splice.bpf.o: $(OUT)/flags/bpf
$(SUITE): $(SUITE_OBJ) $(GATE_OBJ) $(OUT)/flags/link
	$(Q)$(CC) $(CFLAGS) $(filter %.o,$^) $(if $(ELF_IS_WHOLE),-static) -luring -lbpf -lelf -lz -o $@
-include $(SUITE_OBJ:.o=.d) $(OUT)/tests/splice/splice.bpf.d

# One job for each processor, unless make was told otherwise.
PARALLEL := $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
SUBMAKE   = $(MAKE) --no-print-directory $(PARALLEL)
RUN       = OUT=$(OUT) CC=$(CC) CLANG=$(CLANG) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run

.PHONY: check-build fuzz-build vm-build
check-build: all $(UNIT_BIN) $(PROG_BIN) $(FUZZ_BIN) $(SUITE)
fuzz-build: $(FUZZ_BIN)
vm-build: all $(VM_BIN) $(VM_BPF) $(SUITE) $(OUT)/tests/prog/test_splice_guards

# Only check installs what is missing; the others say what it is.
.PHONY: need need-test need-vm need-lint need-arm64
need: ; $(Q)tools/deps.sh --check build
need-test: ; $(Q)tools/deps.sh --check build test
need-vm: ; $(Q)tools/deps.sh --check build test vm
need-lint: ; $(Q)tools/deps.sh --check build test lint
need-arm64: ; $(Q)tools/deps.sh --check build arm64

check: deps-vm ## install what is missing, build, run all tests (as root)
	@mkdir -p $(OUT)
	$(Q)tests/run --files > $(OUT)/files
	$(Q)$(SUBMAKE) check-build
	$(Q)$(SUBMAKE) vm-build
	$(Q)FILES=$(OUT)/files $(RUN) headers unit prog fuzz net vm
check-quick: need-test ## the tests to run after each change: some minutes, no other kernels (as root)
	$(Q)$(SUBMAKE) all $(UNIT_BIN) $(PROG_BIN)
	$(Q)QUICK=1 $(RUN) $(QUICK_GROUPS)
QUICK_GROUPS ?= headers unit prog net
check-unit: need-test ## only the unit tests (no root needed)
	$(Q)$(SUBMAKE) $(UNIT_BIN)
	$(Q)$(RUN) unit
check-headers: need ## every header compiles alone, and who includes and calls whom
	$(Q)$(SUBMAKE) all
	$(Q)$(RUN) headers
check-prog: need-test ## only the tests of single BPF programs
	$(Q)$(SUBMAKE) all $(PROG_BIN)
	$(Q)$(RUN) prog
check-net: need-test ## only the tests in namespaces with real programs
	$(Q)$(SUBMAKE) all $(SUITE)
	$(Q)$(RUN) net
check-vm: need-vm ## only the tests on other kernels, in qemu; all of them on both
	$(Q)$(SUBMAKE) vm-build
	$(Q)VM_ALL=1 $(RUN) vm
check-pair: need-vm ## only the test of two machines with different kernels in one cluster, in qemu
	$(Q)$(SUBMAKE) vm-build
	$(Q)$(RUN) pair
check-debian13: ## unit, prog and quick net tests, the demo, and Linux 6.1, with Debian 13's compilers and libraries (as root; make deps-debian13 first)
	$(Q)tools/build/debian13.sh
fuzz: need-test ## a longer run of every fuzz target (FUZZ_SECONDS=60)
	$(Q)$(SUBMAKE) fuzz-build
	$(Q)$(RUN) fuzz
fuzz: FUZZ_SECONDS := $(if $(filter file,$(origin FUZZ_SECONDS)),60,$(FUZZ_SECONDS))
