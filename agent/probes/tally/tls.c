// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/tally/functions.h"
#include "probes/tally/tls.h"
#include "probes/watch/priv.h"
#include "tls.skel.h"

#define GNUTLS(f) (AX_TLS_GNUTLS | (f))

static const struct function_wanted wanted[] = {
	{"SSL_read", AX_TLS_READ, false},
	{"SSL_write", AX_TLS_WRITE, false},
	{"SSL_read_ex", AX_TLS_READ_EX, false},
	{"SSL_write_ex", AX_TLS_WRITE_EX, false},
	{"SSL_read_early_data", AX_TLS_READ_EX, false},
	{"SSL_write_early_data", AX_TLS_WRITE_EX, false},
	{"SSL_free", AX_TLS_FREE, true},
	{"gnutls_record_recv", GNUTLS(AX_TLS_READ), false},
	{"gnutls_record_recv_seq", GNUTLS(AX_TLS_READ), false},
	{"gnutls_record_send", GNUTLS(AX_TLS_WRITE), false},
	{"gnutls_record_send2", GNUTLS(AX_TLS_WRITE), false},
	{"gnutls_record_send_range", GNUTLS(AX_TLS_WRITE), false},
	{"gnutls_deinit", GNUTLS(AX_TLS_FREE), true},
	{NULL, 0, false},
};
/* "": the program itself, which may have one of them inside. */
static const char *const libraries[] = {"libssl.so.3", "libssl.so.1.1", "libgnutls.so.30", "",
					NULL};

int tally_tls_load(const struct watch_options *o, const struct tally_tls_options *x,
		   struct watch **ret, struct error *e)
{
	struct tls *skel = tls__open();
	struct ax_tls_config *config;

	if (!skel)
		return watch_not_opened("tls", e);
	config = (void *)&skel->rodata->wanted;
	*config = (struct ax_tls_config){.bytes = x->bytes, .uid = x->uid, .only_uid = x->only_uid};
	return functions_load(
		&(struct functions_parts){
			.watch = {.skel = skel,
				  .skeleton = skel->skeleton,
				  .config = (void *)&skel->rodata->watch},
			.enter = skel->progs.ax_tls_enter,
			.leave = skel->progs.ax_tls_leave,
			.wanted = wanted,
			.libraries = libraries,
			.files = x->files,
			.of_pids = x->of_pids,
			.what = "read and write (SSL_read, gnutls_record_recv ...)"},
		o, ret, e);
}
