// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace change and changes: their command lines. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>

#include "tools/lib/output.h"
#include "tools/lib/text.h"
#include "tools/trace/step/change.h"

struct request {
	struct step_request q; /* first: options set what is in it */
	struct change change;
	const char *result, *error, *owner;
	struct strv writes;
	bool unsafe;
};

/* --- what to change --- */

static int parse_number(const char *text, struct fetch_result *ret, struct error *e)
{
	const char *digits = text + (*text == '-');
	uint64_t error = *digits == 'E' ? (uint64_t)change_errno_of(digits) : 0;
	char *end = NULL;

	ret->negative = *text == '-';
	if (error) {
		ret->value = ret->negative ? -error : error;
		return 0;
	}
	errno = 0;
	if (isdigit((unsigned char)*digits))
		ret->value =
			ret->negative ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
	if (!end || *end || (errno && errno != ERANGE))
		return error_set(e, -EINVAL,
				 "'%.60s' is no number: expected one as 5, -1, 0x7f or -EACCES",
				 text);
	if (errno)
		return error_set(e, -ERANGE, "%.60s does not fit into 64 bits", text);
	return 0;
}

static int parse_error(const char *text, int *ret, struct error *e)
{
	struct fetch_result n = {0};
	int r = parse_number(text, &n, e);

	if (r < 0 || n.negative || !n.value || n.value > 4095)
		return error_set(e, -EINVAL,
				 "'%.60s' is no error: expected one by its name, as EACCES, or its "
				 "number",
				 text);
	*ret = (int)n.value;
	return 0;
}

static int parse_size(const char *type, uint32_t *ret, struct error *e)
{
	static const char *const bits[] = {"8", "16", "32", "64"};

	for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
		if (*type && strchr("usx", *type) && streq(type + 1, bits[i])) {
			*ret = 1u << i;
			return 0;
		}
	return error_set(e, -EINVAL,
			 "'%.40s' is no type of a number: expected u8 to u64, s8 to s64", type);
}

/* What the type cannot say would be another number in memory than the one that was asked for. */
static int check_fits(const struct fetch_result *n, const char *text, const struct change_write *w,
		      struct error *e)
{
	bool has_sign = w->type == 's';
	unsigned bits = w->size * 8;
	uint64_t max = UINT64_MAX >> (64 - bits + has_sign);

	if (n->negative ? has_sign && (int64_t)n->value >= -(int64_t)max - 1 : n->value <= max)
		return 0;
	return error_set(e, -ERANGE, "%.60s is no %c%u: expected %s%llu to %llu", text, w->type,
			 bits, has_sign ? "-" : "", (unsigned long long)(has_sign ? max + 1 : 0),
			 (unsigned long long)max);
}

/* PLACE:TYPE=NUMBER; what is left of `text` is the place. */
static int parse_write(char *text, struct change_write *w, struct error *e)
{
	char *number = strrchr(text, '='), *type;
	struct fetch_result n = {0};
	int r;

	if (number)
		*number++ = 0;
	type = number ? strrchr(text, ':') : NULL;
	if (!type)
		return error_set(e, -EINVAL,
				 "expected a place, its type and a number, as in "
				 "'--write @counter:u32=5' or '--write *arg1:u8=0'");
	*type++ = 0;
	r = parse_size(type, &w->size, e);
	w->type = *type;
	if (r == 0)
		r = parse_number(number, &n, e);
	if (r == 0)
		r = check_fits(&n, number, w, e);
	w->value = n.value;
	return r;
}

/* The place's address instead of what is there. */
static int take_address(struct probe_arg *a, struct change_write *w, struct error *e)
{
	struct expr_item *last = a->expr.n ? &a->expr.v[a->expr.n - 1] : NULL, *v;
	int64_t offset;

	if (!last || last->op != EXPR_DEREF)
		return error_set(e, -EINVAL,
				 "'%.60s' is no place in memory: expected @VARIABLE or *ADDRESS",
				 a->text);
	offset = last->value;
	w->is_static = a->expr.n == 2 && a->expr.v[0].op == EXPR_SYMBOL;
	v = reallocarray(a->expr.v, a->expr.n + 1, sizeof(*v));
	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	a->expr.v = v;
	v[a->expr.n - 1] = (struct expr_item){.op = EXPR_NUMBER, .value = offset};
	v[a->expr.n++] = (struct expr_item){.op = EXPR_ADD};
	a->type = VALUE_HEX;
	a->size = 8;
	return 0;
}

static int parse_writes(struct request *q, struct error *e)
{
	struct probe_spec *spec = &q->q.t.specs[0];
	struct change *c = &q->change;
	int r = 0;

	for (size_t i = 0; r == 0 && i < q->writes.n; i++)
		r = take_address(&spec->args[i], &c->writes[i], e);
	return r;
}

