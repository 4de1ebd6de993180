// SPDX-License-Identifier: GPL-2.0-or-later
/* Of the kernel's types those that a program names: they say of each member what all of them say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <string.h>
#include <unistd.h>

#include "probes/btf/few_types.h"

struct both {
	struct btf *all, *few;
	size_t members;
};

static struct btf *program_types(void)
{
	/* a flavor of a struct, as programs have them for several kernels */
	static const char *const structs[] = {"task_struct", "signal_struct___older",
					      "mm_struct",   "vm_area_struct",
					      "sk_buff",     "no_such_struct"};
	struct btf *b = btf__new_empty();

	assert_non_null(b);
	for (size_t i = 0; i < sizeof(structs) / sizeof(*structs); i++)
		assert_true(btf__add_struct(b, structs[i], 0) > 0);
	assert_true(btf__add_union(b, "bpf_attr", 0) > 0);
	assert_true(btf__add_enum(b, "pid_type", 4) > 0);
	return b;
}

static bool begin(struct both *x)
{
	struct btf *program = program_types();
	struct few_types types;

	*x = (struct both){.all = btf__load_vmlinux_btf()};
	if (!x->all) { /* a kernel without types: then there are no few of them either */
		assert_true(few_types_of(program, &types) < 0);
		btf__free(program);
		return false;
	}
	assert_int_equal(few_types_of(program, &types), 0);
	x->few = btf__parse(types.path, NULL);
	assert_non_null(x->few);
	few_types_close(&types);
	btf__free(program);
	return true;
}

static void end(struct both *x)
{
	btf__free(x->all);
	btf__free(x->few);
}

static int plain(const struct btf *b, int id)
{
	const struct btf_type *t = btf__type_by_id(b, (uint32_t)id);

	while (btf_is_mod(t) || btf_is_typedef(t)) {
		id = (int)t->type;
		t = btf__type_by_id(b, (uint32_t)id);
	}
	return id;
}

/* Of two types that shall be the same. */
static void compare(struct both *x, int all_id, int few_id, int depth)
{
	int a = plain(x->all, all_id), f = plain(x->few, few_id);
	const struct btf_type *t = btf__type_by_id(x->all, (uint32_t)a);
	const struct btf_type *u = btf__type_by_id(x->few, (uint32_t)f);

	assert_true(depth < 32);
	assert_int_equal(btf_kind(t), btf_kind(u));
	if (btf_is_ptr(t))
		return;
	assert_int_equal(btf__resolve_size(x->all, (uint32_t)a),
			 btf__resolve_size(x->few, (uint32_t)f));
	if (btf_is_array(t)) {
		assert_int_equal(btf_array(t)->nelems, btf_array(u)->nelems);
		compare(x, (int)btf_array(t)->type, (int)btf_array(u)->type, depth + 1);
		return;
	}
	assert_string_equal(btf__name_by_offset(x->all, t->name_off),
			    btf__name_by_offset(x->few, u->name_off));
	if (btf_is_int(t))
		assert_int_equal(btf_int_encoding(t), btf_int_encoding(u));
	if (!btf_is_composite(t))
		return;
	assert_int_equal(btf_vlen(t), btf_vlen(u));
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		const struct btf_member *m = btf_members(t) + i, *n = btf_members(u) + i;

		assert_string_equal(btf__name_by_offset(x->all, m->name_off),
				    btf__name_by_offset(x->few, n->name_off));
		assert_int_equal(btf_member_bit_offset(t, i), btf_member_bit_offset(u, i));
		assert_int_equal(btf_member_bitfield_size(t, i), btf_member_bitfield_size(u, i));
		compare(x, (int)m->type, (int)n->type, depth + 1);
		x->members++;
	}
}

static void members_are_where_they_are(void **state)
{
	static const char *const structs[] = {"task_struct", "signal_struct", "mm_struct",
					      "vm_area_struct", "sk_buff"};
	struct both x;

	(void)state;
	if (!begin(&x))
		skip();
	for (size_t i = 0; i < sizeof(structs) / sizeof(*structs); i++) {
		int a = btf__find_by_name_kind(x.all, structs[i], BTF_KIND_STRUCT);
		int f = btf__find_by_name_kind(x.few, structs[i], BTF_KIND_STRUCT);

		assert_true(a > 0 && f > 0);
		compare(&x, a, f, 0);
	}
	compare(&x, btf__find_by_name_kind(x.all, "bpf_attr", BTF_KIND_UNION),
		btf__find_by_name_kind(x.few, "bpf_attr", BTF_KIND_UNION), 0);
	assert_true(x.members > 500);
	end(&x);
}

static void values_of_enums_are_there(void **state)
{
	const struct btf_type *t, *u;
	struct both x;

	(void)state;
	if (!begin(&x))
		skip();
	t = btf__type_by_id(x.all,
			    (uint32_t)btf__find_by_name_kind(x.all, "pid_type", BTF_KIND_ENUM));
	u = btf__type_by_id(x.few,
			    (uint32_t)btf__find_by_name_kind(x.few, "pid_type", BTF_KIND_ENUM));
	assert_true(btf_vlen(t) > 2);
	assert_int_equal(btf_vlen(t), btf_vlen(u));
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		assert_string_equal(btf__name_by_offset(x.all, btf_enum(t)[i].name_off),
				    btf__name_by_offset(x.few, btf_enum(u)[i].name_off));
		assert_int_equal(btf_enum(t)[i].val, btf_enum(u)[i].val);
	}
	end(&x);
}

static void others_are_not_there(void **state)
{
	struct both x;

	(void)state;
	if (!begin(&x))
		skip();
	assert_true(btf__find_by_name_kind(x.all, "file", BTF_KIND_STRUCT) > 0);
	assert_true(btf__find_by_name_kind(x.few, "file", BTF_KIND_STRUCT) < 0);
	assert_true(btf__find_by_name_kind(x.few, "no_such_struct", BTF_KIND_STRUCT) < 0);
	assert_true(btf__type_cnt(x.few) < btf__type_cnt(x.all) / 20);
	end(&x);
}

/* --- of a skeleton --- */

static const void *no_bytes(size_t *size)
{
	*size = 0;
	errno = EBADMSG;
	return NULL;
}

static const void *no_program(size_t *size)
{
	*size = 4;
	return "text";
}

static void without_a_program_there_are_none(void **state)
{
	struct few_types types = FEW_TYPES_NONE;

	(void)state;
	assert_null(few_types_path(no_bytes, &types));
	assert_null(few_types_path(no_program, &types));
	assert_int_equal(types.fd, -1);
}

static void where_none_is_wanted_there_is_a_file_without_any(void **state)
{
	struct few_types types;
	const char *path = few_types_none(&types);
	struct btf *b;

	(void)state;
	assert_non_null(path);
	b = btf__parse(path, NULL);
	assert_non_null(b);
	assert_int_equal(btf__type_cnt(b), 1); /* void */
	btf__free(b);
	few_types_close(&types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_where_they_are),
		cmocka_unit_test(values_of_enums_are_there),
		cmocka_unit_test(others_are_not_there),
		cmocka_unit_test(without_a_program_there_are_none),
		cmocka_unit_test(where_none_is_wanted_there_is_a_file_without_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
