// SPDX-License-Identifier: GPL-2.0-or-later
/* Wrong probes: one sentence each, with the place, the word there and what was expected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/text/spec.h"

struct wrong {
	const char *text;
	unsigned column;
	const char *word; /* NULL: a blank, or the end of the text */
	const char *says; /* somewhere in the sentence */
};

static void assert_refused(const struct wrong *w)
{
	const char *place, *quote = w->word ? "'" : "";
	autofree char *start = NULL;
	struct probe_spec p;
	struct error e = {0};
	int r = probe_parse(w->text, &p, &e);

	if (r == 0) {
		probe_spec_free(&p);
		fail_msg("%s is taken", w->text);
	}
	assert_int_equal(r, -EINVAL);
	assert_int_equal(e.code, r);
	place = w->word ? w->word : w->text[w->column - 1] ? "a blank" : "its end";
	assert_true(asprintf(&start, "in the probe at column %u, %s%s%s: ", w->column, quote, place,
			     quote) > 0);
	if (!starts_with(e.text, start) || !strstr(e.text, w->says))
		fail_msg("%s: \"%s\", not \"%s...%s\"", w->text, e.text, start, w->says);
}

static void assert_all_refused(const struct wrong *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_refused(&w[i]);
}

static void wrong_targets(void **state)
{
	static const struct wrong cases[] = {
		{"", 1, NULL, "expected a probe: uprobe:, uretprobe:"},
		{"  \n", 4, NULL, "expected a probe"},
		{"uprob:/x:y", 1, "uprob", "did you mean 'uprobe:'?"},
		{"tracepiont:a:b", 1, "tracepiont", "did you mean 'tracepoint:'?"},
		{"kretprob:a", 1, "kretprob", "did you mean 'kretprobe:'?"},
		{"zzz:a:b", 1, "zzz", "no kind of probe"},
		{":a", 1, ":a", "no kind of probe"},
		{"vfs_read", 1, "vfs_read", "no kind of probe"},
		{"uprobe", 1, "uprobe", "expected uprobe:FILE:SYMBOL[+OFFSET]"},
		{"uprobe:", 8, NULL, "a part is missing"},
		{"uprobe:/bin/bash", 8, "/bin/bash", "expected uprobe:FILE:SYMBOL"},
		{"uprobe:/bin/bash:", 18, NULL, "a part is missing"},
		{"uprobe:/bin/bash: arg0", 18, NULL, "a part is missing"},
		{"uprobe::f", 8, ":f", "a part is missing"},
		{"uprobe:a:f+0x", 12, "0x", "expected a number"},
		{"uprobe:a:f+5x", 12, "5x", "expected a number"},
		{"uprobe:a:f+18446744073709551616", 12, "18446744073709551616", "too large"},
		{"uprobe:a:0x10000000000000000", 10, "0x10000000000000000", "too large"},
		{"uprobe:a:010", 10, "010", "octal"},
		{"uprobe:a:12f", 10, "12f", "expected a number"},
		{"uprobe:a:0x10:f", 14, ":f", "expected a blank there"},
		{"uprobe:\"a:f", 8, "\"a:f", "a part is missing"},
		{"uprobe:a:\"f", 10, "\"f", "the quote is not closed"},
		{"uprobe:a:f\"g\"", 11, "\"g\"", "quotes around the whole part"},
		{"uprobe:a:\"f\"g", 10, "\"f\"g", "quotes around a whole part"},
		{"uprobe:a:\"\"", 10, "\"\"", "quotes around a whole part"},
		{"uprobe:a:\"f\\q\"", 12, "\\q\"", "\\xHH in a text"},
		{"uprobe:a:\"f\\x00\"", 12, "\\x00\"", "\\xHH in a text"},
		{"uprobe:a:\"f\\n\"", 10, "\"f\\n\"", "control characters"},
		{"uretprobe:a:f+4", 14, "+4", "expected no offset"},
		{"kretprobe:f+0x4", 12, "+0x4", "expected no offset"},
		{"usdt:", 6, NULL, "expected usdt:FILE:[PROVIDER:]NAME"},
		{"usdt:a:b:c:d", 10, "c", "too many colons"},
		{"usdt:a::c", 8, ":c", "a part is missing"},
		{"line:a:b.c", 8, "b", "expected line:FILE:SOURCE:LINE"},
		{"line:a:b.c:0", 12, "0", "lines count from 1"},
		{"line:a:b.c:", 12, NULL, "a part is missing"},
		{"line:a:b.c:4294967296", 12, "4294967296", "at most 4294967295"},
		{"kprobe:", 8, NULL, "expected kprobe:[MODULE:]SYMBOL"},
		{"kprobe:/a:f", 8, "/a:f", "expected a module's name"},
		{"kprobe:m:5", 10, "5", "expected a symbol of the module"},
		{"tracepoint:sock", 12, "sock", "expected tracepoint:CATEGORY:NAME"},
		{"tracepoint:a:b:c", 14, "b", "too many colons"},
		{"kprobe:f\001", 9, "?", "control characters"},
		{"kprobe:f \"\x7f", 11, "?", "control characters"},
	};

	(void)state;
	assert_all_refused(cases, ARRAY_SIZE(cases));
}

