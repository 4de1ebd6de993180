/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/work.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <ucontext.h>

#define SLICE_NS   (4 * 1000 * 1000ull)
#define STACK_SIZE (8u << 20) /* as a process has it; what is not used takes no memory */
#define GUARD_SIZE 4096

struct call {
	void (*f)(void *arg);
	void *arg;
};

struct job {
	struct job *next;
	unsigned uid;
	struct call call;
};

struct work {
	int epoll;
	struct loop_item wake; /* an eventfd: the first job is to go on */
	struct job *jobs, **jobs_tail;
	unsigned last_uid; /* of those who are not root */
	ucontext_t loop, own;
	char *stack;
	bool begun, ended; /* the first job */
	bool inside;	   /* it runs now */
	uint64_t slice_end_ns;

	/* what a thread does for it */
	pthread_mutex_t mutex; /* for all of the following */
	pthread_cond_t done;
	struct call offloaded, back; /* back: f NULL: nothing is asked for */
	bool finished;
	pthread_t thread;
};

/*
 * A thread that frees a long list leaves its pieces to be joined all at once, by whoever frees
 * something large next, while everybody who wants memory waits: 90 ms and more. Without "fast" bins
 * each piece is joined when it is freed.
 */
static void free_at_once(void)
{
#ifdef M_MXFAST
	mallopt(M_MXFAST, 0);
#endif
}

