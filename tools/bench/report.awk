# SPDX-License-Identifier: GPL-2.0-or-later
# Reads the raw figures ("case round value") and then the rows (tab-separated: what, unit, ax's
# case, what it is compared with, that case, direction, target; without a direction nothing is
# wanted of it); prints the table, and the JSON to
# the file `json`; without a `json` only the table, with `silent` only the JSON, with `headlines` only
# what was measured. A ratio is the median of the rounds' own ratios, so that a machine that is slower
# for a while does not count.

function median(list, n,    i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
			t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
		}
	return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

function case_median(name,    r, n, list) {
	for (r = 1; r <= rounds; r++)
		if ((name, r) in value)
			list[++n] = value[name, r]
	return n ? median(list, n) : -1
}

function ratio_median(a, b,    r, n, list) {
	for (r = 1; r <= rounds; r++)
		if ((a, r) in value && (b, r) in value && value[b, r] > 0)
			list[++n] = value[a, r] / value[b, r]
	return n ? median(list, n) : -1
}

function round_list(name,    r, s) {
	for (r = 1; r <= rounds; r++)
		if ((name, r) in value)
			s = s (s == "" ? "" : ",") value[name, r]
	return "[" s "]"
}

function human(v, unit) {
	if (v < 0)
		return "-"
	if (unit == "ns")
		return v >= 1e6 ? sprintf("%.2f ms", v / 1e6) : \
			v >= 1e3 ? sprintf("%.2f us", v / 1e3) : sprintf("%.1f ns", v)
	if (unit == "1/s")
		return sprintf("%.0f/s", v)
	if (unit == "Mpps")
		return sprintf("%.3g Mpps", v)
	return sprintf(unit == "s" ? "%.2f %s" : "%g %s", v, unit)
}

function quoted(s) {
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	return "\"" s "\""
}

function cell(column, text) {
	table[n_rows, column] = text
	if (length(text) > width[column])
		width[column] = length(text)
}

function add_row(what, ax, base, ratio, target, reached) {
	n_rows++
	cell(1, what); cell(2, ax); cell(3, base); cell(4, ratio); cell(5, target); cell(6, reached)
}

BEGIN {
	add_row("what", "ax", "compared with", "ratio", "target", "reached?")
}

FNR == NR {
	split($0, raw, " ")
	value[raw[1], raw[2]] = raw[3]
	if (raw[2] > rounds)
		rounds = raw[2]
	next
}

{
	split($0, f, "\t")
	what = f[1]; unit = f[2]; a = f[3]; against = f[4]; b = f[5]; direction = f[6]; target = f[7]
	ax = case_median(a)
	base = b == "" ? -1 : case_median(b)
	judged = b == "" ? ax : ratio_median(a, b)
	known = ax >= 0 && judged >= 0
	if (headlines && !known)
		next
	wanted = direction != ""
	reached = known && wanted && (direction == ">=" ? judged >= target : judged <= target)
	add_row(what, human(ax, unit), b == "" ? "-" : against " " human(base, unit),
		b == "" || !known ? "-" : sprintf("%.3f", judged),
		wanted ? direction " " (b == "" ? human(target, unit) : target) : "-",
		known ? (wanted ? (reached ? "yes" : "no") : "-") : "not measured")
	out = out (out == "" ? "" : ",\n") \
		sprintf("    {\"what\": %s, \"unit\": %s, \"ax\": %s, \"ax_rounds\": %s, " \
			"\"compared_with\": %s, \"base\": %s, \"base_rounds\": %s, \"ratio\": %s, " \
			"\"target\": %s, \"reached\": %s}",
			quoted(what), quoted(unit), known ? ax : "null", round_list(a),
			b == "" ? "null" : quoted(against), b == "" || base < 0 ? "null" : base,
			b == "" ? "[]" : round_list(b),
			b == "" || !known ? "null" : sprintf("%.4f", judged),
			wanted ? quoted(direction " " target) : "null",
			known && wanted ? (reached ? "true" : "false") : "null")
}

END {
	for (i = 1; i <= n_rows && !silent; i++) {
		line = ""
		for (c = 1; c <= 6; c++)
			line = line sprintf("%-" width[c] "s  ", table[i, c])
		sub(/ +$/, "", line)
		print line
	}
	if (json == "")
		exit
	printf "{\n  \"kernel\": %s,\n  \"cpus\": %d,\n  \"load\": %.2f,\n" \
		"  \"rounds\": %d,\n  \"milliseconds\": %d,\n" \
		"  \"seconds_idle\": %d,\n  \"agent_wakeups_idle\": %d,\n  \"results\": [\n%s\n  ]\n}\n",
		quoted(kernel), cpus, load, rounds, milliseconds, idle, idle_wakeups, out >json
}
