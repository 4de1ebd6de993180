#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: BPFTOOL=... tools/build/skeleton.sh OBJECT NAME >HEADER
# bpftool's skeleton of a BPF object, but with the object's bytes packed (agent/base/packed.h).
set -euo pipefail
object=$1 name=$2
body=$(mktemp)
trap 'rm -f "$body"' EXIT

{
	printf 'static inline const void *%s__elf_bytes(size_t *sz)\n{\n' "$name"
	printf '\tstatic const unsigned char packed[] = {\n'
	zstd -q -19 -c "$object" | od -An -v -tu1 | sed 's/  */,/g; s/^,//; s/$/,/'
	printf '\t};\n\treturn unpacked(packed, sizeof(packed), sz);\n}\n'
} >"$body"
start="^static inline const void \\*${name}__elf_bytes(size_t \\*sz)\$"
skeleton=$("${BPFTOOL:-bpftool}" gen skeleton "$object" name "$name" |
	sed "s,^#include <bpf/libbpf.h>$,&\n#include \"base/packed.h\",
		s/^\terr = bpf_object__open_skeleton(.*;$/&\n\tunpacked_free();/
		/$start/,/^}/{ /^}/r $body
		d; }")
case $skeleton in
*'#include "base/packed.h"'*'unpacked_free()'*'unpacked(packed, '*) printf '%s\n' "$skeleton" ;;
*)
	echo "skeleton.sh: this bpftool writes skeletons otherwise: $object cannot be packed" >&2
	exit 1
	;;
esac
