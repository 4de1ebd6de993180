#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: static-libmnl.sh DIR
# Makes DIR/libmnl.a: a copy of the installed one, or, as Debian has none, built with $CC from
# Debian's source package. That is downloaded from where the machine's own apt sources point,
# through a private list and private state, so that the machine's apt is not changed. LIBMNL_TAR
# names a source archive (libmnl_*.orig.tar.*) to be used instead, for machines without a network.
set -euo pipefail
export LC_ALL=C

die()
{
	echo "static-libmnl.sh: $*" >&2
	exit 1
}

[ $# -eq 1 ] || die "usage: static-libmnl.sh DIR"
CC=${CC:-gcc}
AR=${AR:-ar}
mkdir -p "$1"
out=$(cd "$1" && pwd)/libmnl.a
[ "$out" -nt "$0" ] && exit 0

# Without the file the compiler echoes its bare name.
installed=$($CC -print-file-name=libmnl.a)
if [ "$installed" != libmnl.a ]; then
	cp -f "$installed" "$out"
	touch "$out"
	exit 0
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# Which suites are the distribution's own; backports would only be slower to fetch.
# shellcheck source=/dev/null
. /etc/os-release
is_own_suite()
{
	case $1 in
	*-backports*) return 1 ;;
	"${VERSION_CODENAME:-}" | "${VERSION_CODENAME:-}"[-/]*) return 0 ;;
	oldstable | oldstable[-/]* | stable | stable[-/]* | testing | testing[-/]* | sid | unstable)
		return 0 ;;
	esac
	return 1
}

# sources.list(5), one line each: deb [option=value ...] uri suite component ...
from_list()
{
	sed -e 's/#.*//' "$1" | while read -r type rest; do
		[ "$type" = deb ] || [ "$type" = deb-src ] || continue
		options=
		case $rest in
		\[*)
			options=${rest#\[}
			options=$(sed -e 's/arch[+-]*=[^ ]*//g' <<<"${options%%\]*}")
			rest=${rest#*\]}
			;;
		esac
		set -f
		# shellcheck disable=SC2086 # to be split into words
		set -- $rest
		[ $# -ge 3 ] || continue
		is_own_suite "$2" || continue
		uri=$1 suite=$2
		shift 2
		case " $* $uri " in
		*" cdrom:"*) continue ;;
		*" main "*) echo "deb-src [ $options ] $uri $suite main" | sed -e 's/\[ *\]//' ;;
		esac
	done
}

# The deb822 style: paragraphs of fields, which may go on in indented lines. Prints those that
# stay, with all their suites: which of those stay is for the loop to say.
from_deb822()
{
	awk '
	function flush_paragraph() {
		if (types ~ / deb(-src)? / && components ~ / main / && enabled !~ /no|false|0|off/)
			print "Types: deb-src\nComponents: main\nSuites:" suites "\n" other
		types = components = suites = enabled = other = field = ""
	}
	/^#/ { next }
	/^[ \t\r]*$/ { flush_paragraph(); next }
	/^[^ \t:]+:/ {
		field = tolower(substr($0, 1, index($0, ":") - 1))
		value = substr($0, index($0, ":") + 1)
	}
	/^[ \t]/ { value = $0 }
	field == "types" { types = types " " value " "; next }
	field == "components" { components = components " " value " "; next }
	field == "suites" { suites = suites " " value; next }
	field == "enabled" { enabled = tolower(value); next }
	field == "architectures" { next }
	{ other = other $0 "\n" }
	END { flush_paragraph() }' "$1" | while IFS= read -r line; do
		case $line in
		Suites:*)
			chosen=
			for suite in ${line#Suites:}; do
				! is_own_suite "$suite" || chosen="$chosen $suite"
			done
			# a paragraph without a suite of the distribution is switched off
			if [ -n "$chosen" ]; then
				echo "Suites:$chosen"
			else
				printf 'Suites: none\nEnabled: no\n'
			fi
			;;
		*) printf '%s\n' "$line" ;;
		esac
	done
}

