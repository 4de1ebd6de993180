/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the DNS server's answers and patience are: nothing here can be set. */
#ifndef AX_DNS_DEFAULTS_H
#define AX_DNS_DEFAULTS_H

/* Names come and go, and virtual IPs stay what they are: whoever wants to cache does so anyway,
 * and nobody is kept from seeing a new app at once. The same for negative answers. Seconds. */
#define DNS_TTL_S 0

#define DNS_PORT	   53	/* of the upstreams in resolv.conf */
#define DNS_UDP_MAX	   1232 /* what an IPv6 path carries without fragments; never more by UDP */
#define DNS_UPSTREAM_NS	   2000000000ull  /* how long an upstream has for its answer */
#define DNS_CLIENT_IDLE_NS 10000000000ull /* how long a TCP connection may say nothing */
#define DNS_RCVBUF	   (16 << 20)	  /* of UDP: each asker may fill only a part */
#define DNS_QUERIES_MAX	   512		  /* open at the upstreams */
#define DNS_QUERIES_SHARE  64		  /* of these one asker's: one more fails at once */
#define DNS_HELD_MAX	   1024		  /* names that askers wait for */
#define DNS_HELD_SHARE	   64		  /* one asker's queries that wait for names */
#define DNS_CLIENTS_MAX	   128		  /* TCP connections */

#endif
