/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <glob.h>
#include <limits.h>

#include "net/local_source.h"

#define FILE_NAME "expose"

static const char *const sysctls[] = {"accept_local", "route_localnet"};

static void sysctl_path(char path[128], const char *name)
{
	snprintf(path, 128, "/proc/sys/net/ipv4/conf/lo/%s", name);
}

static bool is_on(const char *name)
{
	autofree char *text = NULL;
	char path[128];

	sysctl_path(path, name);
	return !file_read(path, 16, &text) && atoi(text) > 0;
}

/* The records of other instances that need the same: the first one's text, NULL: there is none. */
static char *record_of_others(const struct instance *inst)
{
	char pattern[128], own[128];
	char *text = NULL, *slash;
	glob_t g = {0};

	snprintf(own, sizeof(own), "%s/" FILE_NAME, inst->run_dir);
	snprintf(pattern, sizeof(pattern), "%s", inst->run_dir);
	slash = strrchr(pattern, '/');
	if (!slash)
		return NULL;
	snprintf(slash, sizeof(pattern) - (size_t)(slash - pattern), "/*/" FILE_NAME);
	if (glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc && !text; i++)
			if (!streq(g.gl_pathv[i], own))
				file_read(g.gl_pathv[i], 256, &text);
	globfree(&g);
	return text;
}

int local_source_on(const struct instance *inst)
{
	autofree char *others = record_of_others(inst);
	char file[128], path[160], text[64] = "";
	int r = 0;

	snprintf(file, sizeof(file), "%s/" FILE_NAME, inst->run_dir);
	if (access(file, F_OK)) { /* one that is there is a dead agent's: it knows better */
		for (size_t i = 0; i < ARRAY_SIZE(sysctls); i++)
			if (!is_on(sysctls[i])) {
				strcat(text, sysctls[i]);
				strcat(text, "\n");
			}
		/* (whole or not at all: an empty one would say that nothing was changed) */
		r = file_replace(file, 0600, others ? others : text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sysctls) && !r; i++) {
		sysctl_path(path, sysctls[i]);
		if (!is_on(sysctls[i]))
			r = file_write(path, "1");
	}
	return r;
}

void local_source_restore(const struct instance *inst)
{
	autofree char *others = record_of_others(inst), *text = NULL;
	char file[128], path[128];

	snprintf(file, sizeof(file), "%s/" FILE_NAME, inst->run_dir);
	if (file_read(file, 256, &text))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(sysctls) && !others; i++) {
		sysctl_path(path, sysctls[i]);
		if (strstr(text, sysctls[i]))
			file_write(path, "0");
	}
	unlink(file);
}

void local_source_device(const char *device, bool on)
{
	static const char *const families[] = {"ipv4", "ipv6"};

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		autofree char *usual = NULL;
		char path[128];

		snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/default/forwarding",
			 families[i]);
		if (!on && file_read(path, 16, &usual))
			continue;
		snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/forwarding", families[i],
			 device);
		file_write(path, on ? "1" : usual);
	}
}

static void devices_again(const char *instance)
{
	static const char *const families[] = {"ipv4", "ipv6"};

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		char pattern[256];
		glob_t g = {0};

		snprintf(pattern, sizeof(pattern), "/proc/sys/net/%s/conf/%s-*/forwarding",
			 families[i], instance);
		if (glob(pattern, GLOB_NOSORT, NULL, &g) == 0)
			for (size_t k = 0; k < g.gl_pathc; k++)
				file_write(g.gl_pathv[k], "1");
		globfree(&g);
	}
}

void local_source_devices(const char *parent)
{
	char pattern[PATH_MAX];
	glob_t g = {0};

	snprintf(pattern, sizeof(pattern), "%s/*/" FILE_NAME, parent);
	if (glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++) {
			*strrchr(g.gl_pathv[i], '/') = '\0';
			devices_again(strrchr(g.gl_pathv[i], '/') + 1);
		}
	globfree(&g);
}
