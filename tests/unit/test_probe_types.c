// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's types, and the fetch programs that are made of them. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "probes/fetch/fetch.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

static struct btf_types *types;

static int open_types(void **state)
{
	(void)state;
	return btf_types_new(&types);
}

static int close_types(void **state)
{
	(void)state;
	btf_types_free(types);
	return 0;
}

static void need_btf(void)
{
	struct error e = {0};
	struct ctype t;

	if (access(KERNEL_BTF, R_OK) == 0)
		return;
	assert_int_equal(btf_types_struct(types, "task_struct", &t, &e), -ENODATA);
	assert_non_null(strstr(e.text, "CONFIG_DEBUG_INFO_BTF"));
	skip();
}

/* What bpftool says of a member. -1: nothing. */
static long bits_by_bpftool(const char *type, const char *member)
{
	char cmd[256], line[512], want[80];
	long bits = -1;
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		 "PATH=$PATH:/usr/sbin bpftool btf dump file " KERNEL_BTF
		 " format raw 2>/dev/null |"
		 " sed -n \"/STRUCT '%s' size=/,/^\\[/p\"",
		 type);
	snprintf(want, sizeof(want), "'%s' ", member);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (bits < 0 && strstr(line, want) && strstr(line, "bits_offset="))
			bits = atol(strstr(line, "bits_offset=") + strlen("bits_offset="));
	pclose(f);
	return bits;
}

static void check_member(const char *type, const char *member)
{
	struct error e = {0};
	struct ctype_member m;
	struct ctype t;
	long bits = bits_by_bpftool(type, member);

	if (bits < 0)
		fail_msg("bpftool does not tell where %s has %s", type, member);
	assert_int_equal(btf_types_struct(types, type, &t, &e), 0);
	assert_int_equal(t.kind, CTYPE_STRUCT);
	assert_int_equal(ctype_find_member(&t, member, &m, NULL, 0), 0);
	assert_int_equal(m.offset * 8 + m.bit, bits);
}

static void test_offsets(void **state)
{
	(void)state;
	need_btf();
	check_member("task_struct", "pid");
	check_member("task_struct", "comm");
	check_member("task_struct", "in_execve"); /* a bitfield */
	check_member("sock", "sk_protocol");
}

static void test_members(void **state)
{
	struct error e = {0};
	struct ctype_member m;
	struct ctype t, target;
	char near[64], text[100];

	(void)state;
	need_btf();
	assert_int_equal(btf_types_struct(types, "task_struct", &t, &e), 0);
	assert_int_equal(ctype_find_member(&t, "pid", &m, NULL, 0), 0);
	assert_int_equal(m.type.kind, CTYPE_INTEGER);
	assert_true(m.type.is_signed && m.type.size == 4 && !m.bits);
	assert_int_equal(ctype_find_member(&t, "comm", &m, NULL, 0), 0);
	assert_int_equal(m.type.kind, CTYPE_ARRAY);
	assert_true(m.type.size == 16 && m.type.count == 16);
	assert_int_equal(ctype_target(&m.type, &target), 0);
	assert_int_equal(target.kind, CTYPE_CHAR);
	assert_int_equal(ctype_find_member(&t, "mm", &m, NULL, 0), 0);
	assert_int_equal(m.type.kind, CTYPE_POINTER);
	assert_int_equal(ctype_target(&m.type, &target), 0);
	ctype_describe(&target, text, sizeof(text));
	assert_string_equal(text, "struct mm_struct");
	assert_int_equal(ctype_find_member(&target, "pgd", &m, NULL, 0),
			 0); /* in an anonymous one */
	assert_int_equal(ctype_find_member(&t, "parrent", &m, near, sizeof(near)), -ENOENT);
	assert_string_equal(near, "parent");
	assert_int_equal(ctype_find_member(&m.type, "x", &m, NULL, 0), -EINVAL);
	assert_int_equal(btf_types_struct(types, "no_such_struct", &t, &e), -ENOENT);
}

