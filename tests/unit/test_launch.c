/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The launcher, as far as it goes without an agent: names, users, the child, signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "config/spec.h"
#include "launch/launch.h"
#include "launch/parts.h"

/* --- helpers --- */

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SH(text)  ARGS("sh", "-c", text)

struct run {
	struct app_spec spec;
	const struct launch_user *user;
	pid_t pid;	      /* the launcher's */
	int out;	      /* what the command and the launcher print */
	void (*before)(void); /* in the launcher, before anything else */
};

static int launch_here(const struct run *r)
{
	struct launch_plan plan = {.spec = &r->spec,
				   .user = r->user,
				   .cgroup_fd = -1,
				   .close_fd = -1,
				   .netns_fd = -1,
				   .terminal_fd = -1};
	struct launch_child child;
	struct launch_note note;
	struct error e = {0};
	int status;

	if (launch_child_start(&plan, &child, &e) || launch_child_go(&child, &e)) {
		puts(e.text);
		return 99;
	}
	status = launch_wait(&child, NULL, true);
	if (launch_note_recv(child.gate, false, &note)) {
		puts(note.error.text);
		status = note.status;
	}
	launch_child_close(&child);
	return status;
}

/* A launcher is a process of its own: it changes its signals. */
static void start(struct run *r, const char *const *args)
{
	int out[2];

	for (; *args; args++)
		assert_int_equal(strv_add(&r->spec.command, *args), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	fflush(stdout);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0) {
		int status;

		dup2(out[1], STDOUT_FILENO);
		if (r->before)
			r->before();
		status = launch_here(r);
		fflush(stdout);
		_exit(status);
	}
	close(out[1]);
	r->out = out[0];
}

/* Waits until that many bytes came; the text is what came so far. */
static void read_output(struct run *r, char *text, size_t size, size_t wanted)
{
	size_t len = strlen(text);

	while (len < wanted && len + 1 < size) {
		struct pollfd p = {.fd = r->out, .events = POLLIN};
		ssize_t n;

		assert_int_equal(poll(&p, 1, 20000), 1);
		n = read(r->out, text + len, size - 1 - len);
		assert_true(n >= 0);
		if (n == 0)
			break;
		len += (size_t)n;
		text[len] = 0;
	}
}

static int finish(struct run *r, char *text, size_t size)
{
	int status;

	read_output(r, text, size, SIZE_MAX);
	close(r->out);
	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	app_spec_free(&r->spec);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int run_to_end(struct run *r, const char *const *args, char *text, size_t size)
{
	*text = 0;
	start(r, args);
	return finish(r, text, size);
}

static int run_status(const char *const *args, char *text, size_t size)
{
	struct run r = {0};

	return run_to_end(&r, args, text, size);
}

/* --- names --- */

static void check_name(const char *command, const char *expected)
{
	struct app_spec s = {0};
	struct error e;
	char name[LAUNCH_NAME_SIZE];

	if (command)
		assert_int_equal(strv_add(&s.command, command), 0);
	launch_default_name(&s, name, sizeof(name));
	assert_string_equal(name, expected);
	assert_int_equal(spec_check_name(name, &e), 0);
	app_spec_free(&s);
}

static void test_names(void **state)
{
	char longest[200] = "/x/", cut[64];

	(void)state;
	check_name("nginx", "nginx");
	check_name("/usr/sbin/nginx", "nginx");
	check_name("./My_Server.py", "my-server-py");
	check_name("/opt/dir/", "dir");
	check_name("python3.11", "python3-11");
	check_name("7z", "7z");
	check_name("-x-", "x");
	check_name("...", "app");
	check_name("/", "app");
	check_name("", "app");
	check_name(NULL, "app");
	check_name("42", "app");
	check_name("\xc3\xa4pp", "pp");
	memset(longest + 3, 'n', 100);
	memset(cut, 'n', 63);
	cut[63] = 0;
	check_name(longest, cut);
	/* the cut must not leave a '-' at the end */
	longest[3 + 62] = '.';
	cut[62] = 0;
	check_name(longest, cut);
}

/* --- users --- */

static void test_users(void **state)
{
	struct launch_user u;
	struct error e;

	(void)state;
	assert_int_equal(launch_user_find("root", &u, &e), 0);
	assert_int_equal(u.uid, 0);
	assert_int_equal(u.gid, 0);
	assert_string_equal(u.home, "/root");
	assert_true(u.n_groups >= 1);
	launch_user_free(&u);
	assert_int_equal(launch_user_find("0", &u, &e), 0);
	assert_string_equal(u.name, "root");
	launch_user_free(&u);
	assert_int_equal(launch_user_find("root:daemon", &u, &e), 0);
	assert_int_equal(u.uid, 0);
	assert_int_equal(u.gid, 1);
	launch_user_free(&u);
	assert_int_equal(launch_user_find("4123456789", &u, &e), 0);
	assert_int_equal(u.uid, 4123456789u);
	assert_int_equal(u.gid, 4123456789u);
	assert_string_equal(u.home, "/");
	assert_int_equal(u.n_groups, 0);
	launch_user_free(&u);
	assert_int_equal(launch_user_find("4123456789:77", &u, &e), 0);
	assert_int_equal(u.gid, 77);
	launch_user_free(&u);
}

static void test_no_such_user(void **state)
{
	static const char *const wrong[] = {
		"no such user", "",   ":",	    "root:",	  ":root",
		"-1",		"1x", "4294967295", "4294967296", "root:no such group"};
	struct launch_user u;
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		memset(&e, 0, sizeof(e));
		assert_true(launch_user_find(wrong[i], &u, &e) < 0);
		assert_true(strlen(e.text) > 0);
	}
}

