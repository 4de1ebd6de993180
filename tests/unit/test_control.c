// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "control/control.h"

/* --- specifications --- */

static struct app_spec from_text(const char *text)
{
	json_t *j = json_loads(text, 0, NULL);
	struct app_spec s;
	struct error e;

	assert_non_null(j);
	if (control_spec_from_json(j, &s, &e))
		fail_msg("%s: %s", text, e.text);
	json_decref(j);
	return s;
}

static void assert_round_trip(const struct app_spec *s)
{
	json_t *j = control_spec_to_json(s);
	autofree char *line = j ? json_dumps(j, JSON_COMPACT) : NULL;
	struct app_spec again;
	json_t *parsed;
	struct error e;

	assert_non_null(line);
	assert_int_equal(control_parse_line(line, line ? strlen(line) : 0, &parsed, &e), 0);
	assert_int_equal(control_spec_from_json(parsed, &again, &e), 0);
	if (!app_spec_eq(s, &again))
		fail_msg("changed on its way: %s", line);
	app_spec_free(&again);
	json_decref(parsed);
	json_decref(j);
}

static void every_field_makes_the_round_trip(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"name\":\"web-1\"}",
		"{\"ip4\":\"1.2.3.4\"}",
		"{\"ip4\":\"0.0.0.0\"}",
		"{\"ip6\":\"fd00::1\"}",
		"{\"labels\":\"\"}",
		"{\"labels\":\"a=b,zone=eu\"}",
		"{\"user\":\"nobody\"}",
		"{\"user\":\"65534\"}",
		"{\"net\":\"host\"}",
		"{\"net\":\"private\"}",
		"{\"env\":[]}",
		"{\"env\":[\"A=\",\"B=x=y\",\"C=\\u00e4\\n\\t\\\"\"]}",
		"{\"command\":[]}",
		"{\"command\":[\"/bin/sh\",\"-c\",\"\",\"a b\"]}",
		"{\"directory\":\"/srv/w w\"}",
		"{\"wait_ms\":0}",
		"{\"wait_ms\":4294967295}",
		"{\"egress\":true}",
		"{\"detach\":true}",
		"{\"restart\":\"no\"}",
		"{\"restart\":\"on-failure\"}",
		"{\"restart\":\"always\"}",
		"{\"splice\":\"auto\"}",
		"{\"splice\":\"forced\"}",
		"{\"splice_emulation\":true}",
		"{\"memory\":1048576,\"cpus_milli\":1500,\"pids\":7,\"read_only\":true}",
		"{\"volumes\":[\"/a:/b\",\"/c:/d:ro\"]}",
		"{\"expose\":[\"8080:80/tcp\",\"[::1]:53:53/udp\"]}",
		"{\"name\":\"a\",\"ip4\":\"10.0.0.1\",\"ip6\":\"fd00::2\",\"labels\":\"k=v\","
		"\"user\":\"u\",\"net\":\"host\",\"env\":[\"K=V\"],\"command\":[\"x\"],"
		"\"directory\":\"/\",\"wait_ms\":7,\"egress\":true,\"detach\":true,"
		"\"restart\":\"always\"}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct app_spec s = from_text(texts[i]);

		assert_round_trip(&s);
		app_spec_free(&s);
	}
}