static void wrong_lines_of_ftrace(void **state)
{
	static const struct wrong cases[] = {
		{"-:zfree_entry", 1, "-:zfree_entry", "expected 'ax trace rm NAME'"},
		{"p", 2, NULL, "FILE:0xOFFSET or SYMBOL[+OFFSET]"},
		{"p:x", 4, NULL, "FILE:0xOFFSET or SYMBOL[+OFFSET]"},
		{"p: f", 3, NULL, "[GROUP/]NAME"},
		{"p:a-b f", 3, "a", "[GROUP/]NAME"},
		{"p:g/ f", 5, NULL, "[GROUP/]NAME"},
		{"p:1a f", 3, "1a", "[GROUP/]NAME"},
		{"p:c:write(int fd)", 3, "c", "argdist"},
		{"p:x /bin/zsh", 5, "/bin/zsh", "expected FILE:0xOFFSET"},
		{"p:x /bin/zsh:0xg", 14, "0xg", "expected a number"},
		{"p:x /bin/zsh:0x10(", 19, NULL, "expected a number"},
		{"p:x /bin/zsh:0x10(0)", 18, "(0)", "the semaphore's offset"},
		{"p:x /bin/zsh:0x10(1", 18, "(1", "the semaphore's offset"},
		{"p:x /bin/zsh:0x10%retrun", 18, "%retrun", "expected a blank there"},
		{"r:x f+8", 6, "+8", "expected no offset"},
		{"p:x f+8%return", 6, "+8%return", "expected no offset"},
		{"r4x:y f", 1, "r4x", "no kind of probe"},
	};

	(void)state;
	assert_all_refused(cases, ARRAY_SIZE(cases));
}

