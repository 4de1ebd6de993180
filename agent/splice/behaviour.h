/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Socket behaviours: what a program can see of a TCP connection. Each is a function that does
 * something with a connected pair and says in a few words what it saw; the words are compared
 * between plain TCP, members of a sockhash and redirected connections. Those of this room are the
 * gate's, which the agent runs (gate.h), and tests/splice has them and many more. A new one is a
 * function and a row of its file's table.
 */
#ifndef AX_SPLICE_BEHAVIOUR_H
#define AX_SPLICE_BEHAVIOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One run of a behaviour, in a process of its own: what it blocks in ends with it. */
struct run {
	int family;    /* AF_INET or AF_INET6 */
	bool nonblock; /* both ends are non-blocking, and polled before each call */
	int client;    /* the connected pair */
	int server;
	int listener; /* where more can be made */
	/* Told of each connected pair before anything is sent; NULL: nobody is. 0 or a negative
	 * errno. */
	int (*connected)(const struct run *r, int client, int server);
	void *arg;  /* its */
	char *text; /* what was seen */
	size_t room;
};

enum behaviour_flag {
	BLOCKING_ONLY = 1 << 0, /* it is about a call that blocks */
	ALONE = 1 << 1,		/* makes its own connections: there is no pair */
	NEEDED = 1 << 2, /* where it differs nothing is ever spliced: bytes or memory are wrong */
	IS_FIONREAD = 1 << 3,
};

struct behaviour {
	const char *name;
	void (*run)(struct run *r);
	unsigned flags; /* enum behaviour_flag */
};

/*
 * How many times longer than elsewhere the waits and pauses below are, for machines on which all is
 * slow: 1, unless somebody sets it.
 */
extern unsigned slowness;

/* Tables that end with an entry without a name. What membership alone may change: */
extern const struct behaviour gate_blocked[], gate_ends[], gate_ring[];
/* and what redirecting may: */
extern const struct behaviour gate_reading[], gate_writing[], gate_splice[];

/*
 * How long to wait for what is to come, which ends the wait, and for what is not to come: an
 * emulated machine may stop for a second.
 */
enum { COMES_MS = 2000, STAYS_AWAY_MS = 50 };

/* --- words: added to the text with a blank between --- */
__attribute__((format(printf, 2, 3))) void said(struct run *r, const char *fmt, ...);
/* "what=N", or the name of errno when n is negative. */
void said_result(struct run *r, const char *what, ssize_t n);

/* --- the pair --- */
/* A socket that listens at a port of the loopback address; or a negative errno. */
int listener_open(int family);
/* A connected pair to the run's listener; 0 or a negative errno. */
int pair_open(const struct run *r, int *client, int *server);
/* All n bytes of a pattern that starts at `from`; ends the process if the peer hangs. */
void put(struct run *r, int fd, size_t n, uint64_t from);
/* recv() as this run does it: after a poll for at most COMES_MS if non-blocking. */
ssize_t get(struct run *r, int fd, void *buf, size_t n, int flags);
/* Reads until n bytes or the end. Returns how many of them follow the pattern from `from`. */
ssize_t get_all(struct run *r, int fd, size_t n, uint64_t from);
/* The pattern's byte at an offset. */
unsigned char pattern_at(uint64_t offset);
int64_t clock_ms(void); /* CLOCK_MONOTONIC */
/* Whether fd has one of these events within ms times slowness; what poll() said of it. */
int events_within(int fd, int events, int ms);
/* Pauses for ms times slowness. */
void pause_ms(unsigned ms);
/* close() that resets the connection. */
void linger_zero(int fd);
/* An epoll descriptor that watches fd. */
int epoll_of(int fd, unsigned events);
/* Words for events, and for those of which epoll tells within ms times slowness. */
void said_events(struct run *r, const char *what, unsigned events);
void said_epoll(struct run *r, int ep, const char *what, int ms);

/*
 * A process of its own that does something with the pair: ms times slowness after the caller's main
 * thread sleeps in a call (after 2 s times slowness if it does not); at once if ms is 0.
 */
pid_t later(struct run *r, unsigned ms, void (*act)(struct run *r));
/* Returns when the process or thread sleeps in a call or has ended, or has not within 2 s times
 * slowness. */
void until_asleep(pid_t pid);

#endif
