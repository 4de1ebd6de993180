/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <sys/random.h>

#include "apps/squat.h"
#include "allot/pool.h"
#include "base/address.h"
#include "base/log.h"
#include "base/work.h"
#include "config/config.h"
#include "net/netlink.h"
#include "net/sock_diag.h"
#include "registry/app_table.h"
#include "registry/state.h"

#define PASS_OVER_MAX 32   /* a look takes up to a millisecond */
#define MANY_SOCKETS  1000 /* of TCP: a walk takes some tenths of a millisecond */
#define LOOK_AFTER_MS 50   /* after a launch: not beside it */
#define LOOK_AGAIN_MS 1000

static bool keep_first(const struct sock_found *found, void *arg)
{
	*(struct sock_found *)arg = *found;
	return false;
}

static bool is_bound(const struct app *app, const struct ax_addr *addr, enum sock_question what,
		     struct sock_found *who)
{
	struct prefix one = {.addr = *addr, .len = 128};

	who->proto = 0;
	return app->spec.net == NET_HOST && !addr_is_zero(addr) &&
	       !socks_bound(&one, what, keep_first, who) && who->proto;
}

static bool many_sockets(void)
{
	int n = socks_tcp_count();

	return n < 0 || n > MANY_SOCKETS;
}

static void jump(struct pool *p)
{
	uint32_t by = 0;

	if (getrandom(&by, sizeof(by), GRND_NONBLOCK) == sizeof(by))
		pool_jump(p, by);
}

/*
 * Which question an address is asked. The long one takes longer than the rest of a launch: the
 * short one is enough for an address that nobody could foresee, and who binds many of them is found
 * out after the launch.
 */
static enum sock_question question(struct agent *a, const struct app *app, struct pool *p)
{
	if (app->spec.net != NET_HOST || p->size < POOL_LARGE)
		return SOCKS_ALL;
	if (!a->squat_look_ns) {
		uint64_t now = time_mono_ns(), next = a->squat_looked_ns;

		next += next ? LOOK_AGAIN_MS * 1000000ull : 0;
		a->squat_look_ns = now + LOOK_AFTER_MS * 1000000ull;
		if (a->squat_look_ns < next)
			a->squat_look_ns = next;
		a->timers_stale = true;
	}
	/* (before the first look nobody knows of those who were here before the agent) */
	if (a->squatted || !a->squat_looked_ns || !a->work)
		return SOCKS_ALL;
	jump(p);
	return SOCKS_SERVING;
}

/* An address of this machine that a pool happens to have. */
static bool is_own(struct agent *a, const struct ax_addr *addr)
{
	bool local = false;

	return nl_addr_is_local(a->nl, addr, &local) == 0 && local;
}

int squat_take_free(struct agent *a, const struct app *app, struct pool *p, struct ax_addr *ret)
{
	enum sock_question what = question(a, app, p);
	struct ax_addr passed[PASS_OVER_MAX], bound;
	bool own = false, any_bound = false;
	struct sock_found who;
	size_t n = 0;
	int r = pool_take(p, ret);

	while (!r && n < PASS_OVER_MAX &&
	       ((own = is_own(a, ret)) || is_bound(app, ret, what, &who))) {
		if (!own)
			bound = *ret;
		any_bound |= !own;
		passed[n++] = *ret;
		if (n > 1)
			jump(p);
		r = pool_take(p, ret);
	}
	while (n)
		pool_mark(p, &passed[--n], false);
	if (r && any_bound) { /* better one that somebody has bound than none */
		*ret = bound;
		pool_mark(p, ret, true);
		r = 0;
	}
	return r;
}

void squat_warn(const struct app *app, const struct ax_addr *addr)
{
	struct sock_found who;
	char text[ADDR_STRLEN];

	if (app->spec.net != NET_HOST || addr_is_zero(addr))
		return;
	if (is_bound(app, addr, many_sockets() ? SOCKS_SERVING : SOCKS_ALL, &who))
		log_warn("a program outside ax, of user %u, has bound %s, %s port %u: the app %s "
			 "cannot listen there until that ends",
			 who.uid, addr_format(addr, text), who.proto == IPPROTO_UDP ? "UDP" : "TCP",
			 who.port, app->spec.name);
}

void squat_end_last(const struct app *app, const struct ax_addr *addr)
{
	int r;

	if (app->spec.net != NET_HOST || addr_is_zero(addr))
		return;
	r = socks_end_orphans(addr);
	if (r < 0)
		log_debug("connections of the last app at the address: %s", strerror(-r));
}

/* --- the walk --- */

/* Which addresses of a pool some program has bound. */
static bool mark_bound(const struct sock_found *found, void *arg)
{
	pool_mark(arg, &found->addr, true);
	return true;
}

static void walk(void *arg)
{
	const struct pool *bound = arg;

	socks_bound(&bound->prefix, SOCKS_ALL, mark_bound, arg);
}

static bool is_squatted(struct agent *a, const struct pool *p)
{
	struct pool bound;
	struct ax_addr own[] = {pool_host(p), pool_last(p)};
	bool found = false;

	if (!p->size || pool_init(&bound, &p->prefix))
		return false;
	work_offload(a->work, walk, &bound);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		pool_mark(&bound, &own[i], false);
	for (uint32_t i = 0; !found && i < (bound.size + 7) / 8; i++)
		found = (bound.used[i] & ~p->used[i]) != 0;
	pool_free(&bound);
	return found;
}

static void look(void *arg)
{
	struct agent *a = arg;
	bool found = is_squatted(a, &a->pool4);

	found = is_squatted(a, &a->pool6) || found;
	if (found && !a->squatted)
		log_warn("a program outside ax has bound an address of the pool that no app has: "
			 "launches in host mode take longer until that ends");
	if (!found && a->squatted)
		log_info("no program outside ax has bound an address of the pool any more");
	a->squatted = found;
	a->squat_looked_ns = time_mono_ns();
	a->squat_look_ns = 0;
	a->timers_stale = true;
}

void squat_due(struct agent *a, uint64_t now_ns)
{
	if (!squat_deadline(a) || a->squat_look_ns > now_ns)
		return;
	a->squat_look_ns = UINT64_MAX; /* until the look's end */
	if (work_start(a->work, 0, look, a))
		a->squat_look_ns = 0;
}

uint64_t squat_deadline(const struct agent *a)
{
	return a->squat_look_ns == UINT64_MAX ? 0 : a->squat_look_ns;
}