static void fields_arrive_where_they_belong(void **state)
{
	struct app_spec s = from_text(
		"{\"name\":\"a\",\"ip4\":\"10.0.0.1\",\"ip6\":\"fd00::2\",\"labels\":\"k=v,l=w\","
		"\"user\":\"u\",\"net\":\"host\",\"env\":[\"K=V\"],\"command\":[\"x\",\"y\"],"
		"\"directory\":\"/d\",\"wait_ms\":7,\"egress\":true,\"detach\":true,"
		"\"restart\":\"on-failure\",\"splice\":\"off\",\"splice_emulation\":true,"
		"\"memory\":1048576,"
		"\"cpus_milli\":1500,\"pids\":7,\"volumes\":[\"/a:/b:ro\"],\"read_only\":true}");
	char text[ADDR_STRLEN];

	(void)state;
	assert_string_equal(s.name, "a");
	assert_string_equal(addr_format(&s.ip4, text), "10.0.0.1");
	assert_string_equal(addr_format(&s.ip6, text), "fd00::2");
	assert_int_equal(s.labels.n, 2);
	assert_string_equal(s.user, "u");
	assert_int_equal(s.net, NET_HOST);
	assert_int_equal(s.env.n, 1);
	assert_int_equal(s.command.n, 2);
	assert_string_equal(s.command.v[1], "y");
	assert_null(s.command.v[2]);
	assert_string_equal(s.directory, "/d");
	assert_int_equal(s.wait_ms, 7);
	assert_true(s.egress.mode == EGRESS_ALL && s.detach);
	assert_int_equal(s.restart, RESTART_ON_FAILURE);
	assert_int_equal(s.splice, SPLICE_OFF);
	assert_true(s.splice_emulation);
	assert_int_equal(s.memory, 1048576);
	assert_int_equal(s.cpus, 1500);
	assert_int_equal(s.pids, 7);
	assert_int_equal(s.volumes.n, 1);
	assert_string_equal(s.volumes.v[0], "/a:/b:ro");
	assert_true(s.read_only);
	app_spec_free(&s);
}

static void wrong_specifications_are_explained(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"[]", "not a JSON object"},
		{"{\"nmae\":\"a\"}", "no 'nmae'"},
		{"{\"\":1}", "no ''"},
		{"{\"name\":1}", "'name'"},
		{"{\"name\":null}", "'name'"},
		{"{\"name\":\"A_B\"}", "lower-case"},
		{"{\"name\":\"\"}", "1 to 63"},
		{"{\"ip4\":\"fd00::1\"}", "'ip4'"},
		{"{\"ip4\":\"1.2.3\"}", "'ip4'"},
		{"{\"ip4\":4}", "'ip4'"},
		{"{\"ip6\":\"1.2.3.4\"}", "'ip6'"},
		{"{\"ip6\":\"::ffff:1.2.3.4\"}", "'ip6'"},
		{"{\"labels\":\"a\"}", "key=value"},
		{"{\"labels\":{}}", "'labels'"},
		{"{\"user\":\"\"}", "'user'"},
		{"{\"user\":0}", "'user'"},
		{"{\"directory\":\"\"}", "'directory'"},
		{"{\"net\":\"bridge\"}", "private or host"},
		{"{\"net\":true}", "'net'"},
		{"{\"restart\":\"never\"}", "on-failure"},
		{"{\"restart\":[]}", "'restart'"},
		{"{\"splice\":\"no\"}", "forced"},
		{"{\"splice\":true}", "'splice'"},
		{"{\"splice_emulation\":\"on\"}", "'splice_emulation'"},
		{"{\"memory\":-1}", "'memory'"},
		{"{\"cpus_milli\":1e9}", "'cpus_milli'"},
		{"{\"pids\":9999999}", "'pids'"},
		{"{\"volumes\":[\"a:/b\"]}", "absolute paths"},
		{"{\"volumes\":[1]}", "'volumes'"},
		{"{\"read_only\":1}", "'read_only'"},
		{"{\"env\":\"A=B\"}", "'env'"},
		{"{\"env\":[\"A\"]}", "KEY=VALUE"},
		{"{\"env\":[\"=B\"]}", "KEY=VALUE"},
		{"{\"env\":[\"A=B\",1]}", "'env'"},
		{"{\"command\":\"true\"}", "'command'"},
		{"{\"command\":[\"a\",null]}", "'command'"},
		{"{\"wait_ms\":-1}", "'wait_ms'"},
		{"{\"wait_ms\":4294967296}", "'wait_ms'"},
		{"{\"wait_ms\":1.5}", "'wait_ms'"},
		{"{\"wait_ms\":\"5s\"}", "'wait_ms'"},
		{"{\"egress\":1}", "'egress'"},
		{"{\"detach\":\"yes\"}", "'detach'"},
		{"{\"name\":\"a\",\"command\":[\"x\"],\"env\":[\"A=B\"],\"labels\":\"a=b\","
		 "\"user\":\"u\",\"directory\":\"/\",\"bad\":0}",
		 "no 'bad'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *j = json_loads(cases[i].text, 0, NULL);
		struct error e = {0};
		struct app_spec s;

		assert_non_null(j);
		assert_int_equal(control_spec_from_json(j, &s, &e), -EINVAL);
		assert_int_equal(e.code, -EINVAL);
		if (!strstr(e.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, e.text);
		assert_int_equal(control_spec_from_json(j, &s, NULL), -EINVAL);
		json_decref(j);
	}
}