/* The places are the probe's values, which the kernel computes where the probe is. */
static bool parse(struct request *q, int argc, char **argv, int *status)
{
	char *words[64 + CHANGE_WRITES_MAX], *texts;
	struct error e = {0};
	size_t n = 0;

	if (q->writes.n > CHANGE_WRITES_MAX || argc > 64) {
		*status =
			cmd_usage(q->q.t.c, "at most %d places can be written", CHANGE_WRITES_MAX);
		return false;
	}
	if (argc)
		words[n++] = argv[0];
	for (size_t i = 0; i < q->writes.n; i++) {
		struct change_write *w = &q->change.writes[i];

		texts = strdup(q->writes.v[i]);
		w->text = texts;
		if (!texts || parse_write(q->writes.v[i], w, &e) < 0) {
			*status = cmd_usage(q->q.t.c, "%s", texts ? e.text : "out of memory");
			return false;
		}
		words[n++] = q->writes.v[i];
	}
	q->change.n_writes = q->writes.n;
	for (int i = 1; i < argc; i++)
		words[n++] = argv[i];
	return trace_parse(&q->q.t, (int)n, words, TRACE_WATCH, status);
}

/* --- who may --- */

/* Who called sudo is meant, not root. */
static int find_owner(struct request *q, struct error *e)
{
	const char *sudo = getenv("SUDO_UID");
	struct passwd *p = q->owner ? getpwnam(q->owner) : NULL;
	char *end;

	if (q->owner && !p)
		return error_set(e, -ENOENT, "there is no user '%.60s'", q->owner);
	if (p)
		q->change.owner = p->pw_uid;
	else
		q->change.owner = sudo && *sudo ? (uid_t)strtoul(sudo, &end, 10) : getuid();
	return 0;
}

static int not_owned(const struct request *q, const char *what, struct error *e)
{
	return error_set(e, -EPERM,
			 "%s is not a process of user %u alone, whose it would have to be: name "
			 "its owner by --owner if you may change it",
			 what, q->change.owner);
}

static int check_owner(const struct request *q, struct error *e)
{
	const struct trace_whom *w = &q->q.t.whom;
	char process[32];

	if (q->q.t.command)
		return q->change.owner ? not_owned(q, "the command, which runs as root,", e) : 0;
	for (size_t i = 0; i < w->n; i++)
		if (!change_is_owned(&q->change, (int)w->v[i])) {
			snprintf(process, sizeof(process), "process %u", w->v[i]);
			return not_owned(q, process, e);
		}
	return 0;
}

static int check(struct request *q, struct error *e)
{
	const struct trace *t = &q->q.t;
	enum probe_kind kind = t->specs[0].kind;
	int r = step_check_whom(&q->q, e);

	if (r < 0)
		return r;
	if (!q->unsafe)
		return error_set(e, -EPERM,
				 "what is changed in a program may end it or damage its data: say "
				 "--unsafe if that is meant");
	if (kind != PROBE_UPROBE && kind != PROBE_URETPROBE && kind != PROBE_USDT &&
	    kind != PROBE_LINE)
		return error_set(e, -EINVAL,
				 "only programs can be changed, not the kernel: expected uprobe:, "
				 "uretprobe:, usdt: or line:");
	if (!q->result && !q->error && !q->writes.n)
		return error_set(
			e, -EINVAL,
			"say what is to be changed: expected --return, --errno or --write");
	if ((q->result || q->error) && kind != PROBE_URETPROBE)
		return error_set(e, -EINVAL,
				 "%s can be changed where a function returns: expected uretprobe:",
				 q->result ? "a result" : "errno");
	if (t->specs[0].n_args != q->writes.n)
		return error_set(e, -EINVAL, "expected no values: --write has the places");
	return 0;
}

/* --- change --- */

/* Who names an error as the kernel returns it hardly means that the C library returns it so. */
static void say_errno(const struct request *q)
{
	const char *file = q->q.t.specs[0].file, *name = file ? strrchr(file, '/') : NULL;

	name = name ? name + 1 : file;
	if (q->error || !q->result || !starts_with(q->result, "-E") || !name ||
	    (!starts_with(name, "libc.") && !streq(name, "c")))
		return;
	fprintf(stderr,
		"ax %s: functions of the C library return -1, and leave the error in errno: "
		"--return -1 --errno %s does that\n",
		q->q.t.c->name, q->result + 1);
}

