// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gate's result as text:
 *
 *   ax splice gate 2
 *   kernel RELEASE VERSION
 *   boot ID
 *   tried N
 *   member|redirected <tab> BEHAVIOUR <tab> blocking|non-blocking <tab> IPv4|IPv6 <tab> BY TCP
 * <tab> SEEN end N
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "splice/gate.h"
#include "splice/behaviour.h"

#define TITLE	 "ax splice gate 2"
#define FILE_MAX (256u << 10)

static const char *const modes[GATE_MODES] = {"TCP", "member", "redirected"};

const char *gate_mode_name(enum gate_mode m)
{
	return m < GATE_MODES ? modes[m] : NULL;
}

void gate_judge(const struct gate_result *r, struct gate_verdict *v)
{
	*v = (struct gate_verdict){
		.state = GATE_KNOWN, .same = r->n == 0, .safe = true, .fionread = true};
	for (size_t i = 0; i < r->n; i++) {
		v->safe &= !(r->lines[i].behaviour->flags & NEEDED);
		v->fionread &= !(r->lines[i].behaviour->flags & IS_FIONREAD);
	}
}

int gate_kernel_read(struct gate_kernel *ret)
{
	autofree char *boot = NULL;
	struct utsname u;
	int r = uname(&u) < 0 ? -errno : 0;

	r = r ? r : file_read("/proc/sys/kernel/random/boot_id", sizeof(ret->boot) - 1, &boot);
	if (r)
		return r;
	boot[strcspn(boot, "\n")] = 0;
	snprintf(ret->boot, sizeof(ret->boot), "%s", boot);
	snprintf(ret->kernel, sizeof(ret->kernel), "%s %s", u.release, u.version);
	return 0;
}

int gate_format(const struct gate_result *r, const struct gate_kernel *k, char **ret)
{
	size_t size;
	FILE *to = open_memstream(ret, &size);

	if (!to)
		return -ENOMEM;
	fprintf(to, TITLE "\nkernel %s\nboot %s\ntried %zu\n", k->kernel, k->boot,
		gate_behaviours());
	for (size_t i = 0; i < r->n; i++) {
		const struct gate_line *l = &r->lines[i];

		fprintf(to, "%s\t%s\t%s\t%s\t%s\t%s\n", modes[l->mode], l->behaviour->name,
			l->nonblock ? "non-blocking" : "blocking", l->ipv6 ? "IPv6" : "IPv4",
			l->tcp, l->seen);
	}
	fprintf(to, "end %zu\n", r->n);
	return fclose(to) ? -ENOMEM : 0;
}

/* --- reading it --- */

/* The next line, without its end; NULL: there is none, or it has no end. */
static char *next_line(char **text)
{
	char *line = *text, *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*end = 0;
	*text = end + 1;
	return line;
}

static const char *next_value(char **text, const char *key)
{
	const char *line = next_line(text);
	size_t len = strlen(key);

	return line && strncmp(line, key, len) == 0 && line[len] == ' ' ? line + len + 1 : NULL;
}

static bool is_number(const char *s, size_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%zu", n);
	return s && streq(s, text);
}

static bool take_words(const char *s, char ret[GATE_WORDS_MAX])
{
	if (!s || strlen(s) >= GATE_WORDS_MAX)
		return false;
	for (const char *p = s; *p; p++)
		if (*p < ' ' || *p > '~')
			return false;
	strcpy(ret, s);
	return true;
}

static const struct behaviour *behaviour_named(const char *name)
{
	for (size_t i = 0; name && i < gate_behaviours(); i++)
		if (streq(gate_behaviour(i)->name, name))
			return gate_behaviour(i);
	return NULL;
}

static bool take_line(char *line, struct gate_line *ret)
{
	const char *mode = strsep(&line, "\t"), *name = strsep(&line, "\t");
	const char *variant = strsep(&line, "\t"), *family = strsep(&line, "\t");
	const char *tcp = strsep(&line, "\t"), *seen = strsep(&line, "\t");

	if (!seen || line)
		return false;
	ret->behaviour = behaviour_named(name);
	ret->nonblock = streq(variant, "non-blocking");
	ret->ipv6 = streq(family, "IPv6");
	ret->mode = streq(mode, modes[GATE_MEMBER]) ? GATE_MEMBER : GATE_REDIRECTED;
	return ret->behaviour && streq(mode, modes[ret->mode]) &&
	       (ret->nonblock || streq(variant, "blocking")) &&
	       (ret->ipv6 || streq(family, "IPv4")) && take_words(tcp, ret->tcp) &&
	       take_words(seen, ret->seen);
}

static int parse(char *text, const struct gate_kernel *k, struct gate_result *ret)
{
	const char *kernel, *boot, *line = next_line(&text);
	char *next;

	ret->n = 0;
	if (!line || !streq(line, TITLE))
		return -EINVAL;
	kernel = next_value(&text, "kernel");
	boot = kernel ? next_value(&text, "boot") : NULL;
	if (!boot)
		return -EINVAL;
	if (!streq(kernel, k->kernel) || !streq(boot, k->boot) ||
	    !is_number(next_value(&text, "tried"), gate_behaviours()))
		return -ESTALE;
	while ((next = next_line(&text))) {
		if (starts_with(next, "end "))
			return is_number(next + 4, ret->n) && !*text ? 0 : -EINVAL;
		if (ret->n == GATE_LINES_MAX || !take_line(next, &ret->lines[ret->n]))
			return -EINVAL;
		ret->n++;
	}
	return -EINVAL;
}

int gate_parse(const char *text, const struct gate_kernel *k, struct gate_result *ret)
{
	autofree char *copy = strdup(text);

	return copy ? parse(copy, k, ret) : -ENOMEM;
}

/* --- where it is kept --- */

void gate_path(const struct instance *inst, char *path, size_t size)
{
	snprintf(path, size, "%s/splice-gate", inst->run_dir);
}

static int read_own(const char *path, char **text)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid || (st.st_mode & 022) || st.st_size > FILE_MAX)
		return -EINVAL;
	*text = calloc(1, (size_t)st.st_size + 1);
	if (!*text)
		return -ENOMEM;
	n = read(fd, *text, (size_t)st.st_size);
	if (n == st.st_size)
		return 0;
	return n < 0 ? -errno : -EINVAL;
}

int gate_read(const struct instance *inst, struct gate_result *ret)
{
	autofree char *text = NULL;
	struct gate_kernel k;
	char path[128];
	int r;

	gate_path(inst, path, sizeof(path));
	r = read_own(path, &text);
	r = r ? r : gate_kernel_read(&k);
	if (r || !text)
		return r ? r : -ENOENT;
	return gate_parse(text, &k, ret);
}