int work_open(int epoll, struct work **ret)
{
	struct work *w = calloc(1, sizeof(*w));
	int r;

	free_at_once();
	*ret = w;
	if (!w)
		return -ENOMEM;
	w->jobs_tail = &w->jobs;
	w->epoll = epoll;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_cond_init(&w->done, NULL);
	w->wake =
		(struct loop_item){.kind = LOOP_WORK, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	r = w->wake.fd < 0 ? -errno : loop_add(epoll, &w->wake, EPOLLIN);
	return r;
}

void work_close(struct work *w)
{
	if (!w)
		return;
	while (w->jobs) {
		struct job *j = w->jobs;

		w->jobs = j->next;
		free(j);
	}
	if (w->stack)
		munmap(w->stack, STACK_SIZE);
	close_fd(&w->wake.fd);
	pthread_cond_destroy(&w->done);
	pthread_mutex_destroy(&w->mutex);
	free(w);
}

bool work_is_idle(const struct work *w)
{
	return !w || !w->jobs || (!w->begun && w->jobs->uid);
}

/* --- the other stack --- */

static struct work *entering; /* makecontext() passes numbers only */

static void enter(void)
{
	struct work *w = entering;

	w->jobs->call.f(w->jobs->call.arg);
	w->ended = true;
	swapcontext(&w->own, &w->loop); /* for good */
}

static int make_stack(struct work *w)
{
	void *p;

	if (w->stack)
		return 0;
	p = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	mprotect(p, GUARD_SIZE, PROT_NONE);
	w->stack = p;
	return 0;
}

/* Keeps what was reserved, not what was used. */
static void clean_stack(struct work *w)
{
	madvise(w->stack + GUARD_SIZE, STACK_SIZE - GUARD_SIZE, MADV_DONTNEED);
}

static void go_on(struct work *w)
{
	w->slice_end_ns = time_mono_ns() + SLICE_NS;
	w->inside = true;
	if (!w->begun) {
		getcontext(&w->own);
		w->own.uc_stack.ss_sp = w->stack;
		w->own.uc_stack.ss_size = STACK_SIZE;
		w->own.uc_link = NULL;
		makecontext(&w->own, enter, 0);
		w->begun = true;
		entering = w;
	}
	swapcontext(&w->loop, &w->own);
	w->inside = false;
}

static void leave(struct work *w)
{
	swapcontext(&w->own, &w->loop);
}

static void wake(struct work *w)
{
	eventfd_write(w->wake.fd, 1);
}

/* --- one after the other --- */

/* The oldest of root's, or of a user who is not the last one's, or of all. */
static struct job **next_job(struct work *w)
{
	struct job **other = NULL;

	for (struct job **at = &w->jobs; *at; at = &(*at)->next) {
		if (!(*at)->uid)
			return at;
		if (!other && (*at)->uid != w->last_uid)
			other = at;
	}
	return other ? other : &w->jobs;
}

/* Puts in front what comes next: nothing has begun. */
static void sort_jobs(struct work *w)
{
	struct job **at = next_job(w), *j = *at;

	if (!j || j == w->jobs)
		return;
	*at = j->next;
	if (w->jobs_tail == &j->next)
		w->jobs_tail = at;
	j->next = w->jobs;
	w->jobs = j;
}

static void run_first(struct work *w)
{
	struct job *j = w->jobs;

	if (j->uid)
		w->last_uid = j->uid;
	go_on(w);
	if (!w->ended)
		return;
	w->begun = w->ended = false;
	clean_stack(w);
	w->jobs = j->next;
	free(j);
	if (!w->jobs) {
		w->jobs_tail = &w->jobs;
		return;
	}
	sort_jobs(w);
	wake(w);
}

int work_start(struct work *w, unsigned uid, void (*f)(void *arg), void *arg)
{
	bool first = !w->jobs;
	struct job *j = calloc(1, sizeof(*j));

	if (!j || make_stack(w)) {
		free(j);
		return -ENOMEM;
	}
	j->uid = uid;
	j->call = (struct call){f, arg};
	*w->jobs_tail = j;
	w->jobs_tail = &j->next;
	if (first)
		run_first(w);
	else if (!w->begun)
		sort_jobs(w);
	return 0;
}

void work_on_loop(struct loop_item *item)
{
	struct work *w = LOOP_OWNER(item, struct work, wake);
	eventfd_t n;

	if (eventfd_read(w->wake.fd, &n) == 0 && w->jobs && !w->inside)
		run_first(w);
}

void work_pause(struct work *w)
{
	if (!w || !w->inside || w->offloaded.f || time_mono_ns() < w->slice_end_ns)
		return;
	wake(w);
	leave(w);
}

/* --- threads --- */

static void *run_thread(void *arg)
{
	struct work *w = arg;

	w->offloaded.f(w->offloaded.arg);
	pthread_mutex_lock(&w->mutex);
	w->finished = true;
	pthread_mutex_unlock(&w->mutex);
	wake(w);
	return NULL;
}

/* Does what the thread asks for. True: it has finished. */
static bool serve_thread(struct work *w)
{
	struct call back;
	bool finished;

	pthread_mutex_lock(&w->mutex);
	back = w->back;
	finished = w->finished;
	pthread_mutex_unlock(&w->mutex);
	if (!back.f)
		return finished;
	back.f(back.arg);
	pthread_mutex_lock(&w->mutex);
	w->back.f = NULL;
	pthread_cond_signal(&w->done);
	pthread_mutex_unlock(&w->mutex);
	return false;
}

void work_offload(struct work *w, void (*f)(void *arg), void *arg)
{
	if (!w || !w->inside ||
	    w->offloaded.f) { /* (what is done for the thread comes here, too) */
		f(arg);
		return;
	}
	w->offloaded = (struct call){f, arg};
	w->finished = false;
	if (pthread_create(&w->thread, NULL, run_thread, w)) {
		w->offloaded.f = NULL;
		f(arg);
		return;
	}
	do {
		leave(w);
	} while (!serve_thread(w));
	pthread_join(w->thread, NULL);
	w->offloaded.f = NULL;
}

void work_in_loop(struct work *w, void (*f)(void *arg), void *arg)
{
	if (!w || !w->offloaded.f || !pthread_equal(pthread_self(), w->thread)) {
		f(arg);
		return;
	}
	pthread_mutex_lock(&w->mutex);
	w->back = (struct call){f, arg};
	wake(w);
	while (w->back.f)
		pthread_cond_wait(&w->done, &w->mutex);
	pthread_mutex_unlock(&w->mutex);
}
