# SPDX-License-Identifier: GPL-2.0-or-later
# ax: everything is built into one directory, .output. `make help` lists the targets.
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.PHONY: all demo check check-quick check-unit check-prog check-net check-vm check-pair check-headers check-debian13 bench bench-quick fuzz help clean \
	deps deps-build deps-test deps-vm deps-bench deps-lint deps-arm64

VERSION   := 0.1
CC        ?= gcc
ifeq ($(origin CC),default)
CC        := gcc
endif
CLANG     ?= clang
BPFTOOL   ?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool) bpftool)
# STATIC=1 and other compilers get a directory of their own below the one output directory
OUT       := .output/$(notdir $(CC))$(if $(STATIC),-static)
V         ?= 0
Q         := $(if $(filter 1,$(V)),,@)
say        = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' '$(1)' '$(2)';)

include tools/build/cross.mk

WARN      := -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes -Wshadow
CFLAGS    ?= -O2 -g
ALL_CFLAGS = $(IN_SYSROOT) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -MMD -MP \
	     -fno-strict-aliasing
SANITIZE  := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	     -fno-omit-frame-pointer
# the skeletons of what ax carries, packed
SKELETON  := BPFTOOL=$(BPFTOOL) tools/build/skeleton.sh
BPF_CFLAGS := -target bpf -D__TARGET_ARCH_$(ARCH) -O2 -g -std=gnu11 -Wall -Wextra -Werror \
	     -Wno-missing-declarations -mcpu=v3 -MMD -MP \
	     -idirafter $(SYSROOT)/usr/include/$(TRIPLET)

comma     := ,
LIBS_DYN  := -lxdp -lbpf -ldw -lelf -lz -llzma -lbz2 -liberty -lmnl -lnftnl -lyaml -ljansson -lldns -lnettle -lzstd
ifneq ($(STATIC),)
# Debian's libmnl-dev has no static archive. Where none is installed the compiler echoes the bare
# name, and the archive is built from Debian's source package.
LIBMNL_A  := $(shell $(CC) $(IN_SYSROOT) -print-file-name=libmnl.a)
LIBMNL_A  := $(if $(filter /%,$(LIBMNL_A)),$(LIBMNL_A),$(OUT)/libmnl.a)
# Nor has libipt-dev one: without, a static ax reads no Intel PT (LIBIPT_A=FILE names one).
LIBIPT_A  ?= $(filter /%,$(shell $(CC) $(IN_SYSROOT) -print-file-name=libipt.a))
LIBIPT_FLAGS := $(if $(LIBIPT_A),-DAX_LIBIPT_LINKED)
endif
# `ax run` starts a process of this binary for every app, so what its start costs counts: with the
# libraries inside, it takes less than half of what loading eleven shared ones (OpenSSL's, for ldns,
# foremost) takes, and the binary needs none of them on the machine.
# elfutils 0.192 (Debian 13) leaves functions out of its archives (eu_tsearch and its kin), so there
# libdw and libelf stay shared. Asked when something is linked.
ELF_IS_WHOLE = $(shell echo 'void *elf_begin(void); int main(void) { return !elf_begin(); }' | \
	     $(CC) $(IN_SYSROOT) -x c - -o $(OUT)/elf-is-whole -Wl,-Bstatic -lelf -lz -Wl,-Bdynamic 2>/dev/null && echo yes)
LIBS       = -Wl,-Bstatic -lxdp -lbpf $(if $(ELF_IS_WHOLE),-ldw -lelf,-Wl$(comma)-Bdynamic -ldw -lelf -Wl$(comma)-Bstatic) \
	     -lz -llzma -lbz2 -liberty -lnftnl -lyaml -ljansson -lnettle -lzstd $(OUT)/libldns.a \
	     $(if $(STATIC),$(LIBMNL_A) $(LIBIPT_A),-Wl,-Bdynamic -lmnl)
# A static link warns of every function in glibc that may load a module of another glibc: ours look
# up users and groups, which agent/control/group.c makes safe; no library gets to call the others.
QUIET_LINK = $(if $(STATIC),2>$@.log || { cat $@.log >&2; rm -f $@.log; exit 1; }; \
	     grep -v -e 'in function' -e 'in statically linked applications' $@.log >&2; rm -f $@.log)
LDFLAGS_AX := $(if $(STATIC),-static -Wl$(comma)--gc-sections) -Wl$(comma)-z$(comma)relro

