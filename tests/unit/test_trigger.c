// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "packet/trigger.h"

/* HMAC-SHA256 by another implementation:
 * printf 'deploy 1700000000.0123456789abcdef' | openssl dgst -sha256 -hmac 0123456789abcdef */
#define KEY   "0123456789abcdef"
#define NONCE "1700000000.0123456789abcdef"
#define TIME  1700000000
#define MAC   "c9afe8567cb224498eb2adf0164907df67c5a414bb9ac36e19a88fd09f4527c7"
#define GOOD  "deploy " NONCE " " MAC

static int parse(const char *text, struct trigger_message *m)
{
	return trigger_parse(text, strlen(text), m);
}

static struct trigger_message message(const char *text)
{
	struct trigger_message m;

	assert_int_equal(parse(text, &m), 0);
	return m;
}

static void a_datagram_is_taken_apart(void **state)
{
	struct trigger_message m = message(GOOD), n = message(GOOD "\n");

	(void)state;
	assert_string_equal(m.name, "deploy");
	assert_string_equal(m.nonce, NONCE);
	assert_int_equal(m.time, TIME);
	assert_int_equal(m.mac[0], strtol((char[]){MAC[0], MAC[1], 0}, NULL, 16));
	assert_int_equal(m.mac[31], strtol((char[]){MAC[62], MAC[63], 0}, NULL, 16));
	assert_memory_equal(&m, &n, sizeof(m));
	/* the longest and the shortest */
	message("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
		"999999999999.0123456789abcdef0123456789abcdef " MAC "\n");
	m = message("x 0.01234567 " MAC);
	assert_int_equal(m.time, 0);
}

static void anything_else_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		" ",
		"deploy",
		"deploy ",
		"deploy " NONCE,
		"deploy " NONCE " ",
		" " NONCE " " MAC,
		"deploy  " NONCE " " MAC,
		"deploy " NONCE "  " MAC,
		" deploy " NONCE " " MAC,
		"deploy\t" NONCE " " MAC,
		GOOD " ",
		GOOD "\n\n",
		GOOD "\r\n",
		GOOD "0",
		GOOD " x",
		"de/ploy " NONCE " " MAC,
		"d\xc3\xa9ploy " NONCE " " MAC,
		"$(id) " NONCE " " MAC,
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa " NONCE " " MAC,
		"deploy 1700000000 " MAC,
		"deploy 1700000000. " MAC,
		"deploy .0123456789abcdef " MAC,
		"deploy -1700000000.0123456789abcdef " MAC,
		"deploy 01700000000.0123456789abcdef " MAC,
		"deploy 1000000000000.0123456789abcdef " MAC,
		"deploy 1700000000.0123456 " MAC,
		"deploy 1700000000.0123456789abcdef0123456789abcdef0 " MAC,
		"deploy 1700000000.0123456789ABCDEF " MAC,
		"deploy 1700000000.0123456789abcdeg " MAC,
		"deploy " NONCE " 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
		"deploy " NONCE " 0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
		"deploy " NONCE " 0123456789abcdefg123456789abcdef0123456789abcdef0123456789abcdef",
	};
	struct trigger_message m;
	char nul[sizeof(GOOD)] = GOOD;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &m) != -EBADMSG)
			fail_msg("taken: '%s'", bad[i]);
	for (size_t len = 0; len < strlen(GOOD); len++)
		assert_int_equal(trigger_parse(GOOD, len, &m), -EBADMSG);
	for (size_t i = 0; i < strlen(GOOD); i++) {
		nul[i] = 0;
		assert_int_equal(trigger_parse(nul, strlen(GOOD), &m), -EBADMSG);
		nul[i] = GOOD[i];
	}
}

