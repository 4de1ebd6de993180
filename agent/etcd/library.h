/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libcurl's functions, and nothing else of it: only this room knows them. */
#ifndef AX_ETCD_LIBRARY_H
#define AX_ETCD_LIBRARY_H

#include <curl/curl.h>

#include "base/util.h"

struct curl_library {
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_slist_append) *slist_append;
	__typeof__(curl_slist_free_all) *slist_free_all;
	__typeof__(curl_easy_init) *easy_init;
	__typeof__(curl_easy_setopt) *easy_setopt;
	__typeof__(curl_easy_getinfo) *easy_getinfo;
	__typeof__(curl_easy_cleanup) *easy_cleanup;
	__typeof__(curl_easy_strerror) *easy_strerror;
	__typeof__(curl_easy_header) *easy_header;
	__typeof__(curl_getdate) *getdate;
	__typeof__(curl_multi_init) *multi_init;
	__typeof__(curl_multi_setopt) *multi_setopt;
	__typeof__(curl_multi_add_handle) *multi_add_handle;
	__typeof__(curl_multi_remove_handle) *multi_remove_handle;
	__typeof__(curl_multi_socket_action) *multi_socket_action;
	__typeof__(curl_multi_assign) *multi_assign;
	__typeof__(curl_multi_info_read) *multi_info_read;
	__typeof__(curl_multi_perform) *multi_perform;
	__typeof__(curl_multi_poll) *multi_poll;
	__typeof__(curl_multi_cleanup) *multi_cleanup;
};

/* Loaded and initialized by the first who asks. NULL: there is none. */
const struct curl_library *curl_library(struct error *e);

#endif
