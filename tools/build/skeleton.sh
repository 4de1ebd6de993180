#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: BPFTOOL=... tools/build/skeleton.sh OBJECT NAME >HEADER
# bpftool's skeleton of a BPF object, but without what is for debuggers, half of most objects, and
# with the object's bytes packed (agent/base/packed.h).
set -euo pipefail
object=$1 name=$2 bpftool=${BPFTOOL:-bpftool}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
body=$dir/body carried=$dir/$name.o

"$bpftool" gen object "$carried" "$object"
{
	printf 'static inline const void *%s__elf_bytes(size_t *sz)\n{\n' "$name"
	printf '\tstatic const unsigned char packed[] = {\n'
	zstd -q -19 -c "$carried" | od -An -v -tu1 | sed 's/  */,/g; s/^,//; s/$/,/'
	printf '\t};\n\treturn unpacked(packed, sizeof(packed), sz);\n}\n'
} >"$body"
start="^static inline const void \\*${name}__elf_bytes(size_t \\*sz)\$"
skeleton=$("$bpftool" gen skeleton "$carried" name "$name" |
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