static void wrong_arguments(void **state)
{
	static const struct wrong cases[] = {
		{"k:f arg10", 5, "arg10", "expected arg0 to arg9"},
		{"k:f arg00", 5, "arg00", "expected arg0 to arg9"},
		{"k:f $arg0", 5, "$arg0", "count from 1"},
		{"k:f $arg11", 9, "11", "at most 10"},
		{"k:f $argc", 5, "$argc", "did you mean '$arg1'?"},
		{"k:f $retvl", 5, "$retvl", "did you mean '$retval'?"},
		{"k:f $", 5, "$", "expected $stack"},
		{"k:f $stack2048", 11, "2048", "at most 2047"},
		{"k:f $stack01", 11, "01", "octal"},
		{"k:f %", 6, NULL, "expected a register"},
		{"k:f %AX", 6, "AX", "expected a register"},
		{"k:f %1", 6, "1", "expected a register"},
		{"k:f %abcdefgh", 6, "abcdefgh", "expected a register"},
		{"k:f retval", 5, "retval", "only at a return"},
		{"k:f $retval", 5, "$retval", "only at a return"},
		{"k:f arg0@entry", 9, "@entry", "only at a return"},
		{"kr:f arg0", 6, "arg0", "expected arg0@entry"},
		{"ur:a:f arg3->x[arg1@entry]", 8, "arg3", "expected arg3@entry"},
		{"kr:f arg0@entry@entry", 16, "@entry", "expected @entry once"},
		{"kr:f retval@entry", 12, "@entry", "not of the return value"},
		{"kr:f arg0@exit", 10, "@exit", "expected @entry"},
		{"t:a:b %di", 7, "%di", "neither registers nor a stack"},
		{"t:a:b $stack", 7, "$stack", "neither registers nor a stack"},
		{"t:a:b $stack3", 7, "$stack3", "neither registers nor a stack"},
		{"k:f args", 5, "args", "expected a field"},
		{"k:f args.", 10, NULL, "expected the name of a field"},
		{"k:f @", 5, "@", "expected @ADDRESS"},
		{"k:f @+8", 5, "@+8", "in the kernel"},
		{"k:f @x+9223372036854775808", 8, "9223372036854775808", "too large"},
		{"k:f +8", 7, NULL, "in parentheses"},
		{"k:f +u(%di)", 5, "+u(%di)", "expected a number behind the sign"},
		{"k:f -u8", 8, NULL, "in parentheses"},
		{"k:f +8(%di", 11, NULL, "expected an operator or ')'"},
		{"k:f +8()", 8, ")", "expected a value"},
		{"k:f (arg0", 10, NULL, "expected an operator or ')'"},
		{"k:f arg0)", 9, ")", "expected an operator, ':TYPE' or a blank"},
		{"k:f arg0[1", 11, NULL, "or ']'"},
		{"k:f arg0[]", 10, "]", "expected a value"},
		{"k:f arg0->", 11, NULL, "the name of a member"},
		{"k:f arg0.5", 10, "5", "the name of a member"},
		{"k:f * 4", 5, "*", "expected a value before *"},
		{"k:f arg0 +", 11, NULL, "expected a value"},
		{"k:f arg0 + ", 12, NULL, "expected a value"},
		{"k:f arg0 /2", 10, "/2", "expected a value"},
		{"k:f arg0 / ", 12, NULL, "expected a value"},
		{"profile:0", 9, "0", "from 1 to"},
		{"profile:100001", 9, "100001", "from 1 to"},
		{"profile:ms:10", 9, "ms", "from 1 to"},
		{"k:f arg0:string[comm]", 17, "comm", "a number, or a value"},
		{"k:f arg0:buf[arg1", 18, NULL, "expected ']'"},
		{"k:f 0x", 5, "0x", "expected a number"},
		{"k:f 12ab", 5, "12ab", "expected a number"},
		{"k:f 007", 5, "007", "octal"},
		{"k:f 18446744073709551616", 5, "18446744073709551616", "too large"},
		{"k:f -9223372036854775809", 6, "9223372036854775809", "too large"},
		{"k:f \\x", 6, "x", "expected a number"},
		{"k:f x=", 7, NULL, "expected a value"},
		{"k:f =5", 5, "=5", "expected a value"},
		{"k:f arg0=5=6", 11, "=6", "expected NAME="},
		{"k:f x=arg0 x=arg1", 12, "x", "two arguments have that name"},
		{"k:f arg0,", 9, ",", "behind the comma"},
		{"k:f arg0,,arg1", 9, ",,arg1", "behind the comma"},
		{"k:f arg0, if 1", 9, ",", "behind the comma"},
		{"k:f ,arg0", 5, ",arg0", "expected a value"},
		{"k:f arg0 == 5", 10, "==", "behind 'if'"},
		{"k:f (arg0 && 5)", 11, "&&", "behind 'if'"},
		{"k:f !arg0", 5, "!arg0", "behind 'if'"},
		{"k:f \"text\"", 5, "\"text\"", "behind 'if'"},
		{"k:f comm+1", 5, "comm", "a text cannot be an operand"},
		{"k:f *comm", 6, "comm", "a text cannot be an operand"},
		{"k:f app->x", 5, "app", "a text cannot be an operand"},
		{"k:f arg0[comm]", 10, "comm", "a text cannot be an operand"},
		{"k:f a b c d e f g h i j k l m", 29, "m", "at most 12 arguments"},
	};

	(void)state;
	assert_all_refused(cases, ARRAY_SIZE(cases));
}

