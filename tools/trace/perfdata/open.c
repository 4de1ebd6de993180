// SPDX-License-Identifier: GPL-2.0-or-later
/* The file that is read, and how a run ends. */
#include <fcntl.h>

#include "tools/trace/perfdata/perfdata.h"

int perf_file_open(const char *path, struct perfdata **ret, struct error *e)
{
	int fd;

	if (streq(path, "-")) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		path = "standard input";
	} else {
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return error_set(e, -errno, "cannot open '%.200s': %s", path, strerror(errno));
	return perfdata_open(fd, path, ret, e);
}

bool perf_run_begin(struct cmd *c, void *options, int argc, char **argv, struct perfdata **ret,
		    int *status)
{
	struct error e = {0};

	if (!cmd_begin(c, options, &argc, argv, status))
		return false;
	if (argc != 1) {
		*status = cmd_usage(c, "name one file that perf record wrote, or '-'");
		return false;
	}
	cmd_output();
	if (perf_file_open(argv[0], ret, &e) < 0) {
		*status = cmd_failed(c, &e);
		return false;
	}
	return true;
}

int perf_finish(struct cmd *c, struct trace_out *out, int r, struct error *e)
{
	int error;

	trace_out_flush(out);
	error = out->error;
	trace_out_close(out);
	if (error == EPIPE)
		return CMD_FAILED;
	if (error)
		r = error_set(e, -error, "the output could not be written: %s", strerror(error));
	return r < 0 ? cmd_failed(c, e) : CMD_OK;
}
