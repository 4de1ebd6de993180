/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The app's own terminal and the caller's, which it stands for. */
#include <fcntl.h>
#include <sys/ioctl.h>

#include "launch/parts.h"

/* The controlling one, else a standard stream: also that one the app could make its own. -ENOTTY:
 * there is none. */
static int open_tty(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	char path[32];

	for (int i = STDIN_FILENO; fd < 0 && i <= STDERR_FILENO; i++) {
		if (!isatty(i))
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return -errno;
	}
	return fd < 0 ? -ENOTTY : fd;
}

/* By TIOCGPTPEER and not by its name, which may be another one's in this mount namespace. */
static int open_pair(struct launch_pty *t, const struct launch_user *u)
{
	int no = 0;

	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (t->master < 0 || ioctl(t->master, TIOCSPTLCK, &no) < 0)
		return -errno;
	t->slave = ioctl(t->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->slave < 0 || fchown(t->slave, u->uid, (gid_t)-1) < 0)
		return -errno;
	if (tcgetattr(t->tty, &t->before) < 0 || tcsetattr(t->slave, TCSANOW, &t->before) < 0)
		return -errno;
	return 0;
}

int launch_pty_open(struct launch_pty *t, const struct launch_user *u, struct error *e)
{
	int r;

	*t = (struct launch_pty){.master = -1, .slave = -1, .tty = open_tty()};
	if (t->tty == -ENOTTY)
		return 0;
	r = t->tty < 0 ? t->tty : open_pair(t, u);
	if (r) {
		launch_pty_close(t);
		return error_set(e, r,
				 "cannot make a terminal for the user %s (%s): is devpts mounted "
				 "on /dev/pts?",
				 u->name, strerror(-r));
	}
	t->controlling = tcgetpgrp(t->tty) >= 0;
	launch_pty_resize(t);
	return 1;
}

void launch_pty_close(struct launch_pty *t)
{
	close_fd(&t->tty);
	close_fd(&t->master);
	close_fd(&t->slave);
}

bool launch_pty_foreground(const struct launch_pty *t)
{
	return !t->controlling || tcgetpgrp(t->tty) == getpgrp();
}

/* The kernel tells the app of it if the size is another one. */
void launch_pty_resize(const struct launch_pty *t)
{
	struct winsize size;

	if (ioctl(t->tty, TIOCGWINSZ, &size) == 0)
		ioctl(t->master, TIOCSWINSZ, &size);
}

static bool same_modes(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

void launch_pty_enter(struct launch_pty *t)
{
	struct termios now;

	if (tcgetattr(t->tty, &now) < 0)
		return;
	/* ours, if whoever stopped us left it so */
	if (!same_modes(&now, &t->during))
		t->before = now;
	t->during = t->before;
	cfmakeraw(&t->during);
	t->raw = tcsetattr(t->tty, TCSANOW, &t->during) == 0;
	tcgetattr(t->tty, &t->during);
}

void launch_pty_leave(struct launch_pty *t)
{
	/* in the background it is another one's to set */
	if (t->raw && launch_pty_foreground(t))
		tcsetattr(t->tty, TCSANOW, &t->before);
	t->raw = false;
}
