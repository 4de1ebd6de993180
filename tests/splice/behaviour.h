/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Socket behaviours: what a program can see of a TCP connection. Each is a function that does
 * something with a connected pair and says in a few words what it saw; the words are compared
 * between plain TCP, members of a sockhash and redirected connections. A new one is a function and
 * a row of its file's table.
 */
#ifndef AX_TESTS_SPLICE_BEHAVIOUR_H
#define AX_TESTS_SPLICE_BEHAVIOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum mode {
	MODE_TCP,      /* no program is near */
	MODE_MEMBER,   /* both ends are in a sockhash, whose program passes everything on */
	MODE_REDIRECT, /* the program hands what it may to the other end */
	MODES,
};

/* One run of a behaviour, in a process of its own: what it blocks in ends with it. */
struct run {
	int family;    /* AF_INET or AF_INET6 */
	bool nonblock; /* both ends are non-blocking, and polled before each call */
	int client;    /* the connected pair */
	int server;
	int listener; /* where more can be made */
	char *text;   /* what was seen */
	size_t room;
};

enum behaviour_flag {
	BLOCKING_ONLY = 1 << 0, /* it is about a call that blocks */
	ALONE = 1 << 1,		/* makes its own connections: there is no pair */
};

struct behaviour {
	const char *name;
	void (*run)(struct run *r);
	unsigned flags; /* enum behaviour_flag */
};

/* Tables that end with an entry without a name. */
extern const struct behaviour behaviours_read[], behaviours_wait[], behaviours_end[],
	behaviours_write[], behaviours_move[], behaviours_uring[], behaviours_option[];

/* --- words: added to the text with a blank between --- */
__attribute__((format(printf, 2, 3))) void said(struct run *r, const char *fmt, ...);
/* "what=N", or the name of errno when n is negative. */
void said_result(struct run *r, const char *what, ssize_t n);

/* --- the pair --- */
/* A connected pair to the run's listener; 0 or a negative errno. */
int pair_open(const struct run *r, int *client, int *server);
/* All n bytes of a pattern that starts at `from`; ends the process if the peer hangs. */
void put(struct run *r, int fd, size_t n, uint64_t from);
/* recv() as this run does it: after a poll of at most a second if non-blocking. */
ssize_t get(struct run *r, int fd, void *buf, size_t n, int flags);
/* Reads until n bytes or the end. Returns how many of them follow the pattern from `from`. */
ssize_t get_all(struct run *r, int fd, size_t n, uint64_t from);
/* The pattern's byte at an offset. */
unsigned char pattern_at(uint64_t offset);
/* Whether fd has one of these events within ms; what poll() said of it. */
int events_within(int fd, int events, int ms);
void pause_ms(unsigned ms);

/* A process of its own that does something with the pair after ms. */
pid_t later(struct run *r, unsigned ms, void (*act)(struct run *r));

#endif
