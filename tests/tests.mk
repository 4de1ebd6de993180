# SPDX-License-Identifier: GPL-2.0-or-later
# Tests. Every program and script speaks TAP; tests/run counts and ends with
# 'N passed, N failed, N skipped'.

UNIT_BIN := $(patsubst tests/unit/%.c,$(OUT)/tests/unit/%,$(wildcard tests/unit/test_*.c))
PROG_BIN := $(patsubst tests/prog/%.c,$(OUT)/tests/prog/%,$(wildcard tests/prog/test_*.c))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(OUT)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_OBJ := $(AGENT_SRC:%.c=$(OUT)/fuzz/%.o)
FUZZ_CFLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
FUZZ_SECONDS ?= 5

$(OUT)/tests/unit/%: tests/unit/%.c $(OUT)/libax-asan.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SANITIZE) -Iagent -Iinclude $< $(OUT)/libax-asan.a -lcmocka \
		$(LIBS_DYN) -o $@
$(OUT)/tests/prog/%: tests/prog/%.c $(OUT)/libax-asan.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SANITIZE) -Iagent -Iinclude $< $(OUT)/libax-asan.a -lcmocka \
		$(LIBS_DYN) -o $@

# libFuzzer comes with clang, so the fuzz targets are clang's whatever CC is.
$(OUT)/fuzz/agent/datapath.o: FUZZ_INC := -I$(OUT)/skel
$(OUT)/fuzz/agent/datapath.o: $(SKEL)
$(OUT)/fuzz/agent/%.o: agent/%.c
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(ALL_CFLAGS) $(FUZZ_CFLAGS) -Iinclude $(FUZZ_INC) -c $< -o $@
$(OUT)/libax-fuzz.a: $(FUZZ_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(OUT)/tests/fuzz/%: tests/fuzz/%.c $(OUT)/libax-fuzz.a
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(ALL_CFLAGS) -O1 -g -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -Iagent -Iinclude $< $(OUT)/libax-fuzz.a \
		$(LIBS_DYN) -o $@
-include $(UNIT_BIN:=.d) $(PROG_BIN:=.d) $(FUZZ_OBJ:.o=.d) $(FUZZ_BIN:=.d)

.PHONY: check-build fuzz-build
check-build: all $(UNIT_BIN) $(PROG_BIN) $(FUZZ_BIN)
fuzz-build: $(FUZZ_BIN)

check: deps-vm ## install what is missing, build, run all tests (as root)
	$(Q)$(MAKE) --no-print-directory check-build
	$(Q)$(MAKE) --no-print-directory STATIC=1 all
	$(Q)tests/run headers unit prog fuzz net vm
check-unit: deps-test $(UNIT_BIN) ## only the unit tests (no root needed)
	$(Q)tests/run unit
check-headers: ## every header compiles alone
	$(Q)tests/run headers
check-prog: deps-test all $(PROG_BIN) ## only the tests of single BPF programs
	$(Q)tests/run prog
check-net: deps-test all ## only the tests in namespaces with real programs
	$(Q)tests/run net
check-vm: deps-vm ## only the tests on other kernels, in qemu
	$(Q)$(MAKE) --no-print-directory STATIC=1 all
	$(Q)tests/run vm
fuzz: deps-test fuzz-build ## a longer run of every fuzz target (FUZZ_SECONDS=60)
	$(Q)FUZZ_SECONDS=$(or $(filter-out 5,$(FUZZ_SECONDS)),60) tests/run fuzz
