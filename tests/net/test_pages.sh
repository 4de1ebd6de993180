#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# The manual's pages: all are built, installed where man looks, and formatted without a warning; and
# the one about splicing says what the suite of socket behaviours kept.
. "$(dirname "$0")/lib.sh"
need make man awk col

cd "$TOP" || exit 1
PAGES=${OUT:-.output/gcc}/man
KEPT=(tests/splice/expected/*.tsv)

pages=()
for page in tools/share/*.[1578]; do
	pages+=("$PAGES/${page##*/}")
done
for page in "${pages[@]}"; do
	is "${page##*/} is formatted without a warning" "$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null)" ""
	is "and names no place that was to be filled" "$(grep -nE '@(TABLE|VERSION|[A-Z]*DIR)@' "$page")" ""
done

# -o: nothing is built; env: without what make check-quick tells its own makes
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -o all install OUT="${OUT:-.output/gcc}" DESTDIR="$T/root" PREFIX=/usr \
	>"$T/install" 2>&1 || diag "$(cat "$T/install")"
for page in "${pages[@]}"; do
	ok "${page##*/} is installed in its section" \
		cmp "$page" "$T/root/usr/share/man/man${page##*.}/${page##*/}"
done

# --- what splicing changes ---

# The names of behaviours that differ, and of all.
awk -F'\t' 'FNR > 1 && ($4 != "=" || $5 != "=") && !seen[$1]++ { print $1 }' "${KEPT[@]}" | sort >"$T/differ"
awk -F'\t' 'FNR > 1 { print $1 }' "${KEPT[@]}" | sort -u >"$T/all"
MANWIDTH=100 man -l "$PAGES/ax-splice.7" 2>/dev/null | col -bx >"$T/page"
# Headings of the table stand further left than its lines.
awk '/^WHAT PROGRAMS SEE/ { on = 1 } /^CHANGES/ { on = 0 }
	on && rule && /^       [^ ]/ { sub(/^ +/, ""); sub(/ \(blocking sockets\)$/, ""); print }
	on && /^       [^ ]*way +sockets/ { rule = 1 }' "$T/page" | grep -v '^[^a-zA-Z0-9]*$' | sort >"$T/headings"
ok "there are some that differ" test -s "$T/differ"
is "the page has those that differ, and no other" "$(cat "$T/headings")" "$(cat "$T/differ")"
like "it says how many there are" "$(tr -s ' \n' ' ' <"$T/page")" \
	"Of $(wc -l <"$T/all") behaviours, $(comm -23 "$T/all" "$T/differ" | wc -l) are the same"
for k in "${KEPT[@]}"; do
	k=${k##*/}
	like "it is about Linux ${k%.tsv}" "$(grep -A 2 'behaviours, .* the same' "$T/page" | tr -s ' \n' ' ')" \
		" ${k%.tsv}[ ,.]"
done
sed -n '/^\.SH CHANGES/,/^\.SH SEE/s/^\.B \(.*[a-z].*\)/\1/p' "$PAGES/ax-splice.7" | sed 's/\\-/-/g' | sort -u >"$T/repaired"
ok "the kernel's changes repair something" test -s "$T/repaired"
is "and all that they repair differs" "$(comm -23 "$T/repaired" "$T/differ")" ""

# table SED-PROGRAM [NAME]: what the page would have of a table that is changed so
table() {
	mkdir -p "$T/kept"
	cp "${KEPT[@]}" "$T/kept/"
	sed -i "$1" "$T/kept/${KEPT[0]##*/}"
	[ $# = 1 ] || mv "$T/kept/${KEPT[0]##*/}" "$T/kept/$2"
	awk -f tools/build/splice_table.awk "$T"/kept/*.tsv
	local rc=$?
	rm -r "$T/kept"
	return "$rc"
}
ok "a table as it is can be read" table ''
fails "not one without its first line" table 1d
fails "nor one of other columns" table '1s/member/members/'
fails "nor one whose line lacks a column" table '5s/\t[^\t]*$//'
fails "nor one with an empty column" table '5s/\t[^\t]*$/\t/'
fails "nor one that lacks a behaviour" table '$d'
fails "nor one that has another" table '$p;$s/^/not /'
fails "nor one with nothing in it" table '2,$d'
fails "nor one of no kernel" table '' none.tsv
done_testing
