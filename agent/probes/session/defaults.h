/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes and times of probes at work. */
#ifndef AX_PROBES_SESSION_DEFAULTS_H
#define AX_PROBES_SESSION_DEFAULTS_H

#define SESSION_PARTS_MAX  8	 /* probe texts of one session */
#define SESSION_SCRIPT_MAX 128	 /* the same of a script */
#define SESSION_FILES_MAX  64	 /* that they are in */
#define SESSION_PLACES_MAX 20000 /* that they resolve to */
#define SESSION_POLL_MS	   5	 /* how often a reader looks for records */
/* Room for probes in files that are followed: as many as at the start so many times, and these. */
#define SESSION_LATER_TIMES  8
#define SESSION_LATER_PLACES 4096
#define SESSION_LATER_OPS    32768 /* what they fetch, in operations */
#define SESSION_LATER_TEXTS  256   /* texts that their conditions compare with */
#define SESSION_FLIGHT_BYTES 1024  /* of a record that is kept: strings behind that are cut off */

#endif