static void the_mac_is_hmac_sha256_of_name_and_nonce(void **state)
{
	static const char *const others[] = {"0123456789abcdee", "0123456789abcde",
					     "0123456789abcdef0", "0123456789abcdef\n"};
	struct trigger_message m = message(GOOD), x;

	(void)state;
	assert_int_equal(trigger_check(&m, KEY, 16, TIME * 1000ll, 30000), 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(
			trigger_check(&m, others[i], strlen(others[i]), TIME * 1000ll, 30000),
			-EKEYREJECTED);
	for (size_t bit = 0; bit < 8 * sizeof(m.mac); bit++) {
		x = m;
		x.mac[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(trigger_check(&x, KEY, 16, TIME * 1000ll, 30000), -EKEYREJECTED);
	}
	x = m;
	x.name[0] = 'D';
	assert_int_equal(trigger_check(&x, KEY, 16, TIME * 1000ll, 30000), -EKEYREJECTED);
	x = m;
	x.nonce[strlen(x.nonce) - 1] = '0';
	assert_int_equal(trigger_check(&x, KEY, 16, TIME * 1000ll, 30000), -EKEYREJECTED);
	/* a wrong key is not told apart by the time */
	assert_int_equal(trigger_check(&x, KEY, 16, 0, 30000), -EKEYREJECTED);
}

static void the_window_is_open_both_ways(void **state)
{
	static const struct {
		int64_t now_ms;
		uint32_t window_ms;
		int result;
	} cases[] = {
		{TIME * 1000ll, 1, 0},
		{TIME * 1000ll + 30000, 30000, 0},
		{TIME * 1000ll + 30001, 30000, -ESTALE},
		{TIME * 1000ll - 30000, 30000, 0},
		{TIME * 1000ll - 30001, 30000, -ESTALE},
		{TIME * 1000ll + 2, 1, -ESTALE},
		{0, 30000, -ESTALE},
		{INT64_MAX, 30000, -ESTALE},
		{TIME * 1000ll + UINT32_MAX, UINT32_MAX, 0},
	};
	struct trigger_message m = message(GOOD);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(trigger_check(&m, KEY, 16, cases[i].now_ms, cases[i].window_ms),
				 cases[i].result);
}

static void what_is_signed_is_good_once(void **state)
{
	struct trigger_seen seen = {0};
	int64_t now_ms = TIME * 1000ll;

	(void)state;
	for (int i = 0; i < 100; i++) {
		autofree char *text = NULL;
		struct trigger_message m;

		assert_int_equal(trigger_sign("a.b_c-9", KEY, 16, TIME, &text), 0);
		assert_int_equal(parse(text, &m), 0);
		assert_int_equal(m.time, TIME);
		assert_int_equal(trigger_check(&m, KEY, 16, now_ms, 30000), 0);
		assert_int_equal(trigger_remember(&seen, &m, now_ms, 30000), 0);
		assert_int_equal(trigger_remember(&seen, &m, now_ms, 30000), -EALREADY);
		assert_int_equal(trigger_remember(&seen, &m, now_ms + 30000, 30000), -EALREADY);
	}
	assert_int_equal(seen.n, 100);
	trigger_seen_free(&seen);
}

static void what_cannot_be_signed_is_refused(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(trigger_sign("", KEY, 16, TIME, &text), -EINVAL);
	assert_int_equal(trigger_sign("a b", KEY, 16, TIME, &text), -EINVAL);
	assert_int_equal(trigger_sign("a\n", KEY, 16, TIME, &text), -EINVAL);
	assert_int_equal(trigger_sign("a", KEY, 15, TIME, &text), -EINVAL);
	assert_int_equal(trigger_sign("a", KEY, 16, -1, &text), -EINVAL);
	assert_int_equal(trigger_sign("a", KEY, 16, 1000000000000, &text), -EINVAL);
}

static struct trigger_message at(int64_t time, uint32_t n)
{
	struct trigger_message m = {.name = "x", .time = time};

	memcpy(m.mac, &n, sizeof(n));
	return m;
}

static void what_is_forgotten_does_not_come_back(void **state)
{
	struct trigger_seen seen = {0};
	struct trigger_message m = at(1000, 1), later = at(1001, 2), early = at(999, 3);
	struct trigger_message new = at(1100, 4);

	(void)state;
	assert_int_equal(trigger_remember(&seen, &m, 1000000, 30000), 0);
	assert_int_equal(trigger_remember(&seen, &new, 1100000, 30000), 0);
	assert_int_equal(seen.n, 1);
	/* the clock was set back */
	assert_int_equal(trigger_remember(&seen, &m, 1000000, 30000), -ESTALE);
	assert_int_equal(trigger_remember(&seen, &early, 1000000, 30000), -ESTALE);
	assert_int_equal(trigger_remember(&seen, &later, 1000000, 30000), 0);
	assert_int_equal(trigger_remember(&seen, &new, 1000000, 30000), -EALREADY);
	trigger_seen_free(&seen);
}

static void the_memory_has_a_bound(void **state)
{
	struct trigger_seen seen = {0};
	struct trigger_message m;

	(void)state;
	for (uint32_t i = 0; i < TRIGGER_SEEN_MAX; i++) {
		m = at(1000 + i / 1000, i);
		assert_int_equal(trigger_remember(&seen, &m, 1000000, 30000), 0);
	}
	m = at(1000, 100000);
	assert_int_equal(trigger_remember(&seen, &m, 1000000, 30000), -ENOSPC);
	m = at(1000, 5);
	assert_int_equal(trigger_remember(&seen, &m, 1000000, 30000), -EALREADY);
	/* the first thousand has left the window */
	m = at(1030, 100001);
	assert_int_equal(trigger_remember(&seen, &m, 1030001, 30000), 0);
	assert_int_equal(seen.n, TRIGGER_SEEN_MAX - 1000 + 1);
	assert_int_equal(seen.horizon, 1000);
	trigger_seen_free(&seen);
}

static void key_files_are_looked_at(void **state)
{
	static const struct {
		const char *text;
		unsigned mode;
		int result;
		size_t len;
	} cases[] = {
		{"0123456789abcdef", 0600, 0, 16},
		{"0123456789abcdef\n", 0600, 0, 16},
		{"0123456789abcdef\n\n", 0400, 0, 17},
		{"0123456789abcdef\r\n", 0640, 0, 17},
		{"0123456789abcde\n", 0600, -EINVAL, 0},
		{"", 0600, -EINVAL, 0},
		{"\n", 0600, -EINVAL, 0},
		{"0123456789abcdef", 0644, -EPERM, 0},
		{"0123456789abcdef", 0604, -EPERM, 0},
		{"0123456789abcdef", 0602, -EPERM, 0},
		{"0123456789abcdef", 0601, -EPERM, 0},
		{"0123456789abcdef", 0660, -EPERM, 0},
	};
	struct trigger_key k;
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[] = "/tmp/ax-key.XXXXXX";
		autoclose int fd = mkstemp(path);
		size_t len = strlen(cases[i].text);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, cases[i].text, len), len);
		assert_int_equal(fchmod(fd, cases[i].mode), 0);
		e.text[0] = 0;
		assert_int_equal(trigger_key_read(path, &k, &e), cases[i].result);
		unlink(path);
		if (cases[i].result) {
			assert_non_null(strstr(e.text, path));
			continue;
		}
		assert_int_equal(k.len, cases[i].len);
		assert_memory_equal(k.data, cases[i].text, k.len);
		trigger_key_free(&k);
		assert_null(k.data);
	}
	assert_int_equal(trigger_key_read("/nonexistent/key", &k, &e), -ENOENT);
	assert_int_equal(trigger_key_read("/tmp", &k, &e), -EINVAL);
}

