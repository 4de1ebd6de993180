/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "machine/instance.h"

static bool name_ok(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > INSTANCE_NAME_MAX || name[0] < 'a' || name[0] > 'z')
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == len;
}

/* FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), folded to the 24 bits of a metric that
 * stays positive for every tool that reads it as signed. Zero would mean "no metric". */
static uint32_t metric_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	h = (h >> 24) ^ (h & 0xffffff);
	return h ? h : 1;
}

int instance_init(struct instance *i, const char *name, struct error *e)
{
	if (!name)
		name = INSTANCE_DEFAULT;
	if (!name_ok(name))
		return error_set(e, -EINVAL,
				 "instance name '%.40s' is not usable: give 1 to %d lower-case "
				 "letters and digits, a letter first",
				 name, INSTANCE_NAME_MAX);
	memset(i, 0, sizeof(*i));
	snprintf(i->name, sizeof(i->name), "%s", name);
	snprintf(i->run_dir, sizeof(i->run_dir), "/run/ax/%s", i->name);
	snprintf(i->socket_path, sizeof(i->socket_path), "/run/ax/%s/control.sock", i->name);
	snprintf(i->lock_path, sizeof(i->lock_path), "/run/ax/%s/lock", i->name);
	snprintf(i->log_dir, sizeof(i->log_dir), "/run/ax/%s/log", i->name);
	snprintf(i->device_prefix, sizeof(i->device_prefix), "%s-", i->name);
	snprintf(i->dns_device, sizeof(i->dns_device), "%s-dns", i->name);
	snprintf(i->dns_peer, sizeof(i->dns_peer), "%s-dnp", i->name);
	snprintf(i->tunnel_device, sizeof(i->tunnel_device), "%s-wg", i->name);
	i->route_metric = metric_of(i->name);
	return 0;
}

void instance_mac(const struct instance *i, uint8_t ret[6])
{
	uint32_t m = i->route_metric;

	ret[0] = 0x02; /* locally administered */
	ret[1] = 'a';
	ret[2] = 'x';
	ret[3] = (uint8_t)(m >> 16);
	ret[4] = (uint8_t)(m >> 8);
	ret[5] = (uint8_t)m;
}
