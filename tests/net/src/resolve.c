// SPDX-License-Identifier: GPL-2.0-or-later
/* resolve NAME [v4|v6|any]: the addresses that the C library finds, one a line. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int family(const char *word)
{
	if (strcmp(word, "v4") == 0)
		return AF_INET;
	if (strcmp(word, "v6") == 0)
		return AF_INET6;
	return strcmp(word, "any") == 0 ? AF_UNSPEC : -1;
}

int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *ai;
	char text[NI_MAXHOST];
	int r;

	hints.ai_family = argc > 2 ? family(argv[2]) : AF_UNSPEC;
	if (argc < 2 || argc > 3 || hints.ai_family < 0) {
		fprintf(stderr, "usage: resolve NAME [v4|v6|any]\n");
		return 2;
	}
	r = getaddrinfo(argv[1], NULL, &hints, &list);
	if (r) {
		printf("%s: %s\n", argv[1], gai_strerror(r));
		return 1;
	}
	for (ai = list; ai; ai = ai->ai_next) {
		r = getnameinfo(ai->ai_addr, ai->ai_addrlen, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST);
		printf("%s\n", r ? gai_strerror(r) : text);
	}
	freeaddrinfo(list);
	return 0;
}