download()
{
	command -v apt-get >/dev/null ||
		die "no libmnl.a is installed and this is not a Debian system; install libmnl's" \
			"static library, or name its source archive in LIBMNL_TAR"
	mkdir -p "$tmp/parts" "$tmp/lists/partial" "$tmp/cache/archives/partial" "$tmp/source"
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ ! -r "$f" ] || from_list "$f" >>"$tmp/sources.list"
	done
	for f in /etc/apt/sources.list.d/*.sources; do
		[ ! -r "$f" ] || from_deb822 "$f" >"$tmp/parts/${f##*/}"
	done
	grep -qs '^deb-src' "$tmp/sources.list" || grep -qs '^Types' "$tmp"/parts/*.sources ||
		die "apt's sources name no 'main' of ${VERSION_CODENAME:-this release}, where" \
			"libmnl's source package is; add it, or name a source archive in LIBMNL_TAR"
	touch "$tmp/sources.list"
	# The hooks of the machine's own configuration clean the machine's own caches.
	cat >"$tmp/apt.conf" <<-EOF
		Dir::Etc::SourceList "$tmp/sources.list";
		Dir::Etc::SourceParts "$tmp/parts";
		Dir::State::Lists "$tmp/lists";
		Dir::Cache "$tmp/cache";
		APT::Sandbox::User "";
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear APT::Update::Post-Invoke-Stats;
	EOF
	# One source that does not answer may be one that is not needed: what counts comes next.
	apt-get -q -c "$tmp/apt.conf" update >"$tmp/log" 2>&1 || true
	# The version of the headers that everything else is compiled with, if it is still there.
	# shellcheck disable=SC2016 # dpkg-query's variables
	version=$(dpkg-query -W -f '${source:Version}' libmnl-dev 2>/dev/null) || version=
	cd "$tmp/source"
	if [ -n "$version" ] && fetch_source "libmnl=$version"; then
		return
	fi
	fetch_source libmnl ||
		die "cannot download the source package of libmnl:" \
			"$(grep '^E:' "$tmp/log" | head -n 1 | cut -c 4-); try again when the" \
			"mirror has it, or name a source archive in LIBMNL_TAR"
}

fetch_source()
{
	apt-get -q -c "$tmp/apt.conf" source --download-only "$1" >>"$tmp/log" 2>&1
}

if [ -z "${LIBMNL_TAR:-}" ]; then
	(download) || exit 1
	LIBMNL_TAR=$(find "$tmp/source" -name 'libmnl_*.orig.tar.*' ! -name '*.asc')
fi
[ -r "$LIBMNL_TAR" ] || die "cannot read the source archive '$LIBMNL_TAR'"

mkdir "$tmp/unpacked" "$tmp/obj"
tar -xf "$LIBMNL_TAR" -C "$tmp/unpacked" --strip-components=1 ||
	die "cannot unpack $LIBMNL_TAR (see tar's message above; Debian's package bzip2 may be missing)"
[ -r "$tmp/unpacked/src/socket.c" ] || die "$LIBMNL_TAR does not hold libmnl's source"
# All that its configure script would find out.
echo '#define HAVE_VISIBILITY_HIDDEN 1' >"$tmp/obj/config.h"
for c in "$tmp"/unpacked/src/*.c; do
	# shellcheck disable=SC2086 # flags are words
	$CC ${CFLAGS:--O2 -g} -w -D_GNU_SOURCE -I"$tmp/obj" -I"$tmp/unpacked/include" -c "$c" \
		-o "$tmp/obj/$(basename "$c" .c).o" 2>"$tmp/log" ||
		die "cannot compile ${c##*/} of libmnl with $CC: $(head -n 3 "$tmp/log")"
done
$AR rcs "$tmp/libmnl.a" "$tmp"/obj/*.o || die "cannot make libmnl.a with $AR"
mv -f "$tmp/libmnl.a" "$out"
