/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent has `ax run` start: not by its command line, which everybody can read. */
#include <fcntl.h>
#include <sys/mman.h>

#include "launch/launch.h"
#include "control/control.h"

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

int launch_give(const struct app_spec *spec, const char *config_key, const struct rlimit *files,
		struct error *e)
{
	autofree char *text = NULL;
	autoclose int fd = -1;
	json_t *j =
		json_pack("{s:o, s:I, s:I}", "spec", control_spec_to_json(spec), "files_soft",
			  (json_int_t)files->rlim_cur, "files_hard", (json_int_t)files->rlim_max);
	size_t len, done = 0;

	if (j && config_key)
		json_object_set_new(j, "config", json_string(config_key));
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	if (!text)
		return no_memory(e);
	fd = memfd_create("ax-launch", MFD_CLOEXEC);
	len = strlen(text);
	while (fd >= 0 && done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0)
			break;
		done += (size_t)n;
	}
	if (fd < 0 || done < len || lseek(fd, 0, SEEK_SET) < 0)
		return error_set(e, -errno, "cannot hand an app's description on (%s)",
				 strerror(errno));
	return take_fd(&fd);
}

static int read_given(const char *text, size_t len, struct launch_options *o, struct error *e)
{
	json_int_t soft, hard; /* RLIM_INFINITY is -1 */
	const char *key = NULL;
	json_t *j = NULL, *spec;
	int r = control_parse_line(text, len, &j, e);

	if (!r && json_unpack(j, "{s:o, s:I, s:I, s?s}", "spec", &spec, "files_soft", &soft,
			      "files_hard", &hard, "config", &key) < 0)
		r = error_set(e, -EPROTO, "the agent's description of the app is not understood");
	if (!r)
		r = control_spec_from_json(spec, &o->spec, e);
	if (!r && key && !(o->config_key = strdup(key)))
		r = no_memory(e);
	if (!r)
		setrlimit(RLIMIT_NOFILE,
			  &(struct rlimit){.rlim_cur = (rlim_t)soft, .rlim_max = (rlim_t)hard});
	json_decref(j);
	return r;
}

int launch_take_given(struct launch_options *o, struct error *e)
{
	const char *number = getenv(LAUNCH_GIVEN);
	autofree char *text = NULL;
	autoclose int fd = -1;
	char path[32];
	int r;

	if (!number)
		return 0;
	fd = atoi(number);
	unsetenv(LAUNCH_GIVEN); /* it is nothing for the app */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = file_read(path, CONTROL_LINE_MAX, &text);
	if (r)
		return error_set(e, r, "cannot read the agent's description of the app (%s)",
				 strerror(-r));
	r = read_given(text, strlen(text), o, e);
	return r ? r : 1;
}
