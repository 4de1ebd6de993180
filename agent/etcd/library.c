// SPDX-License-Identifier: GPL-2.0-or-later
/* libcurl. It and what it needs (OpenSSL, Kerberos, LDAP, ...) are more shared libraries than all
 * that ax has: it is opened by who has a cluster. */
#include "base/library.h"
#include "etcd/library.h"

static const struct library_function functions[] = {
	{"curl_global_init", offsetof(struct curl_library, global_init)},
	{"curl_slist_append", offsetof(struct curl_library, slist_append)},
	{"curl_slist_free_all", offsetof(struct curl_library, slist_free_all)},
	{"curl_easy_init", offsetof(struct curl_library, easy_init)},
	{"curl_easy_setopt", offsetof(struct curl_library, easy_setopt)},
	{"curl_easy_getinfo", offsetof(struct curl_library, easy_getinfo)},
	{"curl_easy_cleanup", offsetof(struct curl_library, easy_cleanup)},
	{"curl_easy_strerror", offsetof(struct curl_library, easy_strerror)},
	{"curl_easy_header", offsetof(struct curl_library, easy_header)},
	{"curl_getdate", offsetof(struct curl_library, getdate)},
	{"curl_multi_init", offsetof(struct curl_library, multi_init)},
	{"curl_multi_setopt", offsetof(struct curl_library, multi_setopt)},
	{"curl_multi_add_handle", offsetof(struct curl_library, multi_add_handle)},
	{"curl_multi_remove_handle", offsetof(struct curl_library, multi_remove_handle)},
	{"curl_multi_socket_action", offsetof(struct curl_library, multi_socket_action)},
	{"curl_multi_assign", offsetof(struct curl_library, multi_assign)},
	{"curl_multi_info_read", offsetof(struct curl_library, multi_info_read)},
	{"curl_multi_perform", offsetof(struct curl_library, multi_perform)},
	{"curl_multi_poll", offsetof(struct curl_library, multi_poll)},
	{"curl_multi_cleanup", offsetof(struct curl_library, multi_cleanup)},
};

const struct curl_library *curl_library(struct error *e)
{
	static const struct library libcurl = {
		.file = "libcurl.so.4",
		.name = "libcurl",
		.package = "libcurl4",
		.does = "a cluster's etcd is reached",
	};
	static struct curl_library opened;
	static bool done;

	if (done)
		return &opened;
	if (library_open(&libcurl, functions, ARRAY_SIZE(functions), &opened, e))
		return NULL;
	if (opened.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		error_set(e, -ENOTSUP, "the library libcurl cannot be used: it does not start");
		return NULL;
	}
	done = true;
	return &opened;
}