static void wrong_types(void **state)
{
	static const struct wrong cases[] = {
		{"k:f arg0:strng", 10, "strng", "did you mean 'string'?"},
		{"k:f arg0:u46", 10, "u46", "expected a type, u8..u64"},
		{"k:f arg0:zzzzzz", 10, "zzzzzz", "expected a type, u8..u64"},
		{"k:f arg0:", 10, NULL, "expected a type"},
		{"k:f arg0:u128", 10, "u128", "expected a type"},
		{"k:f arg0:buf", 13, NULL, "as buf[64]"},
		{"k:f arg0:buf[0]", 13, "[0]", "from 1 to 4096"},
		{"k:f arg0:buf[4097]", 14, "4097", "at most 4096"},
		{"k:f arg0:string[", 17, NULL, "expected a number"},
		{"k:f arg0:string[4", 18, NULL, "expected ']'"},
		{"k:f arg0:u8[4]", 12, "[4]", "expected buf[N]"},
		{"k:f arg0:u8x", 10, "u8x", "expected a type"},
		{"k:f arg0:b3", 10, "b3", "bWIDTH@OFFSET/SIZE"},
		{"k:f arg0:b3@5", 14, NULL, "size in bits"},
		{"k:f arg0:b3@5/33", 10, "b3", "8, 16, 32 or 64 bits"},
		{"k:f arg0:b3@30/32", 10, "b3", "8, 16, 32 or 64 bits"},
		{"k:f arg0:b0@0/8", 10, "b0", "8, 16, 32 or 64 bits"},
		{"k:f arg0:b99999999999999999999@1/8", 10, "b99999999999999999999",
		 "8, 16, 32 or 64 bits"},
		{"k:f 1.5", 5, "1", "behind 'if'"},
		{"k:f if arg0 > 1.5.2", 15, "1", "as 42, 0x2a or 1.5"},
		{"k:f if arg0 > 1.", 17, NULL, "name of a member"},
		{"t:a:b $regs", 7, "$regs", "neither registers"},
		{"k:f arg0:u8:u8", 12, ":u8", "expected an operator"},
		{"k:f comm:u32", 9, ":u32", "a text has no other type"},
		{"k:f arg0:stack", 9, ":stack", "expected ustack or kstack alone"},
		{"k:f $stack0:kstack", 12, ":kstack", "expected ustack or kstack alone"},
		{"k:f arg0 :u8", 10, ":u8", "expected a value"},
	};

	(void)state;
	assert_all_refused(cases, ARRAY_SIZE(cases));
}

static void wrong_conditions_and_keys(void **state)
{
	static const struct wrong cases[] = {
		{"k:f if", 7, NULL, "expected a value"},
		{"k:f if by comm", 8, "by", "expected a value before 'by'"},
		{"k:f if a if b", 10, "if", "expected an operator"},
		{"k:f if a by b if c", 15, "if", "join two with &&"},
		{"k:f if a = 5", 10, "=", "expected =="},
		{"k:f if a b", 10, "b", "expected an operator"},
		{"k:f if a:u8", 9, ":u8", "expected an operator"},
		{"k:f if a ==", 12, NULL, "expected a value"},
		{"k:f if a &&", 12, NULL, "expected a value"},
		{"k:f if (a", 10, NULL, "or ')'"},
		{"k:f if a)", 9, ")", "expected an operator"},
		{"k:f if flags & 1 == 1", 14, "&", "(flags & 0x40) == 0x40"},
		{"k:f if 1 == flags & 1", 19, "&", "(flags & 0x40) == 0x40"},
		{"k:f if a == b == c", 15, "==", "a comparison cannot be an operand"},
		{"k:f if a < b < c", 14, "<", "a comparison cannot be an operand"},
		{"k:f if (a == b) + 1", 17, "+", "a comparison cannot be an operand"},
		{"k:f if *(a == b)", 8, "*(a", "a comparison cannot be an operand"},
		{"k:f if comm", 8, "comm", "neither true nor false"},
		{"k:f if \"x\"", 8, "\"x\"", "neither true nor false"},
		{"k:f if !comm", 9, "comm", "neither true nor false"},
		{"k:f if a && comm", 13, "comm", "neither true nor false"},
		{"k:f if comm == bash", 16, "bash", "expected one in quotes"},
		{"k:f if 5 == comm", 8, "5", "expected one in quotes"},
		{"k:f if comm < \"a\"", 8, "comm", "a text cannot be an operand"},
		{"k:f if 5 == \"a\"", 8, "5", "a number is never a text"},
		{"k:f if \"a\" == \"b\"", 8, "\"a\"", "two constant texts"},
		{"k:f if comm == \"a", 16, "\"a", "the quote is not closed"},
		{"k:f by", 5, "by", "expected keys"},
		{"k:f by if 1", 5, "by", "expected keys"},
		{"k:f by a by b", 10, "by", "expected one 'by'"},
		{"k:f by a b c d e", 16, "e", "at most 4 keys"},
		{"k:f by x=a x=b", 12, "x", "two arguments have that name"},
	};

	(void)state;
	assert_all_refused(cases, ARRAY_SIZE(cases));
}