static bool can_change_user(void)
{
	return geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_SETUID, 0, 0, 0) == 1 &&
	       prctl(PR_CAPBSET_READ, CAP_SETPCAP, 0, 0, 0) == 1;
}

static void test_become_user(void **state)
{
	struct launch_user u;
	struct error e;
	struct run r = {.user = &u};
	char text[1024];

	(void)state;
	if (!can_change_user())
		skip();
	assert_int_equal(launch_user_find("4123:4124", &u, &e), 0);
	assert_int_equal(strv_add(&r.spec.env, "LOGNAME=given"), 0);
	assert_int_equal(
		run_to_end(&r,
			   SH("echo $HOME $USER $LOGNAME $SHELL; id -u; id -g; id -G; "
			      "grep -E '^(Cap|NoNew)' /proc/self/status | tr -s '\\t\\n' '  '"),
			   text, sizeof(text)),
		0);
	assert_string_equal(text, "/ 4123 given /bin/sh\n4123\n4124\n4124\n"
				  "CapInh: 0000000000000000 CapPrm: 0000000000000000 "
				  "CapEff: 0000000000000000 CapBnd: 0000000000000000 "
				  "CapAmb: 0000000000000000 NoNewPrivs: 0 ");
	launch_user_free(&u);
}

static void test_become_root(void **state)
{
	struct launch_user u;
	struct error e;
	struct run r = {.user = &u};
	char text[1024];

	(void)state;
	if (!can_change_user())
		skip();
	assert_int_equal(launch_user_find("root", &u, &e), 0);
	assert_int_equal(
		run_to_end(&r, SH("id -u; grep CapEff /proc/self/status"), text, sizeof(text)), 0);
	assert_string_equal(text, "0\nCapEff:\t0000000000000000\n");
	launch_user_free(&u);
}

static long keyctl(int what, long a, long b)
{
	return syscall(SYS_keyctl, what, a, b, 0, 0);
}

static void join_keyring(void)
{
	if (keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0, 0) < 0 ||
	    syscall(SYS_add_key, "user", "ax-test-secret", "x", 1, KEY_SPEC_SESSION_KEYRING) < 0)
		perror("keyring");
}

/* /proc/keys shows what the reader possesses. */
#define SEE_KEY SH("grep -o ax-test-secret /proc/keys; true")

