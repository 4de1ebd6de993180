# SPDX-License-Identifier: GPL-2.0-or-later
# The form of what is written: clang-format, clang-tidy, shellcheck, codespell. What they ask for stands in
# .clang-format, .clang-tidy, .shellcheckrc and .codespellrc.

.PHONY: fmt fmt-check lint lint-c lint-sh lint-words
FORMATTED  = $(shell find include agent bpf tools sockops xdp tests -name '*.[ch]')
fmt: ## format all C
	$(Q)clang-format -i $(FORMATTED)
fmt-check: need-lint ## is all C formatted?
	$(Q)clang-format --dry-run -Werror $(FORMATTED)

lint: need-lint ## what clang-tidy, shellcheck and codespell find
	$(Q)$(SUBMAKE) all $(OUT)/bench/xdpbench.skel.h $(OUT)/tests/splice/splice.skel.h
	$(Q)$(SUBMAKE) lint-c lint-sh lint-words

# A file is looked at again when it, or a header, has changed. The analyzer looks at each function by
# itself (mode=shallow): what it finds beyond that is not worth the ten times as long.
LINT_C    := $(AGENT_SRC) $(TOOLS_SRC) $(call SOURCES,tests tools/bench,! -name '*.bpf.c' ! -path 'tests/fuzz/corpus/*')
LINT_INC  := -I. -Iagent -Iinclude -Ibpf -I$(OUT) -I$(OUT)/skel -I$(OUT)/skel/probes/engine -I$(OUT)/skel/probes/follow -I$(OUT)/skel/probes/tally -I$(OUT)/skel/probes/watch \
	     -I$(OUT)/bench -I$(OUT)/tests/splice
LINT_OK   := $(LINT_C:%.c=$(OUT)/lint/%.ok)
lint-c: $(LINT_OK)
$(LINT_OK): $(OUT)/lint/%.ok: %.c .clang-tidy \
		$(shell find include agent tools tests -name '*.h')
	$(call say,TIDY,$<)
	@mkdir -p $(@D)
	$(Q)clang-tidy --quiet $< -- -std=gnu11 -D_GNU_SOURCE -DAX_VERSION='""' $(LINT_INC) \
		-Xclang -analyzer-config -Xclang mode=shallow 2>$@.log || { cat $@.log >&2; exit 1; }
	$(Q)touch $@

# A script is looked at with what it sources, which takes the longer part of its second: so each has a file of
# its own here as in lint-c, too. Inside the VM it is busybox's shell, of which dash is the nearest that
# shellcheck knows. (tools/bench/ is parts of one script.)
LINT_VM   := tests/vm/init $(wildcard tests/vm/*.sh)
LINT_BASH := .ci/run tests/run $(shell find tests tools -name '*.sh' ! -path 'tests/vm/*' ! -path 'tools/bench/*')
LINT_SOURCED := $(filter-out tests/net/test_%,$(filter tests/net/%.sh,$(LINT_BASH)))
LINT_SH_OK := $(patsubst %,$(OUT)/lint/%.ok,$(LINT_BASH) $(LINT_VM) tools/bench/run.sh)
lint-sh: $(LINT_SH_OK)
$(LINT_VM:%=$(OUT)/lint/%.ok): SHELL_IS := dash
$(LINT_VM:%=$(OUT)/lint/%.ok): $(LINT_VM)
$(OUT)/lint/tools/bench/run.sh.ok: SHELL_IS := bash --check-sourced
$(OUT)/lint/tools/bench/run.sh.ok: $(wildcard tools/bench/*.sh)
$(LINT_SH_OK): SHELL_IS ?= bash
$(LINT_SH_OK): $(OUT)/lint/%.ok: % .shellcheckrc $(LINT_SOURCED)
	$(call say,SHELL,$<)
	@mkdir -p $(@D)
	$(Q)shellcheck -s $(SHELL_IS) $<
	$(Q)touch $@
lint-words:
	$(call say,WORDS,all)
	$(Q)codespell $(shell git ls-files 2>/dev/null || echo .)