static void what_is_too_much_is_refused(void **state)
{
	char text[PROBE_TEXT_MAX + 2];
	const char *words[2] = {"kprobe:f", text};
	struct probe_spec p;
	struct error e = {0};
	size_t n;

	(void)state;
	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, "kprobe:f", 8);
	text[PROBE_TEXT_MAX + 1] = '\0';
	assert_int_equal(probe_parse(text, &p, &e), -EINVAL);
	assert_string_equal(e.text, "the probe is too long: expected at most 4096 characters");
	text[PROBE_TEXT_MAX] = '\0';
	assert_int_equal(probe_parse(text, &p, &e), 0);
	probe_spec_free(&p);
	assert_int_equal(probe_parse_words(words, 2, &p, &e), -EINVAL);

	/* a text that fits, whose canonical one does not */
	n = (size_t)sprintf(text, "kprobe:f if comm == \"");
	while (n < PROBE_TEXT_MAX - 8)
		n += (size_t)sprintf(text + n, "\\n");
	sprintf(text + n, "\"");
	assert_int_equal(probe_parse(text, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "too long"));
}

static int parse_repeated(const char *start, const char *open, const char *inner, const char *close,
			  size_t n, struct error *e)
{
	autofree char *text = calloc(1, PROBE_TEXT_MAX + 1);
	struct probe_spec p;
	int r;

	assert_non_null(text);
	strcat(text, start);
	for (size_t i = 0; i < n; i++)
		strcat(text, open);
	strcat(text, inner);
	for (size_t i = 0; i < n; i++)
		strcat(text, close);
	*e = (struct error){0};
	r = probe_parse(text, &p, e);
	probe_spec_free(&p);
	return r;
}

static void depth_and_length_have_an_end(void **state)
{
	static const struct {
		const char *start, *open, *inner, *close;
		size_t most;
		const char *says;
	} cases[] = {
		{"k:f ", "(", "1", ")", 31, "nested too deeply"},
		{"k:f ", "*", "1", "", 31, "nested too deeply"},
		{"k:f ", "+8(", "%di", ")", 31, "nested too deeply"},
		{"k:f ", "1[", "1", "]", 31, "nested too deeply"},
		{"k:f if ", "!", "1", "", 31, "nested too deeply"},
		{"k:f ", "1+", "1", "", 31, "too long"},
		{"k:f if ", "1||", "1", "", 31, "too long"},
		{"k:f a", "->b", "", "", 63, "too long"},
	};
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (parse_repeated(cases[i].start, cases[i].open, cases[i].inner, cases[i].close,
				   cases[i].most, &e) < 0)
			fail_msg("%s%s: %s", cases[i].start, cases[i].open, e.text);
		assert_int_equal(parse_repeated(cases[i].start, cases[i].open, cases[i].inner,
						cases[i].close, cases[i].most + 1, &e),
				 -EINVAL);
		if (!strstr(e.text, cases[i].says))
			fail_msg("%s%s: %s", cases[i].start, cases[i].open, e.text);
	}
}

static void long_words_are_shown_cut(void **state)
{
	struct probe_spec p;
	struct error e = {0};

	(void)state;
	assert_int_equal(probe_parse("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", &p, &e),
			 -EINVAL);
	assert_non_null(strstr(e.text, "'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz': "));
	/* not through the middle of a character: its first byte is the 40th */
	assert_int_equal(probe_parse("k:f /23456789012345678901234567890123456789\xc3\xa4", &p, &e),
			 -EINVAL);
	assert_non_null(strstr(e.text, "'/23456789012345678901234567890123456789': "));
}

static void no_words_are_no_probe(void **state)
{
	static const char *const empty[] = {"", ""};
	struct probe_spec p;
	struct error e = {0};

	(void)state;
	assert_int_equal(probe_parse_words(NULL, 0, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "expected a probe"));
	assert_int_equal(probe_parse_words(empty, 2, &p, &e), -EINVAL);
	assert_int_equal(probe_parse("x", &p, NULL), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_targets),
		cmocka_unit_test(wrong_lines_of_ftrace),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(wrong_types),
		cmocka_unit_test(wrong_conditions_and_keys),
		cmocka_unit_test(what_is_too_much_is_refused),
		cmocka_unit_test(depth_and_length_have_an_end),
		cmocka_unit_test(long_words_are_shown_cut),
		cmocka_unit_test(no_words_are_no_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
