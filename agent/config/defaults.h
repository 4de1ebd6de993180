/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the config is where its file says nothing, and how much it may say. What an app, a rule or
 * a probe is without a word of the file is all zero: not named here. */
#ifndef AX_CONFIG_DEFAULTS_H
#define AX_CONFIG_DEFAULTS_H

#include "service.h"

/* --- agent: --- */
#define CONFIG_POOL4	   "10.217.0.0/16" /* addresses of apps and services; no IPv6 ones */
#define CONFIG_HOST_ACCESS true		   /* programs outside ax may reach them */
#define CONFIG_DNS_KEEP_MS 60000
#define CONFIG_DNS	   true /* answer DNS at all; its TTL: dns/defaults.h */
#define CONFIG_DNS_DOMAIN  "ax.internal"
#define CONFIG_DNS_DOMAIN_MAX \
	189 /* bytes: with a name of 63 and a dot before it it is the DNS's 253 */
#define CONFIG_DNS_UPSTREAM_PORT 53
#define CONFIG_DNS_UPSTREAMS_MAX 64
#define CONFIG_LOGS_SIZE	 (16ull << 20) /* bytes, of each detached app's output */
#define CONFIG_LOGS_SIZE_MIN	 (256ull << 10)
#define CONFIG_LOGS_SIZE_MAX	 (1ull << 40)
#define CONFIG_SPLICE		 SPLICE_AUTO

/* --- cluster: --- */
#define CONFIG_ETCD_MAX		    64	/* URLs */
#define CONFIG_PEERS_MAX	    8	/* other clusters */
#define CONFIG_EXPORT_MAX	    256 /* names */
#define CONFIG_DEAD_AFTER_MS	    30000
#define CONFIG_WIREGUARD_PORT	    51820
#define CONFIG_CLUSTER_POOL_LEN_MIN 12 /* the 2^20 addresses that a pool manages */
#define CONFIG_CLUSTER_POOL_LEN_MAX 24

/* --- apps: --- */
#define CONFIG_MEMORY_MIN  (1ull << 20)
#define CONFIG_MEMORY_MAX  (1ull << 40)
#define CONFIG_CPUS_MIN	   10	/* thousandths */
#define CONFIG_CPUS_MAX	   4096 /* whole ones */
#define CONFIG_PIDS_MAX	   4194304
#define CONFIG_VOLUMES_MAX 64

/* --- policy: the label of apps that have none of their own --- */
#define CONFIG_LABEL_KEY   "zone"
#define CONFIG_LABEL_VALUE "default"

/* --- services: --- */
#define CONFIG_SERVICE_PORTS_MAX    65535
#define CONFIG_SERVICE_BACKENDS_MAX AX_SERVICE_BACKENDS_MAX
#define CONFIG_BACKEND_WEIGHT	    1 /* of a service; a balancer's: rules/defaults.h */
#define CONFIG_BACKEND_WEIGHT_MAX   1000
#define CONFIG_AFFINITY_TIMEOUT_MS  10800000 /* Kubernetes' */

/* of an app, and of a service */
#define CONFIG_EXPOSE_MAX      256
#define CONFIG_EXPOSE_MAX_TEXT "256"

/* health checks */
#define CONFIG_CHECK_EVERY_MS	  2000
#define CONFIG_CHECK_EVERY_MIN_MS 100
#define CONFIG_CHECK_TIMEOUT_MS	  1000	/* at most: a check that comes more often has less */
#define CONFIG_CHECK_FALL	  3	/* failures in a row that make a backend down */
#define CONFIG_CHECK_RISE	  2	/* successes in a row that make it up again */
#define CONFIG_CHECK_COUNT_MAX	  100	/* of both */
#define CONFIG_CHECK_PASSIVE	  5	/* failed connections that make a backend suspect, */
#define CONFIG_CHECK_WINDOW_MS	  10000 /* within this */
#define CONFIG_CHECK_PATH_MAX	  1024	/* bytes */

/* --- xdp: (a rule list's own: rules/defaults.h) --- */
#define CONFIG_TRIGGER_WINDOW_MS 30000 /* how far the sender's clock may be off */

/* --- probes: --- */
#define CONFIG_PROBE_LAST     1024 /* records that are kept */
#define CONFIG_PROBE_LAST_MAX 65536
#define CONFIG_PROBE_NAME_MAX 63 /* bytes */
#define CONFIG_PROBES_MAX     1000
#define CONFIG_PROBE_ARMS_MAX 7 /* probes that arm or disarm one */

#endif