static void text_that_is_not_utf8_is_refused(void **state)
{
	char *words[] = {(char[]){'\xff', 0}, NULL};
	struct app_spec s = {.command = {.v = words, .n = 1}};

	(void)state;
	assert_null(control_spec_to_json(&s));
}

/* --- lines --- */

static void lines_are_objects(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *says;
	} cases[] = {
		{"", 0, "not JSON"},
		{" ", 1, "not JSON"},
		{"{", 1, "not JSON"},
		{"{} {}", 5, "not JSON"},
		{"{\"a\":1,\"a\":2}", 13, "not JSON"},
		{"{\"a\":\"\xff\"}", 9, "not JSON"},
		{"{\"a\":\"\\u0000\"}", 14, "not JSON"},
		{"[]", 2, "not a JSON object"},
		{"1", 1, "not"},
		{"{}\0", 3, "NUL"},
		{"{\"a\0\":1}", 8, "NUL"},
	};
	json_t *j;
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		e = (struct error){0};
		assert_int_equal(control_parse_line(cases[i].text, cases[i].len, &j, &e), -EBADMSG);
		assert_int_equal(e.code, -EBADMSG);
		if (!strstr(e.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, e.text);
	}
	assert_int_equal(control_parse_line("{\"a\":[{}]} trailing", 10, &j, &e), 0);
	assert_true(json_is_array(json_object_get(j, "a")));
	json_decref(j);
}

/* --- the socket --- */

struct pair {
	struct control_conn c; /* the client */
	int peer;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	int fds[2];

