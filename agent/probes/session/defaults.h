/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes and times of probes at work. */
#ifndef AX_PROBES_SESSION_DEFAULTS_H
#define AX_PROBES_SESSION_DEFAULTS_H

#define SESSION_PARTS_MAX    8	   /* probe texts of one session */
#define SESSION_FILES_MAX    64	   /* that they are in */
#define SESSION_PLACES_MAX   20000 /* that they resolve to */
#define SESSION_POLL_MS	     5	   /* how often a reader looks for records */
#define SESSION_FLIGHT_BYTES 1024  /* of a record that is kept: strings behind that are cut off */

#endif