static void test_user_has_no_keyring_of_caller(void **state)
{
	struct launch_user u;
	struct error e;
	struct run r = {.user = &u, .before = join_keyring}, own = {.before = join_keyring};
	char text[1024];

	(void)state;
	if (!can_change_user() || keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0)
		skip();
	assert_int_equal(launch_user_find("4123", &u, &e), 0);
	assert_int_equal(run_to_end(&own, SEE_KEY, text, sizeof(text)), 0);
	assert_string_equal(text, "ax-test-secret\n");
	assert_int_equal(run_to_end(&r, SEE_KEY, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	launch_user_free(&u);
}

static void open_ninth(void)
{
	int fd = open("/etc/shadow", O_RDONLY);

	dup2(fd, 9);
	close(fd);
}

#define SEE_NINTH SH("test -e /proc/self/fd/9 && echo open || echo closed")

static void test_user_has_no_descriptor_of_caller(void **state)
{
	struct launch_user u;
	struct error e;
	struct run r = {.user = &u, .before = open_ninth}, own = {.before = open_ninth};
	char text[1024];

	(void)state;
	if (!can_change_user())
		skip();
	assert_int_equal(launch_user_find("4123", &u, &e), 0);
	assert_int_equal(run_to_end(&own, SEE_NINTH, text, sizeof(text)), 0);
	assert_string_equal(text, "open\n");
	assert_int_equal(run_to_end(&r, SEE_NINTH, text, sizeof(text)), 0);
	assert_string_equal(text, "closed\n");
	launch_user_free(&u);
}

#define SEE_SESSION SH("read -r _ _ _ _ _ sid _ </proc/$$/stat; test $sid = $$ && echo own")

static void test_user_has_no_session_of_caller(void **state)
{
	struct launch_user u;
	struct error e;
	struct run r = {.user = &u}, own = {0};
	char text[1024];

	(void)state;
	if (!can_change_user())
		skip();
	assert_int_equal(launch_user_find("4123", &u, &e), 0);
	assert_int_equal(run_to_end(&own, SEE_SESSION, text, sizeof(text)), 1);
	assert_int_equal(run_to_end(&r, SEE_SESSION, text, sizeof(text)), 0);
	assert_string_equal(text, "own\n");
	launch_user_free(&u);
}

/* --- the child --- */

static void test_exit_status(void **state)
{
	char text[1024];

	(void)state;
	assert_int_equal(run_status(ARGS("true"), text, sizeof(text)), 0);
	assert_int_equal(run_status(SH("exit 42"), text, sizeof(text)), 42);
	assert_int_equal(run_status(SH("kill -KILL $$"), text, sizeof(text)), 137);
	assert_int_equal(run_status(SH("kill -TERM $$"), text, sizeof(text)), 143);
	assert_string_equal(text, "");
}

static void test_not_executed(void **state)
{
	char text[1024];

	(void)state;
	assert_int_equal(run_status(ARGS("no such command"), text, sizeof(text)), 127);
	assert_string_equal(text, "no such command: No such file or directory\n");
	assert_int_equal(run_status(ARGS("/etc/passwd/x"), text, sizeof(text)), 127);
	assert_string_equal(text, "/etc/passwd/x: Not a directory\n");
	assert_int_equal(run_status(ARGS("/etc"), text, sizeof(text)), 126);
	assert_string_equal(text, "/etc: Permission denied\n");
	/* a status of the command's own is not taken for one of these */
	assert_int_equal(run_status(SH("exit 127"), text, sizeof(text)), 127);
	assert_string_equal(text, "");
}

static void test_environment(void **state)
{
	struct run r = {0};
	char text[1024];

	(void)state;
	setenv("AX_TEST_KEPT", "kept", 1);
	setenv("AX_TEST_CHANGED", "old", 1);
	assert_int_equal(strv_add(&r.spec.env, "AX_TEST_CHANGED=x=y"), 0);
	assert_int_equal(strv_add(&r.spec.env, "AX_TEST_NEW="), 0);
	assert_int_equal(
		run_to_end(&r, SH("echo \"$AX_TEST_KEPT,$AX_TEST_CHANGED,${AX_TEST_NEW-unset}\""),
			   text, sizeof(text)),
		0);
	assert_string_equal(text, "kept,x=y,\n");
}

static void test_path_of_the_app(void **state)
{
	struct run r = {0};
	char text[1024];

	(void)state;
	assert_int_equal(strv_add(&r.spec.env, "PATH=/nowhere"), 0);
	assert_int_equal(run_to_end(&r, ARGS("true"), text, sizeof(text)), 127);
}

static void test_directory(void **state)
{
	struct run r = {.spec.directory = strdup("/usr")}, wrong = {0};
	char text[1024];

	(void)state;
	assert_int_equal(run_to_end(&r, ARGS("pwd"), text, sizeof(text)), 0);
	assert_string_equal(text, "/usr\n");
	wrong.spec.directory = strdup("/no/such/directory");
	assert_int_equal(run_to_end(&wrong, ARGS("pwd"), text, sizeof(text)), LAUNCH_FAILED);
	assert_non_null(strstr(text, "cannot change to the directory /no/such/directory"));
}

static void test_descriptors(void **state)
{
	char before[256], inside[256];
	FILE *f = popen("ls /proc/self/fd | wc -l", "re");

	(void)state;
	assert_non_null(f);
	assert_non_null(fgets(before, sizeof(before), f));
	pclose(f);
	assert_int_equal(run_status(SH("ls /proc/self/fd | wc -l"), inside, sizeof(inside)), 0);
	assert_string_equal(inside, before);
}

/* --- signals --- */

static void ignore_some(void)
{
	sigset_t set;

	signal(SIGHUP, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static unsigned long long ignored_here(void)
{
	unsigned long long mask = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "SigIgn: %llx", &mask);
	if (f)
		fclose(f);
	return mask;
}

static void test_caller_signals(void **state)
{
	struct run r = {.before = ignore_some};
	char text[1024], expected[128];

	(void)state;
	assert_int_equal(run_to_end(&r, ARGS("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"),
				    text, sizeof(text)),
			 0);
	/* besides those that whoever runs the tests ignores */
	snprintf(expected, sizeof(expected), "SigBlk:\t%016llx\nSigIgn:\t%016llx\n",
		 1ull << (SIGUSR2 - 1),
		 ignored_here() | 1ull << (SIGHUP - 1) | 1ull << (SIGCHLD - 1));
	assert_string_equal(text, expected);
}

static void test_passed_on(void **state)
{
	static const int sigs[] = {SIGTERM, SIGHUP,  SIGINT,  SIGQUIT,	SIGUSR1,
				   SIGUSR2, SIGALRM, SIGABRT, SIGWINCH, SIGPIPE};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++) {
		struct run r = {0};
		char script[128], text[64] = "";

		snprintf(script, sizeof(script),
			 "trap 'kill $!; exit 7' %d; sleep 20 >/dev/null & echo; wait", sigs[i]);
		start(&r, SH(script));
		read_output(&r, text, sizeof(text), 1); /* the trap is set */
		assert_int_equal(kill(r.pid, sigs[i]), 0);
		assert_int_equal(finish(&r, text, sizeof(text)), 7);
	}
}

/* The launcher is ended by nothing but the command, and tells its signal in the status. */
static void test_default_action(void **state)
{
	struct run r = {0};
	char text[64] = "";

	(void)state;
	start(&r, SH("echo; exec sleep 20"));
	read_output(&r, text, sizeof(text), 1);
	assert_int_equal(kill(r.pid, SIGRTMIN + 3), 0);
	assert_int_equal(finish(&r, text, sizeof(text)), 128 + SIGRTMIN + 3);
}

static void test_queued_value(void **state)
{
	struct run r = {0};
	char text[64] = "";
	union sigval value = {.sival_int = 1234};

	(void)state;
	start(&r, ARGS("python3", "-c",
		       "import signal\n"
		       "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])\n"
		       "print(flush=True)\n"
		       "i = signal.sigtimedwait([signal.SIGRTMIN], 20)\n"
		       "exit(7 if i and i.si_code == -1 else 8)\n"));
	read_output(&r, text, sizeof(text), 1);
	assert_int_equal(sigqueue(r.pid, SIGRTMIN, value), 0);
	assert_int_equal(finish(&r, text, sizeof(text)), 7);
}

static void test_not_to_its_sender(void **state)
{
	char text[64];

	(void)state;
	assert_int_equal(run_status(SH("kill -TERM $PPID; kill -USR1 $PPID; sleep 0.2; exit 3"),
				    text, sizeof(text)),
			 3);
}

static void test_killed_before_exec(void **state)
{
	struct launch_plan plan = {
		.cgroup_fd = -1, .close_fd = -1, .netns_fd = -1, .terminal_fd = -1};
	struct app_spec spec = {0};
	struct launch_child child;
	struct error e;

	(void)state;
	plan.spec = &spec;
	assert_int_equal(strv_add(&spec.command, "true"), 0);
	assert_int_equal(launch_child_start(&plan, &child, &e), 0);
	launch_child_kill(&child);
	assert_int_equal(kill(child.pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	app_spec_free(&spec);
}

/* A child whose parent goes away before the word to go ends without executing anything. */
static void test_parent_gone(void **state)
{
	struct launch_plan plan = {
		.cgroup_fd = -1, .close_fd = -1, .netns_fd = -1, .terminal_fd = -1};
	struct app_spec spec = {0};
	struct launch_child child;
	siginfo_t si = {0};
	struct error e;

	(void)state;
	plan.spec = &spec;
	assert_int_equal(strv_add(&spec.command, "true"), 0);
	assert_int_equal(launch_child_start(&plan, &child, &e), 0);
	close_fd(&child.gate);
	assert_int_equal(waitid(P_PIDFD, (id_t)child.pidfd, &si, WEXITED), 0);
	assert_int_equal(si.si_status, LAUNCH_FAILED);
	launch_child_close(&child);
	app_spec_free(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_no_such_user),
		cmocka_unit_test(test_become_user),
		cmocka_unit_test(test_become_root),
		cmocka_unit_test(test_user_has_no_keyring_of_caller),
		cmocka_unit_test(test_user_has_no_descriptor_of_caller),
		cmocka_unit_test(test_user_has_no_session_of_caller),
		cmocka_unit_test(test_exit_status),
		cmocka_unit_test(test_not_executed),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_path_of_the_app),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_caller_signals),
		cmocka_unit_test(test_passed_on),
		cmocka_unit_test(test_default_action),
		cmocka_unit_test(test_queued_value),
		cmocka_unit_test(test_not_to_its_sender),
		cmocka_unit_test(test_killed_before_exec),
		cmocka_unit_test(test_parent_gone),
	};

	/* a directory of the caller's that cannot be searched would turn ENOENT into EACCES */
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
