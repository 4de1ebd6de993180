/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax completion: a script that lets a shell complete command lines of ax. */
#include "tools/cmd/commands.h"
#include "tools/completion/completion.h"

static const struct shell {
	const char *name;
	void (*print)(const struct command *root, FILE *to);
} shells[] = {
	{"bash", completion_bash},
	{"zsh", completion_zsh},
	{"fish", completion_fish},
};

static const char *shell_name(size_t i)
{
	return i < ARRAY_SIZE(shells) ? shells[i].name : NULL;
}

static int run(struct cmd *c, int argc, char **argv)
{
	int status;

	if (!cmd_begin(c, NULL, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "say for which shell: bash, zsh or fish");
	cmd_output();
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		if (!streq(shells[i].name, argv[0]))
			continue;
		shells[i].print(c->root, stdout);
		return cmd_finish(c, CMD_OK);
	}
	return cmd_usage(c, "'%.60s' is no shell that is known: give bash, zsh or fish", argv[0]);
}

static const struct words shell_words = {.nth = shell_name};

const struct command cmd_completion = {
	.name = "completion",
	.about = "print what lets a shell complete command lines of ax",
	.run = run,
	.syntax =
		{
			.usage = "ax completion bash|zsh|fish",
			.about = "Prints a script with which a shell completes commands, options "
				 "and their values. 'make install' puts all three where the "
				 "shells look for them; without it, for bash:\n\n"
				 "source <(ax completion bash)",
			.args = {&shell_words},
		},
};
