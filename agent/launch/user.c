/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "control/group.h"
#include "launch/parts.h"

static int parse_id(const char *s, uint32_t *ret)
{
	unsigned long long v;
	char *end;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	/* (uid_t)-1 means "no change" to setresuid() */
	if (errno || *end || v >= UINT32_MAX)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

static int copy_string(char **to, const char *from)
{
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

/* By name, then by number. Returns 1 when found, 0 when not. The result lives in *buf. */
static int find_passwd(const char *name, struct passwd *pw, char **buf)
{
	struct passwd *found = NULL;
	size_t size = 4096;
	uint32_t uid;
	int r;

	for (;; size *= 2) {
		char *more = realloc(*buf, size);

		if (!more)
			return -ENOMEM;
		*buf = more;
		r = getpwnam_r(name, pw, *buf, size, &found);
		if (!r && !found && !parse_id(name, &uid))
			r = getpwuid_r(uid, pw, *buf, size, &found);
		if (r != ERANGE || size > (1u << 20))
			return found ? 1 : 0;
	}
}

/* By name, then by number. */
static int find_group(const char *name, gid_t *ret)
{
	int r = group_id(name, ret);

	return r == -ENOENT ? parse_id(name, ret) : r;
}

static int find_groups(const char *name, struct launch_user *u)
{
	int n = 32;

	for (;;) {
		gid_t *more = realloc(u->groups, (size_t)n * sizeof(*more));
		int had = n;

		if (!more)
			return -ENOMEM;
		u->groups = more;
		if (getgrouplist(name, u->gid, u->groups, &n) >= 0)
			break;
		if (n <= had)
			n = had * 2;
		if (n > NGROUPS_MAX)
			return -E2BIG;
	}
	u->n_groups = n;
	return 0;
}

static int fill_user(const char *name, const char *group, struct launch_user *u, struct error *e)
{
	autofree char *buf = NULL;
	struct passwd pw;
	int found = find_passwd(name, &pw, &buf), r;

	if (found < 0)
		return error_set(e, found, "out of memory");
	if (found) {
		u->uid = pw.pw_uid;
		u->gid = pw.pw_gid;
	} else if (parse_id(name, &u->uid) == 0) {
		u->gid = u->uid;
	} else {
		return error_set(e, -ENOENT,
				 "there is no user '%s': use a name from 'getent passwd' or a "
				 "number",
				 name);
	}
	if (group && find_group(group, &u->gid))
		return error_set(e, -ENOENT,
				 "there is no group '%s': use a name from 'getent group' or a "
				 "number",
				 group);
	r = copy_string(&u->name, found ? pw.pw_name : name);
	if (!r)
		r = copy_string(&u->home, found && *pw.pw_dir ? pw.pw_dir : "/");
	if (!r)
		r = copy_string(&u->shell, found && *pw.pw_shell ? pw.pw_shell : "/bin/sh");
	if (!r && found)
		r = find_groups(u->name, u);
	return r ? error_set(e, r, "cannot find the groups of user '%s': %s", name, strerror(-r))
		 : 0;
}

int launch_user_find(const char *text, struct launch_user *ret, struct error *e)
{
	autofree char *name = strdup(text);
	struct launch_user u = {0};
	char *colon;
	int r;

	if (!name)
		return error_set(e, -ENOMEM, "out of memory");
	colon = strchr(name, ':');
	if (colon)
		*colon++ = 0;
	if (!*name || (colon && !*colon))
		return error_set(e, -EINVAL, "'%s' is not a user: expected USER or USER:GROUP",
				 text);
	accounts_prepare();
	r = fill_user(name, colon, &u, e);
	if (r)
		launch_user_free(&u);
	else
		*ret = u;
	return r;
}

void launch_user_free(struct launch_user *u)
{
	free(u->groups);
	free(u->name);
	free(u->home);
	free(u->shell);
	memset(u, 0, sizeof(*u));
}

/*
 * The bounding set goes too, so that neither a setuid program nor a file capability brings one
 * back: such programs still run, and still change the uid (no_new_privs is left off for them), but
 * what makes root powerful they do not get.
 */
static int drop_bounding_set(void)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	}
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ? -errno : 0;
}

static int clear_capabilities(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	return syscall(SYS_capset, &h, none) < 0 ? -errno : 0;
}

int launch_user_become(const struct launch_user *u, struct error *e)
{
	int r = 0;

	if (setgroups((size_t)u->n_groups, u->groups) < 0)
		r = -errno;
	if (!r)
		r = drop_bounding_set();
	/* keep-caps or no-setuid-fixup of the caller would carry capabilities past setresuid() */
	if (!r && prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != 0 &&
	    prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) < 0)
		r = -errno;
	if (!r && setresgid(u->gid, u->gid, u->gid) < 0)
		r = -errno;
	if (!r && setresuid(u->uid, u->uid, u->uid) < 0)
		r = -errno;
	if (!r)
		r = clear_capabilities();
	if (r)
		return error_set(e, r, "cannot become user '%s' (%s): run as root", u->name,
				 strerror(-r));
	return 0;
}
