/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of `ax xdp` share. */
#ifndef AX_TOOLS_XDP_COMMON_H
#define AX_TOOLS_XDP_COMMON_H

#include "tools/lib/command.h"
#include "iface/iface.h"

/* A list from a rule file ("-": standard input) with the elements of its sets. d: its direction, if
 * the file does not say it. False: the errors were printed and *status is to be returned. */
bool cmd_xdp_read_rules(struct cmd *c, const char *path, enum xdp_direction d, struct rule_list *l,
			int *status);

/* A whole file or standard input, at most `max` bytes, whatever they are. */
int cmd_xdp_read_file(const char *path, size_t max, uint8_t **ret, size_t *len, struct error *e);

/* What the commands that change a list have in common. */
struct cmd_xdp_change {
	bool fix, force;
	uint32_t confirm_ms;
};
extern const struct opt cmd_xdp_change_opts[3];
/* The options for the operations, whose sentences go to stderr. */
struct xdp_load_options cmd_xdp_load_options(struct cmd *c, const struct cmd_xdp_change *o);
/* "eth0: 3 rules, generation 2 (native)"; says how to confirm, if that is due. */
int cmd_xdp_put_result(struct cmd *c, const char *ifname, const struct cmd_xdp_change *o);

/* The option --direction, and the place of that direction at the interface (base/place.h). */
struct cmd_xdp_direction {
	int d; /* enum xdp_direction */
	char place[PLACE_MAX];
};
extern const struct words cmd_xdp_direction_words;
extern const struct opt cmd_xdp_direction_opts[1];
/* Valid as long as *d is. */
const char *cmd_xdp_place(struct cmd_xdp_direction *d, const char *ifname);

/* The interfaces that are meant: those named, or all that have a dataplane. */
int cmd_xdp_names(const struct cmd *c, int argc, char **argv, struct strv *names, struct error *e);

/* A rule list as a file which `--rules` takes. */
int cmd_xdp_put_yaml(const struct rule_list *l, FILE *to);
/* The keys and values of a rule in their order; value and key are for free(). */
struct rule_word {
	char *key, *value;
};
int cmd_xdp_rule_words(const struct rule *r, struct rule_word **ret, size_t *n);
void cmd_xdp_rule_words_free(struct rule_word *w, size_t n);
/* A rule's line without its name. malloc'ed, NULL when memory is out. */
char *cmd_xdp_rule_text(const struct rule *r);

const char *cmd_xdp_mode_name(enum xdp_mode m);

static inline void rule_list_freep(struct rule_list *l)
{
	rule_list_free(l);
}
#define autolist CLEANUP(rule_list_freep) /* struct rule_list, initialised */
#define autoxdp	 CLEANUP(xdp_closep)	  /* struct xdp * */

/* ax xdp, and what is below it. */
extern const struct command cmd_xdp;
extern const struct command cmd_xdp_load;
extern const struct command cmd_xdp_apply;
extern const struct command cmd_xdp_confirm;
extern const struct command cmd_xdp_rollback;
extern const struct command cmd_xdp_unload;
extern const struct command cmd_xdp_status;
extern const struct command cmd_xdp_stats;
extern const struct command cmd_xdp_capture;
extern const struct command cmd_xdp_dump;
extern const struct command cmd_xdp_top;
extern const struct command cmd_xdp_explain;
extern const struct command cmd_xdp_rule;
extern const struct command cmd_xdp_sign;
extern const struct command cmd_xdp_set;

#endif
