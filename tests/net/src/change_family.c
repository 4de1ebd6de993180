// SPDX-License-Identifier: GPL-2.0-or-later
/* A process and its children, each of which says what it has in a variable that a tracer changes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define PROBED __attribute__((noinline, noclone))
#define HERE   __asm__ volatile("" ::: "memory")
#define MANY   8

volatile int limit = 10;
static int to[MANY], from[MANY], n;

PROBED long check(long v)
{
	HERE;
	return v % 2;
}

/* Where the probe is. */
PROBED void greet(void)
{
	HERE;
	printf(" %d", limit);
	fflush(stdout);
}

static void peek(void)
{
	printf(" %d", limit);
	fflush(stdout);
}

static void say(char what)
{
	if (what == 'g')
		greet();
	else
		peek();
}

static void child(int in, int out)
{
	char c;

	while (read(in, &c, 1) == 1) {
		say(c);
		if (write(out, "a", 1) != 1)
			break;
	}
	_exit(0);
}

static void make_child(void)
{
	int a[2], b[2];

	if (pipe2(a, O_CLOEXEC) || pipe2(b, O_CLOEXEC) || n == MANY)
		_exit(1);
	if (!fork()) {
		for (int i = 0; i < n; i++)
			close(to[i]);
		close(a[1]);
		child(a[0], b[1]);
	}
	close(a[0]);
	to[n] = a[1];
	from[n++] = b[0];
}

/* Its child has its memory, and becomes another program. */
static void lend(void)
{
	static char *const again[] = {(char *)"true", NULL};
	pid_t pid = vfork();

	if (!pid) {
		greet();
		execv("/bin/true", again);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	char line[64], c;

	if (argc > 1) {
		printf("%s: %ld\n", argv[1], check(1));
		return 0;
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (line[0] == 'f')
			make_child();
		else if (line[0] == 'v')
			lend();
		else
			say(line[0]);
		for (int i = 0; i < n && strchr("gp", line[0]); i++)
			if (write(to[i], line, 1) != 1 || read(from[i], &c, 1) != 1)
				printf(" gone");
		printf(".\n");
		fflush(stdout);
	}
	return 0;
}