static void test_functions(void **state)
{
	struct error e = {0};
	struct btf_function f;

	(void)state;
	need_btf();
	if (btf_types_function(types, NULL, "vfs_read", &f, &e))
		fail_msg("%s", e.text);
	assert_int_equal(f.n_parameters, 4);
	assert_string_equal(f.parameters[0].name, "file");
	assert_int_equal(f.parameters[0].type.kind, CTYPE_POINTER);
	assert_string_equal(f.parameters[2].name, "count");
	assert_true(f.parameters[2].type.kind == CTYPE_INTEGER && !f.parameters[2].type.is_signed);
	assert_true(f.returns.kind == CTYPE_INTEGER && f.returns.is_signed && f.returns.size == 8);
	assert_int_equal(btf_types_function(types, NULL, "no_such_function", &f, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no_such_function"));
	assert_int_equal(btf_types_function(types, "no_such_module", "vfs_read", &f, &e), -ENOENT);
	assert_int_equal(btf_types_function(types, "../vmlinux", "vfs_read", &f, &e), -ENOENT);
}

/* --- fetch programs --- */

static int compile_in(const char *text, const struct fetch_place *place, struct fetch *f,
		      struct error *e)
{
	struct fetch_texts texts = {0};
	struct probe_spec p = {0};
	int r = probe_parse(text, &p, e);

	if (r == 0)
		r = fetch_compile(&p, TRACE_WATCH, place, &texts, f, e);
	fetch_texts_free(&texts);
	probe_spec_free(&p);
	return r;
}

static int compile(const char *text, bool all, struct fetch *f, struct error *e)
{
	struct fetch_place place = {
		.machine = EM_X86_64, .btf = types, .function = "vfs_read", .all_parameters = all};

	return compile_in(text, &place, f, e);
}

static uint32_t offset_of(const char *type, const char *member)
{
	struct error e = {0};
	struct ctype_member m;
	struct ctype t;

	assert_int_equal(btf_types_struct(types, type, &t, &e), 0);
	assert_int_equal(ctype_find_member(&t, member, &m, NULL, 0), 0);
	return (uint32_t)m.offset;
}

static void test_kernel_programs(void **state)
{
	struct error e = {0};
	struct fetch f;

	(void)state;
	need_btf();
	if (compile("kprobe:vfs_read count file->f_inode->i_ino file->f_op", false, &f, &e))
		fail_msg("%s", e.text);
	assert_int_equal(f.n_values, 3);
	assert_int_equal(f.ops[0].code, AX_CODE_CTX);
	assert_int_equal(f.ops[0].value, 96); /* dx */
	assert_int_equal(f.values[0].type, VALUE_UNSIGNED);
	assert_int_equal(f.ops[1].code, AX_CODE_CTX);
	assert_int_equal(f.ops[1].value, 112); /* di */
	assert_int_equal(f.ops[2].code, AX_CODE_KERNEL);
	assert_int_equal(f.ops[2].value, offset_of("file", "f_inode"));
	assert_int_equal(f.ops[3].code, AX_CODE_KERNEL);
	assert_int_equal(f.ops[3].value, offset_of("inode", "i_ino"));
	assert_true(f.ops[3].flags & AX_OP_STORE);
	assert_int_equal(f.values[2].type, VALUE_HEX);
	fetch_free(&f);

	if (compile("kprobe:vfs_read arg0->f_path.dentry->d_name.name", false, &f, &e))
		fail_msg("%s", e.text);
	assert_int_equal(f.ops[f.n_ops - 1].code, AX_CODE_KERNEL);
	fetch_free(&f);
	if (compile("kretprobe:vfs_read retval count@entry", false, &f, &e))
		fail_msg("%s", e.text);
	assert_int_equal(f.values[0].type, VALUE_ERRNO);
	assert_int_equal(f.n_kept, 1);
	fetch_free(&f);
	assert_int_equal(compile("kprobe:vfs_read nothing", false, &f, &e), -EINVAL);
	assert_non_null(strstr(e.text, "vfs_read has no parameter nothing: expected one of file,"));
	assert_int_equal(compile("kprobe:vfs_read file->f_inod", false, &f, &e), -EINVAL);
	assert_non_null(strstr(e.text, "did you mean 'f_inode'?"));
	assert_int_equal(compile("kretprobe:vfs_read count", false, &f, &e), -EINVAL);
	assert_non_null(strstr(e.text, "count@entry"));
}

static void test_all_parameters(void **state)
{
	struct error e = {0};
	struct fetch f;

	(void)state;
	need_btf();
	if (compile("kprobe:vfs_read", true, &f, &e))
		fail_msg("%s", e.text);
	assert_int_equal(f.n_values, 4);
	assert_string_equal(f.values[0].name, "file");
	assert_string_equal(f.values[3].name, "pos");
	fetch_free(&f);
	if (compile("kretprobe:vfs_read", true, &f, &e))
		fail_msg("%s", e.text);
	assert_int_equal(f.n_values, 1);
	assert_string_equal(f.values[0].name, "retval");
	fetch_free(&f);
}

static void test_field_of_struct(void **state)
{
	static const char text[] = "name: probed\nID: 7\nformat:\n"
				   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;"
				   "\tsigned:0;\n\n"
				   "\tfield:struct task_struct * task;\toffset:8;\tsize:8;"
				   "\tsigned:0;\n"
				   "\nprint fmt: \"\"\n";
	struct error e = {0};
	struct format format = {0};
	struct fetch_place place = {.machine = EM_X86_64, .btf = types, .format = &format};
	struct fetch f;

	(void)state;
	need_btf();
	if (format_parse(text, &format, &e))
		fail_msg("%s", e.text);
	if (compile_in("tracepoint:x:probed task->pid", &place, &f, &e))
		fail_msg("%s", e.text);
	assert_int_equal(f.n_ops, 2);
	assert_int_equal(f.ops[0].value, 8);
	assert_int_equal(f.ops[1].code, AX_CODE_KERNEL);
	assert_int_equal(f.ops[1].value, offset_of("task_struct", "pid"));
	assert_int_equal(f.ops[1].size, 4);
	assert_int_equal(f.values[0].type, VALUE_SIGNED);
	fetch_free(&f);
	assert_int_equal(compile_in("tracepoint:x:probed task->nope", &place, &f, &e), -EINVAL);
	assert_non_null(strstr(e.text, "struct task_struct has no member nope"));
	format_free(&format);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets),	       cmocka_unit_test(test_members),
		cmocka_unit_test(test_functions),      cmocka_unit_test(test_kernel_programs),
		cmocka_unit_test(test_all_parameters), cmocka_unit_test(test_field_of_struct),
	};

	return cmocka_run_group_tests(tests, open_types, close_types);
}
