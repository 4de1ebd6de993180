/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace build: recording a build, and what is made of the record. */
#ifndef AX_TOOLS_TRACE_BUILD_BUILD_H
#define AX_TOOLS_TRACE_BUILD_BUILD_H

#include "probes/build/build.h"
#include "tools/trace/run/run.h"

/* A command that makes something of a trace. */
struct build_view {
	struct cmd *c;
	/* of the command line */
	const char *path; /* of -O */
	struct strv only, except;
	bool system; /* files of the system, too */
	bool secret; /* environments are printed: a file is its owner's alone */
	/* of the run */
	struct build build;
	const char *root;   /* where the build began, or NULL */
	struct strv caches; /* directories in which compilers keep what they made */
	void *data;
	size_t len;
	struct trace_out out;
};

enum { BUILD_OPT_FILE, BUILD_OPT_ONLY, BUILD_OPT_EXCEPT, BUILD_OPT_SYSTEM, BUILD_OPTS };
extern const struct opt build_opts[BUILD_OPTS];

/* Reads the trace that is the only word, or the first of `words`, and opens the output. False:
 * *status is to be returned. */
bool build_view_begin(struct build_view *v, int words, int argc, char **argv, int *status);
/* Writes what is left, says what was missing in the trace, frees all. Returns the exit status. */
int build_view_end(struct build_view *v, int status);
/* Whether a file is asked for. */
bool build_view_shows(const struct build_view *v, const char *path);
/* The cache of a compiler that it is in, NULL: in none. */
const char *build_view_cache(const struct build_view *v, const char *path);
/* Neither of the build nor of its sources: shown with --system. */
bool build_view_is_system(const struct build_view *v, const char *path);
/* As it is called in the directory in which the build began. */
const char *build_view_name(const struct build_view *v, const char *path);
/* The command's arguments as a shell takes them back; at most so many bytes, 0: all. */
void build_view_words(struct build_view *v, const struct build_words *words, size_t most);
/* json.c: an object with all that is known of it. */
void build_put_json(struct build_view *v, const struct build_event *ev);
/* What an event (enum ax_build_type) does to a file's name, mode or length, NULL: it does not. */
const char *build_change_word(uint32_t type);

extern const struct command cmd_trace_build;
extern const struct command cmd_build_report;
extern const struct command cmd_build_normalize;
extern const struct command cmd_build_graph;
extern const struct command cmd_build_json;
extern const struct command cmd_build_ctf;
extern const struct command cmd_build_replay;
extern const struct command cmd_build_compile_commands;
extern const struct command cmd_build_deps;

#endif
