# SPDX-License-Identifier: GPL-2.0-or-later
# What `make install` puts where, and the manual pages, which are told the version when they are built.

DESTDIR   ?=
PREFIX    ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR   ?= /lib/systemd/system

# tools/share/NAME.SECTION: every page that stands there.
MAN       := $(patsubst tools/share/%,$(OUT)/man/%,$(wildcard tools/share/*.[1578]))
$(OUT)/man/%: tools/share/% $(OUT)/version
	@mkdir -p $(@D)
	$(Q)sed 's|@VERSION@|$(VERSION)|' $< > $@

# The page of what splicing changes has that out of what the suite of socket behaviours kept.
SPLICE_KEPT := $(shell printf '%s\n' tests/splice/expected/*.tsv | sort -V)
$(OUT)/splice-table.roff: tools/build/splice_table.awk $(SPLICE_KEPT)
	@mkdir -p $(@D)
	$(Q)LC_ALL=C awk -f $^ > $@
$(OUT)/man/ax-splice.7: tools/share/ax-splice.7 $(OUT)/splice-table.roff $(OUT)/version
	@mkdir -p $(@D)
	$(Q)sed -e 's|@VERSION@|$(VERSION)|' -e '/^@TABLE@$$/{r $(OUT)/splice-table.roff' -e 'd}' $< > $@

.PHONY: man install
man: $(MAN) ## the manual's pages, in .output/gcc/man

install: all ## install ax, its manual, unit, completions and example config (DESTDIR, PREFIX)
	install -D -m 0755 $(OUT)/ax $(DESTDIR)$(PREFIX)/bin/ax
	for page in $(MAN); do \
		install -D -m 0644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; \
	done
	$(OUT)/ax --version >/dev/null 2>&1 || { echo "no completions: ax does not run here"; exit 0; }; \
	for to in bash:bash-completion/completions/ax zsh:zsh/vendor-completions/_ax \
		fish:fish/vendor_completions.d/ax.fish; do \
		install -d $(DESTDIR)$(PREFIX)/share/$$(dirname $${to#*:}) && \
		$(OUT)/ax completion $${to%%:*} > $(DESTDIR)$(PREFIX)/share/$${to#*:} || exit 1; \
	done
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|@BINDIR@|$(PREFIX)/bin|' tools/share/ax-agent.service > $(DESTDIR)$(UNITDIR)/ax-agent.service
	[ -e $(DESTDIR)$(SYSCONFDIR)/ax/ax.yaml ] || \
		install -D -m 0644 tools/share/ax.yaml $(DESTDIR)$(SYSCONFDIR)/ax/ax.yaml
