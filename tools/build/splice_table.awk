# SPDX-License-Identifier: GPL-2.0-or-later
# Makes the manual's table of what is another on spliced connections out of the tables that the suite
# kept: awk -f splice_table.awk tests/splice/expected/RELEASE.tsv... It fails on one that it cannot
# read, and if they are not about the same behaviours.

BEGIN {
	format = "l2 l2 l2 l."
	width = 30 # of what is seen, so that the table fits on 80 columns
}

function fail(why)
{
	printf "%s:%d: %s\n", FILENAME, FNR, why >"/dev/stderr"
	failed = 1
	exit 1
}

# Text of the table as troff takes it.
function troff(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/'/, "\\(aq", text)
	return "\\&" text
}

# "IPv4, blocking; IPv6, blocking" is both families.
function sockets(in_variants)
{
	if (in_variants == "all" || in_variants == "blocking")
		return ""
	if (in_variants == "IPv4, blocking; IPv6, blocking")
		return "blocking"
	if (in_variants == "IPv4, non-blocking; IPv6, non-blocking")
		return "non-blocking"
	return in_variants
}

# A line of a behaviour in a way of running: one for all kernels that agree.
function add(name, mode, variants, text,    key)
{
	key = name SUBSEP mode SUBSEP variants SUBSEP text
	if (!(key in kernels))
		lines[name, mode, ++n_lines[name, mode]] = key
	kernels[key] = kernels[key] (kernels[key] == "" ? "" : " ") release
}

FNR == 1 {
	release = FILENAME
	sub(/.*\//, "", release)
	if (release !~ /^[0-9]+\.[0-9]+\.tsv$/)
		fail("a table is named RELEASE.tsv")
	sub(/\.tsv$/, "", release)
	releases[++n_releases] = release
	if ($0 != "behaviour\tvariants\tTCP\tmember\tredirected")
		fail("the first line is not the one of a table of the suite")
	next
}

{
	if (split($0, f, "\t") != 5)
		fail("a line has not five columns")
	for (i = 1; i <= 5; i++)
		if (f[i] == "")
			fail("a column is empty")
	if (f[3] == "=")
		fail("TCP is compared with nothing")
	name = f[1]
	if (!(name in known)) {
		if (n_releases > 1)
			fail("'" name "' is not in the table of " releases[1])
		known[name] = 1
		names[++n_names] = name
	}
	if (!((name, release) in tcp)) {
		tcp[name, release] = f[3]
		add(name, "TCP", "all", f[3])
	} else if (tcp[name, release] != f[3])
		fail("TCP itself differs between sockets: such a behaviour says nothing")
	if (f[4] != "=" && f[4] == f[5])
		add(name, "either", f[2], f[4])
	else {
		if (f[4] != "=")
			add(name, "member", f[2], f[4])
		if (f[5] != "=")
			add(name, "redirected", f[2], f[5])
	}
	if (f[4] != "=" || f[5] != "=")
		differs[name] = 1
	if (f[2] == "blocking")
		blocking[name] = 1
}

# In lines of their own, not in text blocks of tbl, which does not break those over pages.
function put_text(text,    words, n, i, line)
{
	n = split(text, words, " ")
	line = words[1]
	for (i = 2; i <= n; i++) {
		if (length(line) + 1 + length(words[i]) > width) {
			printf "%s\n\t\t\t", troff(line)
			line = words[i]
		} else
			line = line " " words[i]
	}
	printf "%s\n", troff(line)
}

function put(name, mode,    i, p)
{
	for (i = 1; i <= n_lines[name, mode]; i++) {
		split(lines[name, mode, i], p, SUBSEP)
		printf "\\ \\ %s\t%s\t%s\t", mode, sockets(p[3]),
			kernels[lines[name, mode, i]] == all ? "all" : kernels[lines[name, mode, i]]
		put_text(p[4])
	}
}

END {
	if (failed)
		exit 1
	if (!n_names)
		fail("there is nothing in the tables")
	for (i = 1; i <= n_names; i++) {
		n_differ += names[i] in differs
		for (k = 1; k <= n_releases; k++)
			if (!((names[i], releases[k]) in tcp))
				fail("'" names[i] "' is not in the table of " releases[k])
	}
	for (k = 1; k <= n_releases; k++) {
		all = all (k > 1 ? " " : "") releases[k]
		list = list (k == 1 ? "" : k == n_releases ? " and " : ", ") releases[k]
	}
	printf "Of %d behaviours, %d are the same in all three ways on Linux %s.\n", n_names,
		n_names - n_differ, list
	printf "The other %d:\n.PP\n.TS\nnokeep;\n%s\n", n_differ, format
	print "way\tsockets\tkernels\twhat is seen\n_"
	for (i = 1; i <= n_names; i++) {
		if (!(names[i] in differs))
			continue
		printf ".T&\nlB s s s\n%s\n%s%s\n", format, troff(names[i]),
			names[i] in blocking ? " (blocking sockets)" : ""
		put(names[i], "TCP")
		put(names[i], "either")
		put(names[i], "member")
		put(names[i], "redirected")
	}
	print ".TE"
}