static void a_key_file_has_a_longest_length(void **state)
{
	char path[] = "/tmp/ax-key.XXXXXX";
	autoclose int fd = mkstemp(path);
	struct trigger_key k;
	struct error e;

	(void)state;
	assert_int_equal(ftruncate(fd, TRIGGER_KEY_MAX), 0);
	assert_int_equal(trigger_key_read(path, &k, &e), 0);
	assert_int_equal(k.len, TRIGGER_KEY_MAX);
	trigger_key_free(&k);
	assert_int_equal(ftruncate(fd, TRIGGER_KEY_MAX + 1), 0);
	assert_int_equal(trigger_key_read(path, &k, &e), -EFBIG);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(trigger_key_read(path, &k, &e), -EINVAL);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_datagram_is_taken_apart),
		cmocka_unit_test(anything_else_is_refused),
		cmocka_unit_test(the_mac_is_hmac_sha256_of_name_and_nonce),
		cmocka_unit_test(the_window_is_open_both_ways),
		cmocka_unit_test(what_is_signed_is_good_once),
		cmocka_unit_test(what_cannot_be_signed_is_refused),
		cmocka_unit_test(what_is_forgotten_does_not_come_back),
		cmocka_unit_test(the_memory_has_a_bound),
		cmocka_unit_test(key_files_are_looked_at),
		cmocka_unit_test(a_key_file_has_a_longest_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