	if (!p || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	p->c.fd = fds[0];
	p->peer = fds[1];
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	control_close(&p->c);
	assert_int_equal(p->c.fd, -1);
	close_fd(&p->peer);
	free(p);
	return 0;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
}

static void assert_receives(struct pair *p, const char *key, int value)
{
	struct error e = {0};
	json_t *j;

	if (control_recv(&p->c, &j, NULL, &e))
		fail_msg("%s", e.text);
	assert_int_equal(json_integer_value(json_object_get(j, key)), value);
	json_decref(j);
}

static void several_lines_in_one_piece(void **state)
{
	struct pair *p = *state;

	say(p->peer, "{\"a\":1}\n{\"a\":2}\n{\"a\":3");
	assert_receives(p, "a", 1);
	assert_receives(p, "a", 2);
	say(p->peer, "3}\n");
	assert_receives(p, "a", 33);
}

static void *dribble(void *arg)
{
	static const char text[] = "{\"a\":1}\n{\"b\" : 22}\n";

	for (size_t i = 0; i < strlen(text); i++) {
		if (send(*(int *)arg, text + i, 1, MSG_NOSIGNAL) != 1)
			return arg;
		usleep(200);
	}
	return NULL;
}

static void a_line_in_single_bytes(void **state)
{
	struct pair *p = *state;
	pthread_t t;
	void *failed;

	assert_int_equal(pthread_create(&t, NULL, dribble, &p->peer), 0);
	assert_receives(p, "a", 1);
	assert_receives(p, "b", 22);
	assert_int_equal(pthread_join(t, &failed), 0);
	assert_null(failed);
}

static void descriptors_travel_with_their_line(void **state)
{
	struct pair *p = *state;
	struct control_conn peer = {.fd = p->peer};
	autoclose int null = open("/dev/null", O_RDONLY | O_CLOEXEC), got = -1;
	struct stat a, b;
	struct error e;
	json_t *j = json_pack("{s:i}", "n", 1), *r;

	assert_int_equal(control_send(&peer, j, null, &e), 0);
	assert_int_equal(control_recv(&p->c, &r, &got, &e), 0);
	assert_true(json_equal(j, r));
	json_decref(r);
	assert_true(got >= 0 && got != null);
	assert_int_equal(fcntl(got, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstat(got, &a) | fstat(null, &b), 0);
	assert_true(a.st_rdev == b.st_rdev);
	close_fd(&got);

	got = 77; /* without one it says so */
	assert_int_equal(control_send(&peer, j, -1, &e), 0);
	assert_int_equal(control_recv(&p->c, &r, &got, &e), 0);
	assert_int_equal(got, -1);
	json_decref(r);
	json_decref(j);
	free(peer.buf);
}

static size_t open_descriptors(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void unwanted_descriptors_are_closed(void **state)
{
	struct pair *p = *state;
	struct control_conn peer = {.fd = p->peer};
	json_t *j = json_pack("{s:i}", "n", 1), *r;
	size_t before = open_descriptors();
	struct error e;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(control_send(&peer, j, p->peer, &e), 0);
		assert_int_equal(control_recv(&p->c, &r, NULL, &e), 0);
		json_decref(r);
	}
	assert_int_equal(open_descriptors(), before);
	json_decref(j);
}

static void a_long_line_arrives_whole(void **state)
{
	struct pair *p = *state;
	struct control_conn peer = {.fd = p->peer};
	autofree char *text = malloc(100001);
	struct error e;
	json_t *j, *r;

	assert_non_null(text);
	memset(text, 'x', 100000);
	text[100000] = 0;
	j = json_pack("{s:s}", "t", text);
	assert_int_equal(control_send(&peer, j, -1, &e), 0);
	assert_int_equal(control_recv(&p->c, &r, NULL, &e), 0);
	assert_true(json_equal(j, r));
	json_decref(r);
	json_decref(j);
}

/* Sends spaces until the other end has closed. */
static void *flood(void *arg)
{
	static char spaces[65536];
	int fd = *(int *)arg;

	memset(spaces, ' ', sizeof(spaces));
	while (send(fd, spaces, sizeof(spaces), MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

static void a_line_without_end_is_refused(void **state)
{
	struct pair *p = *state;
	struct error e = {0};
	pthread_t t;
	json_t *j;

	assert_int_equal(pthread_create(&t, NULL, flood, &p->peer), 0);
	assert_int_equal(control_recv(&p->c, &j, NULL, &e), -EMSGSIZE);
	assert_int_equal(e.code, -EMSGSIZE);
	assert_non_null(strstr(e.text, "longer than"));
	assert_true(p->c.len > CONTROL_LINE_MAX && p->c.size <= 2 * CONTROL_LINE_MAX);
	control_close(&p->c);
	assert_int_equal(pthread_join(t, NULL), 0);
}

static void the_longest_line_is_exact(void **state)
{
	struct pair *p = *state;
	struct error e = {0};
	json_t *j;

	/* as if it had all been read already */
	p->c.size = CONTROL_LINE_MAX + 16;
	p->c.buf = malloc(p->c.size);
	assert_non_null(p->c.buf);
	memset(p->c.buf, ' ', p->c.size);
	memcpy(p->c.buf, "{}", 2);
	p->c.buf[CONTROL_LINE_MAX] = '\n';
	p->c.len = CONTROL_LINE_MAX + 1;
	assert_int_equal(control_recv(&p->c, &j, NULL, &e), 0);
	json_decref(j);
	assert_int_equal(p->c.len, 0);
	p->c.buf[CONTROL_LINE_MAX] = ' ';
	p->c.buf[CONTROL_LINE_MAX + 1] = '\n';
	p->c.len = CONTROL_LINE_MAX + 2;
	assert_int_equal(control_recv(&p->c, &j, NULL, &e), -EMSGSIZE);
}

static void a_closed_connection_is_explained(void **state)
{
	struct pair *p = *state;
	struct error e = {0};
	json_t *j;

	say(p->peer, "{\"half\":");
	close_fd(&p->peer);
	assert_int_equal(control_recv(&p->c, &j, NULL, &e), -ECONNRESET);
	assert_non_null(strstr(e.text, "went away"));
	j = json_object();
	assert_int_equal(control_send(&p->c, j, -1, &e), -EPIPE);
	assert_non_null(strstr(e.text, "closed"));
	json_decref(j);
}

static void a_bad_line_is_passed_over(void **state)
{
	struct pair *p = *state;
	struct error e = {0};
	json_t *j;

	say(p->peer, "nonsense\n{\"a\":1}\n");
	assert_int_equal(control_recv(&p->c, &j, NULL, &e), -EBADMSG);
	assert_receives(p, "a", 1);
}

static void calls_return_the_agents_errno(void **state)
{
	struct pair *p = *state;
	json_t *request = json_pack("{s:s}", "op", "x"), *r;
	struct error e = {0};

	say(p->peer, "{\"ok\":true,\"n\":5}\n");
	assert_int_equal(control_call(&p->c, request, -1, &r, NULL, &e), 0);
	assert_int_equal(json_integer_value(json_object_get(r, "n")), 5);
	json_decref(r);

	say(p->peer, "{\"ok\":false,\"errno\":17,\"error\":\"100%s is taken: use another\"}\n");
	assert_int_equal(control_call(&p->c, request, -1, &r, NULL, &e), -EEXIST);
	assert_string_equal(e.text, "100%s is taken: use another");
	assert_true(json_is_object(r));
	json_decref(r);

	say(p->peer, "{\"ok\":false}\n");
	assert_int_equal(control_call(&p->c, request, -1, NULL, NULL, &e), -EPROTO);
	say(p->peer, "{\"ok\":false,\"errno\":-5}\n");
	assert_int_equal(control_call(&p->c, request, -1, NULL, NULL, &e), -EPROTO);
	say(p->peer, "{}\n");
	assert_int_equal(control_call(&p->c, request, -1, NULL, NULL, &e), -EPROTO);
	assert_true(*e.text);

	close_fd(&p->peer);
	assert_true(control_call(&p->c, request, -1, &r, NULL, &e) < 0);
	assert_null(r);
	json_decref(request);
}

static void no_agent_is_explained(void **state)
{
	char path[200] = "/nonexistent/control.sock";
	struct control_conn c;
	struct error e = {0};

	(void)state;
	assert_int_equal(control_connect(path, &c, &e), -ENOENT);
	assert_non_null(strstr(e.text, path));
	assert_non_null(strstr(e.text, "ax agent"));
	memset(path + 1, 'x', sizeof(path) - 2);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(control_connect(path, &c, &e), -ENAMETOOLONG);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_makes_the_round_trip),
		cmocka_unit_test(fields_arrive_where_they_belong),
		cmocka_unit_test(wrong_specifications_are_explained),
		cmocka_unit_test(text_that_is_not_utf8_is_refused),
		cmocka_unit_test(lines_are_objects),
		TEST(several_lines_in_one_piece),
		TEST(a_line_in_single_bytes),
		TEST(descriptors_travel_with_their_line),
		TEST(unwanted_descriptors_are_closed),
		TEST(a_long_line_arrives_whole),
		TEST(a_line_without_end_is_refused),
		TEST(the_longest_line_is_exact),
		TEST(a_closed_connection_is_explained),
		TEST(a_bad_line_is_passed_over),
		TEST(calls_return_the_agents_errno),
		cmocka_unit_test(no_agent_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
