// SPDX-License-Identifier: GPL-2.0-or-later
/* Fetch programs that are run for a thread that is stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/fetch/evaluate.h"

#define MEMORY 0x1000

static char memory[5000];

static int read_memory(void *arg, uint64_t address, void *to, size_t len)
{
	(void)arg;
	if (address < MEMORY || address - MEMORY > sizeof(memory) - len || len > sizeof(memory))
		return -EFAULT;
	memcpy(to, memory + (address - MEMORY), len);
	return 0;
}

static union {
	struct ax_probe_record record;
	char bytes[4096];
} room;

static size_t evaluate(struct ax_probe_op *ops, size_t n, size_t n_values)
{
	static const uint64_t registers[4] = {0x1122334455667788, MEMORY, 3, (uint64_t)-1};
	const struct fetch f = {.ops = ops, .n_ops = n, .n_values = n_values};
	const struct fetch_thread t = {.registers = registers,
				       .n_registers = sizeof(registers),
				       .pid = 7,
				       .tid = 8,
				       .read = read_memory};

	return fetch_evaluate(&f, &t, &room.record, sizeof(room));
}

static void test_numbers(void **state)
{
	struct ax_probe_op ops[] = {
		{AX_CODE_CTX, AX_OP_STORE, 2, 0, 0, 0},
		{AX_CODE_CTX, AX_OP_STORE | AX_OP_SIGNED, 1, 1, 0, 24},
		{AX_CODE_CTX, 0, 8, 0, 0, 16},
		{AX_CODE_CONST, AX_OP_PUSH, 8, 0, 0, 4},
		{AX_CODE_SUB, AX_OP_STORE, 8, 2, 0, 0},
		{AX_CODE_CTX, AX_OP_STORE, 8, 3, 0, 32}, /* there is no such register */
		{AX_CODE_TID, AX_OP_STORE, 8, 4, 0, 0},
	};

	(void)state;
	assert_int_equal(evaluate(ops, ARRAY_SIZE(ops), 5), sizeof(room.record) + 5 * 8);
	assert_int_equal(room.record.values[0], 0x7788);
	assert_true(room.record.values[1] == UINT64_MAX);
	assert_true(room.record.values[2] == UINT64_MAX);
	assert_int_equal(room.record.values[4], 8);
	assert_int_equal(room.record.faults, 1 << 3);
}

static void test_memory(void **state)
{
	struct ax_probe_op ops[] = {
		{AX_CODE_CTX, 0, 8, 0, 0, 8},
		{AX_CODE_USER, AX_OP_STORE, 4, 0, 0, 8},
		{AX_CODE_CTX, 0, 8, 0, 0, 8},
		{AX_CODE_STRING, AX_OP_STORE, 8, 1, 0, 100},
		{AX_CODE_CONST, 0, 8, 0, 0, 0},
		{AX_CODE_USER, AX_OP_STORE, 1, 2, 0, 0}, /* nothing is there */
		{AX_CODE_CONST, 0, 8, 0, 0, MEMORY + 4990},
		{AX_CODE_BUFFER, AX_OP_STORE, 8, 3, 0, 20}, /* not all of it */
	};
	static const uint8_t bytes[] = {'a', ' ', 't', 'e', 'x', 't', 0, 0, 0x78, 0x56, 0x34, 0x12};
	uint64_t text;

	(void)state;
	memcpy(memory, bytes, sizeof(bytes));
	assert_true(evaluate(ops, ARRAY_SIZE(ops), 4) > 0);
	assert_int_equal(room.record.values[0], 0x12345678);
	text = room.record.values[1];
	assert_int_equal(AX_BYTES_LEN(text), 6);
	assert_string_equal(room.bytes + AX_BYTES_OFF(text), "a text");
	assert_int_equal(room.record.faults, 1 << 2 | 1 << 3);
}

/* A string without an end is cut off at what was asked for, also at what the record has room for.
 */
static void test_bounds(void **state)
{
	struct ax_probe_op ops[] = {
		{AX_CODE_CTX, 0, 8, 0, 0, 8},
		{AX_CODE_STRING, AX_OP_STORE, 8, 0, 0, 10},
		{AX_CODE_CTX, 0, 8, 0, 0, 8},
		{AX_CODE_STRING, AX_OP_STORE, 8, 1, 0, 1 << 20},
		{AX_CODE_CTX, AX_OP_STORE, 200, 200, 0, 0},
	};

	(void)state;
	memset(memory, 'x', sizeof(memory));
	assert_true(evaluate(ops, ARRAY_SIZE(ops), 2) > 0);
	assert_int_equal(AX_BYTES_LEN(room.record.values[0]), 9);
	assert_true(AX_BYTES_OFF(room.record.values[1]) + AX_BYTES_LEN(room.record.values[1]) <
		    sizeof(room));
	assert_int_equal(evaluate(ops, 0, 1000), 0);
}

/* $regs: bytes of the registers themselves. */
static void test_registers(void **state)
{
	struct ax_probe_op ops[] = {
		{AX_CODE_ADDRESS, 0, 8, 0, 0, 8},
		{AX_CODE_BUFFER, AX_OP_STORE | AX_OP_KERNEL, 8, 0, 0, 16},
		{AX_CODE_ADDRESS, 0, 8, 0, 0, 24},
		{AX_CODE_BUFFER, AX_OP_STORE | AX_OP_KERNEL, 8, 1, 0,
		 16}, /* there are not so many */
	};
	const uint64_t expected[] = {MEMORY, 3};

	(void)state;
	assert_true(evaluate(ops, ARRAY_SIZE(ops), 2) > 0);
	assert_int_equal(AX_BYTES_LEN(room.record.values[0]), 16);
	assert_memory_equal(room.bytes + AX_BYTES_OFF(room.record.values[0]), expected, 16);
	assert_int_equal(room.record.faults, 1 << 1);
}

/* (register 3 is all ones) */
static void test_order(void **state)
{
	static const struct {
		uint8_t code, flags;
		uint64_t than, is;
	} rows[] = {
		{AX_CODE_GT, AX_OP_UNSIGNED, 5, 1},
		{AX_CODE_GT, 0, 5, 0},
		{AX_CODE_LT, AX_OP_UNSIGNED, 5, 0},
		{AX_CODE_LT, 0, 5, 1},
		{AX_CODE_GE, AX_OP_UNSIGNED, UINT64_MAX, 1},
		{AX_CODE_LE, AX_OP_UNSIGNED, 5, 0},
		{AX_CODE_LE, 0, 5, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ax_probe_op ops[] = {
			{AX_CODE_CTX, 0, 8, 0, 0, 24},
			{rows[i].code, (uint8_t)(rows[i].flags | AX_OP_IMMEDIATE | AX_OP_STORE), 8,
			 0, 0, rows[i].than},
		};

		assert_true(evaluate(ops, ARRAY_SIZE(ops), 1) > 0);
		assert_int_equal(room.record.values[0], rows[i].is);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),	  cmocka_unit_test(test_order),
		cmocka_unit_test(test_registers), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