static int run_request(struct request *q, int argc, char **argv)
{
	struct trace *t = &q->q.t;
	struct error e = {0};
	int status;

	if (!parse(q, argc, argv, &status))
		return status;
	if (check(q, &e) < 0 || parse_writes(q, &e) < 0 ||
	    (q->result && parse_number(q->result, &q->change.result, &e) < 0) ||
	    (q->error && parse_error(q->error, &q->change.error, &e) < 0))
		return cmd_usage(t->c, "%s", e.text);
	q->change.returns = q->result;
	t->parts[0].result = q->result ? &q->change.result : NULL;
	t->parts[0].stops = true;
	say_errno(q);
	if (!cmd_root(t->c))
		return CMD_FAILED;
	if (step_find_whom(&q->q, &e) < 0 || find_owner(q, &e) < 0 || check_owner(q, &e) < 0 ||
	    step_open_output(&q->q, &e) < 0)
		return cmd_failed(t->c, &e);
	return step_launch(&q->q);
}

static void free_request(struct request *q)
{
	for (size_t i = 0; i < CHANGE_WRITES_MAX; i++)
		free(q->change.writes[i].text);
	strv_free(&q->writes);
	trace_args_free(&q->q.args);
	step_close_output(&q->q);
	trace_free(&q->q.t);
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct request q = {.q.t = {.c = c, .out.fd = -1}, .change = {.listed = -1}};
	int status;

	q.q.change = &q.change;
	if (cmd_begin(c, &q, &argc, argv, &status)) {
		trace_take_args(&q.q.t, &q.q.args);
		q.q.t.options.exact = q.q.exact;
		cmd_output();
		status = run_request(&q, argc, argv);
	}
	free_request(&q);
	return status;
}

static const struct opt own[] = {
	{"return", 0, OPT_STRING, "NUMBER", "of uretprobe: what the function returns",
	 offsetof(struct request, result), NULL},
	{"errno", 0, OPT_STRING, "ERROR",
	 "of uretprobe: what errno is then, as EACCES (beside --return -1, as the C library has "
	 "it)",
	 offsetof(struct request, error), NULL},
	{"write", 0, OPT_STRINGS, "PLACE:TYPE=NUMBER",
	 "what is in memory at @VARIABLE or *ADDRESS (several times: several places)",
	 offsetof(struct request, writes), NULL},
	{"unsafe", 0, OPT_FLAG, NULL,
	 "it is known that this may end the program or damage its data",
	 offsetof(struct request, unsafe), NULL},
	{"owner", 0, OPT_STRING, "USER",
	 "whose the processes are (unless given: who calls, also by sudo)",
	 offsetof(struct request, owner), NULL},
	{"times", 0, OPT_NUMBER, "N", "only the first N times that the probe happens",
	 offsetof(struct request, q.times), NULL},
	{"duration", 'd', OPT_DURATION, "TIME", "end after this time",
	 offsetof(struct request, q.t.duration_ms), NULL},
};

const struct command cmd_trace_change = {
	.name = "trace change",
	.about = "change results and memory of a program at a probe",
	.run = run,
	.syntax =
		{
			.usage = "ax trace change PROBE [if CONDITION] [--return NUMBER] [--errno "
				 "ERROR] [--write PLACE:TYPE=NUMBER] --unsafe -p PID|-c CMD [-f]",
			.about = "Each time a probe in a program happens, its function returns "
				 "something else, or something else is written to the program's "
				 "memory. Variables have again what they had when this ends.",
			.own = {{own, ARRAY_SIZE(own), 0},
				{&trace_opts[TRACE_OPT_PID], 3, offsetof(struct request, q.args)},
				{trace_record_opts, TRACE_RECORD_OPTS,
				 offsetof(struct request, q.args)}},
			.args = {&trace_probe_words},
		},
};

/* --- changes --- */

/* One whose process ended without taking it out is locked by nobody. */
static void put_listed(int directory, const char *name)
{
	autoclose int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char line[CHANGE_LINE_MAX];
	ssize_t n;

	if (fd < 0)
		return;
	if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
		unlinkat(directory, name, 0);
		return;
	}
	n = read(fd, line, sizeof(line) - 1);
	if (n <= 0)
		return;
	line[n - (line[n - 1] == '\n')] = 0;
	text_put(line, stdout);
	putchar('\n');
}

static int run_changes(struct cmd *c, int argc, char **argv)
{
	struct dirent *d;
	int status;
	char none;
	DIR *dir;

	if (!cmd_begin(c, &none, &argc, argv, &status))
		return status;
	if (argc)
		return cmd_usage(c, "expected no words");
	if (!cmd_root(c))
		return CMD_FAILED;
	cmd_output();
	dir = opendir(c->inst.run_dir);
	while (dir && (d = readdir(dir)))
		if (starts_with(d->d_name, "change-"))
			put_listed(dirfd(dir), d->d_name);
	if (dir)
		closedir(dir);
	return cmd_finish(c, CMD_OK);
}

const struct command cmd_trace_changes = {
	.name = "trace changes",
	.about = "list what is being changed in programs",
	.run = run_changes,
	.syntax =
		{
			.usage = "ax trace changes",
			.about = "Lists what 'ax trace change' changes at the moment: the process, "
				 "the probe, and what.",
		},
};
