// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "health/answer.h"
#include "config/parse.h"

/* Results as + and -, and the state after each as u and d. */
static void assert_states(unsigned fall, unsigned rise, const char *results, const char *states)
{
	struct service_check c = {.fall = (uint16_t)fall, .rise = (uint16_t)rise};
	struct health_state s = {0};
	char got[64];
	size_t i;

	for (i = 0; results[i]; i++) {
		bool was = s.down, changed = health_count(&s, results[i] == '+', &c);

		assert_int_equal(changed, was != s.down);
		got[i] = s.down ? 'd' : 'u';
	}
	got[i] = 0;
	assert_string_equal(got, states);
}

static void only_results_in_a_row_count(void **state)
{
	(void)state;
	assert_states(3, 2, "--------", "uudddddd");
	assert_states(3, 2, "--+--+--+", "uuuuuuuuu");
	assert_states(3, 2, "---+-++-", "uudddduu");
	assert_states(3, 2, "---+-+-+-", "uuddddddd");
	assert_states(1, 1, "+-+-+", "ududu");
	assert_states(2, 3, "--++++--",
		      "udddu"
		      "uud");
	assert_states(3, 2, "---++---", "uudduuud");
}

static void assert_status(const char *text, int status)
{
	assert_int_equal(health_http_status(text, strlen(text)), status);
}

static void the_status_line_is_read(void **state)
{
	static const char whole[] = "HTTP/1.1 200 OK\r\n";

	(void)state;
	for (size_t len = 0; len < sizeof(whole); len++)
		assert_int_equal(health_http_status(whole, len), len > 12 ? 200 : 0);
	assert_status("HTTP/1.0 204\r\n", 204);
	assert_status("HTTP/1.1 599 ", 599);
	assert_status("HTTP/1.0 404\n", 404);
	assert_status("HTTP/1.1 099 X", -EBADMSG);
	assert_status("HTTP/1.1 600 X", -EBADMSG);
	assert_status("HTTP/1.1 2000 X", -EBADMSG);
	assert_status("HTTP/1.1 20 X", -EBADMSG);
	assert_status("HTTP/1.1  200 X", -EBADMSG);
	assert_status("HTTP/11 200 X", -EBADMSG);
	assert_status("http/1.1 200 X", -EBADMSG);
	assert_status("220 ready", -EBADMSG);
	assert_status("SSH-2.0-OpenSSH", -EBADMSG);
	assert_int_equal(health_http_status("HTTP/1.1 200\0", 13), -EBADMSG);
	assert_int_equal(health_http_status("\0", 1), -EBADMSG);
}

static void which_status_is_good(void **state)
{
	struct service_check any = {0}, one = {.status = 404};

	(void)state;
	for (int status = 100; status < 600; status++) {
		assert_int_equal(health_status_good(status, &any), status >= 200 && status < 400);
		assert_int_equal(health_status_good(status, &one), status == 404);
	}
}

static void the_request_is_http_1_0(void **state)
{
	struct service_check c = {.path = NULL};
	autofree char *root = health_http_request(&c, "web"), *path = NULL;

	(void)state;
	assert_string_equal(root, "GET / HTTP/1.0\r\nHost: web\r\nUser-Agent: ax-check\r\n"
				  "Accept: */*\r\nConnection: close\r\n\r\n");
	c.path = (char[]){"/a?b=c"};
	path = health_http_request(&c, "x");
	assert_true(starts_with(path, "GET /a?b=c HTTP/1.0\r\nHost: x\r\n"));
}

static struct service_check check_of(const char *text)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	autofree char *yaml = NULL;
	struct service_check check;
	struct config c;

	assert_true(asprintf(&yaml, "services: {s: {ports: [80], backends: [a], check: %s}}",
			     text) > 0);
	if (config_parse(yaml, strlen(yaml), &c, &errs)) {
		config_errors_print(&errs, "text", stderr);
		fail_msg("refused: %s", text);
	}
	assert_int_equal(service_check_copy(&c.services[0].check, &check), 0);
	config_free(&c);
	return check;
}

static void assert_check(const char *text, struct service_check want)
{
	struct service_check got = check_of(text);

	if (!service_check_eq(&got, &want))
		fail_msg(
			"%s: type %d port %u status %u path %s every %u timeout %u fall %u rise %u",
			text, got.type, got.port, got.status, got.path ? got.path : "-",
			got.every_ms, got.timeout_ms, got.fall, got.rise);
	service_check_free(&got);
}

static void the_config_says_what_is_checked(void **state)
{
	const struct service_check tcp = {
		.type = CHECK_TCP, .every_ms = 2000, .timeout_ms = 1000, .fall = 3, .rise = 2};
	struct service_check c = tcp;

	(void)state;
	assert_check("tcp", tcp);
	assert_check("{type: tcp}", tcp);
	c.every_ms = c.timeout_ms = 500;
	assert_check("{type: tcp, every: 500ms}", c);
	c = tcp;
	c.type = CHECK_HTTP;
	assert_check("http", c);
	c.path = (char[]){"/healthz"};
	assert_check("http /healthz", c);
	assert_check("{path: /healthz, type: http}", c);
	c.status = 204;
	c.port = 8080;
	c.every_ms = 10000;
	c.timeout_ms = 5000;
	c.fall = 1;
	c.rise = 100;
	assert_check("{type: http, path: /healthz, status: 204, port: 8080, every: 10s, "
		     "timeout: 5s, fall: 1, rise: 100}",
		     c);
	assert_check("~", (struct service_check){0});
	c = tcp;
	c.type = CHECK_EXEC;
	c.command = (struct strv){.v = (char *[]){"/bin/ok", "a b", NULL}, .n = 2};
	assert_check("exec /bin/ok 'a b'", c);
	assert_check("passive", (struct service_check){.type = CHECK_PASSIVE,
						       .every_ms = 2000,
						       .timeout_ms = 1000,
						       .fall = 3,
						       .rise = 2,
						       .passive = 5,
						       .window_ms = 10000});
	c.user = (char[]){"daemon"};
	assert_check("{type: exec, command: [/bin/ok, a b], user: daemon}", c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_results_in_a_row_count),
		cmocka_unit_test(the_status_line_is_read),
		cmocka_unit_test(which_status_is_good),
		cmocka_unit_test(the_request_is_http_1_0),
		cmocka_unit_test(the_config_says_what_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
