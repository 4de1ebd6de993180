// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/library.h"

#ifdef AX_STATIC
int library_open(const struct library *l, const struct library_function *functions, size_t n,
		 void *pointers, struct error *e)
{
	(void)functions;
	(void)n;
	(void)pointers;
	return error_set(e, -ENOTSUP,
			 "%s by the library %s, which a static ax cannot load: use one that was "
			 "built without STATIC=1",
			 l->does, l->name);
}
#else
#include <dlfcn.h>

int library_open(const struct library *l, const struct library_function *functions, size_t n,
		 void *pointers, struct error *e)
{
	void *library = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return error_set(e, -ENOTSUP,
				 "%s by the library %s, which is missing: install Debian's package "
				 "%s",
				 l->does, l->name, l->package);
	for (size_t i = 0; i < n; i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function) {
			dlclose(library);
			return error_set(e, -ENOTSUP,
					 "the library %s has no function %s: it is too old",
					 l->name, functions[i].name);
		}
		memcpy((char *)pointers + functions[i].at, &function, sizeof(function));
	}
	return 0;
}
#endif