# agent/ and tools/ are rooms: folders below them (ARCHITECTURE.md, tools/rooms/table).
SOURCES    = $(sort $(shell find $(1) -name '*.c' $(2)))
AGENT_SRC := $(call SOURCES,agent,! -name '*.bpf.c')
ifneq ($(MACHINE),x86_64)
# Debian has libipt, which decodes Intel PT, for Intel's processors only.
AGENT_SRC := $(filter-out $(addprefix agent/probes/pt/,library.c packets.c flow.c),$(AGENT_SRC))
endif
TOOLS_SRC := tools/ax.c $(call SOURCES,tools/lib tools/cmd tools/completion tools/xdp tools/trace)
# What rules on interfaces need is loaded apart from it, once for each rule list.
FILTER_SRC := xdp/filter.bpf.c $(wildcard xdp/balance*.bpf.c) xdp/route.bpf.c xdp/challenge.bpf.c
ALONE_SRC := xdp/root.bpf.c xdp/failures.bpf.c xdp/tap.bpf.c xdp/foreign.bpf.c xdp/root_egress.bpf.c xdp/filter_egress.bpf.c
DISPATCHER_SRC := xdp/dispatcher.bpf.c
# Splicing is loaded apart, where connections may be spliced. The unit that defines its maps comes first.
SPLICE_SRC := sockops/sk_msg.bpf.c $(wildcard sockops/splice_*.bpf.c)
PROBES_SRC := $(call SOURCES,agent/probes,-name "*.bpf.c")
# the unit that defines the maps comes first: libbpf 1.1 does not resolve an extern map that is
# defined in a later object
BPF_SRC   := bpf/maps.bpf.c $(filter-out bpf/maps.bpf.c $(FILTER_SRC) $(ALONE_SRC) $(DISPATCHER_SRC) $(SPLICE_SRC),\
	     $(wildcard sockops/*.bpf.c xdp/*.bpf.c))
AGENT_OBJ := $(AGENT_SRC:%.c=$(OUT)/%.o)
TOOLS_OBJ := $(TOOLS_SRC:%.c=$(OUT)/%.o)
BPF_OBJ   := $(BPF_SRC:%.c=$(OUT)/%.o)
FILTER_OBJ := $(FILTER_SRC:%.c=$(OUT)/%.o)
ALONE_OBJ := $(ALONE_SRC:%.c=$(OUT)/%.o)
SPLICE_OBJ := $(SPLICE_SRC:%.c=$(OUT)/%.o)
PROBES_OBJ := $(PROBES_SRC:%.c=$(OUT)/%.o)
ASAN_OBJ  := $(AGENT_SRC:%.c=$(OUT)/asan/%.o)
SKEL      := $(OUT)/skel/dataplane.skel.h $(OUT)/skel/splicing.skel.h
XDP_SKEL  := $(OUT)/skel/filter.skel.h $(ALONE_SRC:xdp/%.bpf.c=$(OUT)/skel/%.skel.h)

$(AGENT_OBJ) $(TOOLS_OBJ) $(BPF_OBJ) $(FILTER_OBJ) $(ALONE_OBJ) $(SPLICE_OBJ) $(PROBES_OBJ) $(DISPATCHER_SRC:%.c=$(OUT)/%.o) $(OUT)/libldns.a: | $(SYSROOT)

all: $(OUT)/ax man ## build the ax binary
	$(if $(CROSS),,$(Q)ln -sfn $(notdir $(OUT))/ax .output/ax)

# --- BPF: one object per hook, linked into one, embedded through its skeleton ---
$(OUT)/%.bpf.o: %.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -Iinclude -Ibpf -c $< -o $@
# named, since agent/%.c below would fit them better
$(PROBES_OBJ): $(OUT)/%.bpf.o: %.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -Iinclude -Ibpf -Iagent/probes/watch -c $< -o $@
$(OUT)/dataplane.bpf.o: $(BPF_OBJ)
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $(filter %.o,$^)
$(OUT)/splicing.bpf.o: $(SPLICE_OBJ)
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $(filter %.o,$^)
$(SKEL): $(OUT)/skel/%.skel.h: $(OUT)/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(SKELETON) $< $* > $@
$(OUT)/filter.bpf.o: $(FILTER_OBJ)
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $(filter %.o,$^)
$(OUT)/skel/filter.skel.h: $(OUT)/filter.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(SKELETON) $< filter > $@
$(OUT)/skel/%.skel.h: $(OUT)/xdp/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(SKELETON) $< $* > $@
$(OUT)/skel/probes/%.skel.h: $(OUT)/agent/probes/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(SKELETON) $< $(*F) > $@

# Under the name by which libxdp looks for the one that it carries: the linker takes the first.
DISPATCHER_OBJ := $(OUT)/dispatcher/embedded.o
$(DISPATCHER_OBJ): $(DISPATCHER_SRC:%.c=$(OUT)/%.o)
	@mkdir -p $(@D)
	$(Q)cp $< $(@D)/xdp-dispatcher.o
	$(Q)cd $(@D) && $(LD) -r -b binary -z noexecstack -o $(@F) xdp-dispatcher.o

# --- C: who may include whom is enforced by what -I each directory gets ---
# Only the rooms that load programs see their skeletons.
OBJ_OF     = $(patsubst %.c,$(OUT)/%.o,$(1)) $(patsubst %.c,$(OUT)/asan/%.o,$(1)) $(patsubst %.c,$(OUT)/fuzz/%.o,$(1))
LOADER_SRC := $(filter agent/datapath/%,$(AGENT_SRC))
LOADER_OBJ := $(call OBJ_OF,$(LOADER_SRC))
$(LOADER_OBJ): ALL_CFLAGS += -I$(OUT)/skel
$(LOADER_OBJ): $(SKEL) $(XDP_SKEL)
PROBES_SKEL := $(PROBES_SRC:agent/probes/%.bpf.c=$(OUT)/skel/probes/%.skel.h)
$(SKEL) $(XDP_SKEL) $(PROBES_SKEL): tools/build/skeleton.sh
PROBES_LOADER_SRC := $(filter agent/probes/engine/% agent/probes/follow/% agent/probes/tally/% agent/probes/watch/%,$(AGENT_SRC))
PROBES_LOADER_OBJ := $(call OBJ_OF,$(PROBES_LOADER_SRC))
$(PROBES_LOADER_OBJ): ALL_CFLAGS += -I$(OUT)/skel/probes/engine -I$(OUT)/skel/probes/follow -I$(OUT)/skel/probes/tally -I$(OUT)/skel/probes/watch
$(PROBES_LOADER_OBJ): $(PROBES_SKEL)
$(call OBJ_OF,agent/probes/pt/library.c): ALL_CFLAGS += $(LIBIPT_FLAGS)
$(call OBJ_OF,agent/base/library.c): ALL_CFLAGS += $(if $(STATIC),-DAX_STATIC)
$(OUT)/agent/%.o: agent/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Iagent -Iinclude -c $< -o $@
$(OUT)/tools/%.o: tools/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -I. -Iagent -Iinclude -c $< -o $@
# The functions of shells that completions begin with stand in ax as texts.
$(OUT)/tools/completion/%.inc: tools/completion/%
	@mkdir -p $(@D)
	$(Q)sed 's/\\/&&/g; s/"/\\"/g; s/.*/"&\\n"/' $< > $@
$(patsubst %.c,$(OUT)/%.o,$(wildcard tools/completion/*.c)): ALL_CFLAGS += -I$(OUT)
$(foreach shell,bash zsh fish,$(eval $(OUT)/tools/completion/$(shell).o: $(OUT)/tools/completion/functions.$(shell).inc))
$(OUT)/asan/agent/%.o: agent/%.c
	$(call say,CC,$< (sanitized))
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SANITIZE) -Iagent -Iinclude -c $< -o $@

$(OUT)/libax.a: $(AGENT_OBJ)
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)
$(OUT)/libax-asan.a: $(ASAN_OBJ)
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)
$(OUT)/ax: $(TOOLS_OBJ) $(DISPATCHER_OBJ) $(OUT)/libax.a $(OUT)/libldns.a $(LIBMNL_A)
	$(call say,LD,$@)
	$(Q)$(CC) $(IN_SYSROOT) $(CFLAGS) $(LDFLAGS_AX) $(LDFLAGS) $(TOOLS_OBJ) $(DISPATCHER_OBJ) $(OUT)/libax.a $(LIBS) -o $@ \
		$(QUIET_LINK)

# ldns, whose references to OpenSSL (for DNSSEC, which ax has no use for) become weak: then 4 MB of
# libcrypto stay out. Only names that libcrypto or libssl define are touched.
LIB_FILE   = $(shell $(CC) $(IN_SYSROOT) -print-file-name=$(1))
$(OUT)/libldns.a: Makefile
	$(call say,LDNS,$@)
	@mkdir -p $(@D)
	$(Q)$(NM) -A --defined-only -g $(call LIB_FILE,libcrypto.a) $(call LIB_FILE,libssl.a) 2>/dev/null | \
		awk '{print $$NF}' | sort -u > $@.openssl
	$(Q)$(OBJCOPY) --weaken-symbols=$@.openssl $(call LIB_FILE,libldns.a) $@

$(OUT)/libmnl.a: tools/build/libmnl.sh
	$(call say,LIBMNL,$@)
	@mkdir -p $(@D)
	$(Q)tools/build/libmnl.sh $(CC) $(AR) $@

# What measures is a program of its own.
BENCH_BIN := $(patsubst tools/bench/%.c,$(OUT)/bench/%,\
	     $(filter-out %.bpf.c,$(wildcard tools/bench/*.c)))
$(OUT)/bench/%: tools/bench/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(BENCH_FLAGS) $< $(BENCH_LIBS) -o $@
$(OUT)/bench/xdpbench: $(OUT)/bench/xdpbench.skel.h
$(OUT)/bench/xdpbench: BENCH_FLAGS := -I$(OUT)/bench
$(OUT)/bench/xdpbench: BENCH_LIBS := -lbpf
$(OUT)/bench/%.bpf.o: tools/bench/%.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@
$(OUT)/bench/%.skel.h: $(OUT)/bench/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $* > $@
.PHONY: bench-build
bench-build: all $(BENCH_BIN)
-include $(BENCH_BIN:=.d)

# What is made with flags is made anew with others: each kind's stand in a file that changes when they do.
quote      = '$(subst ','\'',$(1))'
FLAGS_cc  := $(CC) $(ALL_CFLAGS)
FLAGS_bpf := $(CLANG) $(BPF_CFLAGS) $(BPFTOOL)
FLAGS_link := $(CC) $(CFLAGS) $(LDFLAGS_AX) $(LDFLAGS) $(LIBS)
$(OUT)/flags/%: always
	@mkdir -p $(@D) && printf '%s\n' $(call quote,$(FLAGS_$*)) | cmp -s - $@ || \
		printf '%s\n' $(call quote,$(FLAGS_$*)) > $@
$(AGENT_OBJ) $(TOOLS_OBJ) $(BENCH_BIN): $(OUT)/flags/cc
$(BPF_OBJ) $(FILTER_OBJ) $(ALONE_OBJ) $(SPLICE_OBJ) $(PROBES_OBJ) $(DISPATCHER_SRC:%.c=$(OUT)/%.o): $(OUT)/flags/bpf
$(OUT)/ax: $(OUT)/flags/link
# And what is put together of other parts is put together anew: no part of a file that went stays in it.
FLAGS_parts := $(AGENT_SRC) $(TOOLS_SRC) $(BPF_SRC) $(FILTER_SRC) $(SPLICE_SRC) $(wildcard tests/lib/*.c)
$(OUT)/ax $(OUT)/libax.a $(OUT)/libax-asan.a $(OUT)/dataplane.bpf.o $(OUT)/filter.bpf.o $(OUT)/splicing.bpf.o: $(OUT)/flags/parts

# Who names the version is built anew with the next one.
.PHONY: always
$(OUT)/version: always
	@mkdir -p $(@D) && echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' > $@
VERSION_OBJ := $(call OBJ_OF,$(shell grep -rl AX_VERSION agent tools --include='*.c'))
$(VERSION_OBJ): ALL_CFLAGS += -DAX_VERSION='"$(VERSION)"'
$(VERSION_OBJ): $(OUT)/version

.SECONDARY:
-include $(AGENT_OBJ:.o=.d) $(TOOLS_OBJ:.o=.d) $(BPF_OBJ:.o=.d) $(FILTER_OBJ:.o=.d) $(ALONE_OBJ:.o=.d) \
	$(SPLICE_OBJ:.o=.d) $(PROBES_OBJ:.o=.d) $(ASAN_OBJ:.o=.d)

include tests/tests.mk
include tools/build/lint.mk
include tools/build/install.mk

deps: deps-build ## install what building needs; deps-test, -vm, -bench, -lint, -arm64, -debian13: what those need too
deps-build: ; $(Q)tools/deps.sh build
deps-test: ; $(Q)tools/deps.sh build test
deps-vm: ; $(Q)tools/deps.sh build test vm
deps-lint: ; $(Q)tools/deps.sh build test lint
deps-arm64: ; $(Q)tools/deps.sh build arm64
deps-bench: ; $(Q)tools/deps.sh build test bench
deps-debian13: ; $(Q)tools/deps.sh debian13

demo: deps ## install what is missing, build, and show apps under virtual IPs and names
	$(Q)tools/deps.sh demo
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tools/demo.sh .output/ax
bench: deps-bench ## measure ax against what a user would pick instead, as ratios
	$(Q)$(MAKE) --no-print-directory bench-build
	$(Q)tools/bench/run.sh .output/ax
bench-quick: deps-bench ## its headlines alone, in two minutes
	$(Q)$(MAKE) --no-print-directory bench-build
	$(Q)QUICK=1 tools/bench/run.sh .output/ax

clean: ## remove everything that was built
	rm -rf .output
help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
