# SPDX-License-Identifier: GPL-2.0-or-later
# Compilers for another architecture: `make CC=aarch64-linux-gnu-gcc ARCH=arm64`. The compiler's prefix
# names its binutils too; Debian's libraries for it are unpacked below .output, not installed.

CROSS     := $(patsubst %-gcc,%-,$(filter-out $(shell uname -m)-%,$(filter %-linux-gnu-gcc,$(notdir $(CC)))))
TRIPLET   := $(if $(CROSS),$(CROSS:%-=%),$(shell uname -m)-linux-gnu)
MACHINE   := $(firstword $(subst -, ,$(TRIPLET)))
# As the kernel names it for BPF, and as Debian does.
ARCH      := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(MACHINE)))
DEB_ARCH  := $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(MACHINE)))
OBJCOPY   ?= $(CROSS)objcopy
NM        ?= $(CROSS)nm
READELF   ?= $(CROSS)readelf
ifeq ($(origin LD),default)
LD        := $(CROSS)ld
endif
ifeq ($(origin AR),default)
AR        := $(CROSS)ar
endif

ifneq ($(CROSS),)
SYSROOT   ?= .output/sysroot/$(DEB_ARCH)
IN_SYSROOT := --sysroot=$(SYSROOT)
$(SYSROOT):
	$(call say,SYSROOT,$@)
	@mkdir -p $(@D)
	$(Q)tools/build/sysroot.sh $(DEB_ARCH) $@
endif

.PHONY: check-arm64
check-arm64: need-arm64 ## ax for arm64 with Debian's cross compiler: it builds, and starts in qemu
	$(Q)$(SUBMAKE) CC=aarch64-linux-gnu-gcc ARCH=arm64 all
	$(Q)aarch64-linux-gnu-readelf -h .output/aarch64-linux-gnu-gcc/ax | grep -q 'Machine: *AArch64'
	$(Q)qemu-aarch64 -L .output/sysroot/arm64 .output/aarch64-linux-gnu-gcc/ax --version
