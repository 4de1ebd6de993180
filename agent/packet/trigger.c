/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "packet/trigger.h"

#define SECONDS_MAX   12 /* digits: some 30,000 years */
#define RANDOM_MIN    8
#define RANDOM_MAX    32
#define RANDOM_SIGNED 16 /* bytes, when we make one */

static const char hex[] = "0123456789abcdef";

static size_t span(const char *s, size_t len, const char *set)
{
	size_t n = 0;

	while (n < len && s[n] && strchr(set, s[n]))
		n++;
	return n;
}

static bool name_char(char c)
{
	return isascii((unsigned char)c) &&
	       (isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-');
}

static size_t name_span(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && name_char(s[n]))
		n++;
	return n;
}

bool trigger_name_ok(const char *name)
{
	size_t len = strlen(name);

	return len && len <= TRIGGER_NAME_MAX && name_span(name, len) == len;
}

/* Returns the nonce's length, 0 when there is none. */
static size_t parse_nonce(const char *s, size_t len, int64_t *time)
{
	size_t digits = span(s, len, "0123456789"), random;

	if (!digits || digits > SECONDS_MAX || digits == len || s[digits] != '.' ||
	    (s[0] == '0' && digits > 1))
		return 0;
	random = span(s + digits + 1, len - digits - 1, hex);
	if (random < RANDOM_MIN || random > RANDOM_MAX)
		return 0;
	*time = 0;
	for (size_t i = 0; i < digits; i++)
		*time = *time * 10 + (s[i] - '0');
	return digits + 1 + random;
}

static bool parse_mac(const char *s, size_t len, uint8_t *mac)
{
	if (len != 2 * TRIGGER_MAC_SIZE || span(s, len, hex) != len)
		return false;
	for (size_t i = 0; i < TRIGGER_MAC_SIZE; i++)
		mac[i] = (uint8_t)((strchr(hex, s[2 * i]) - hex) << 4 |
				   (strchr(hex, s[2 * i + 1]) - hex));
	return true;
}

int trigger_parse(const void *data, size_t len, struct trigger_message *ret)
{
	struct trigger_message m = {0};
	const char *s = data;
	size_t n;

	if (len && s[len - 1] == '\n')
		len--;
	if (len > TRIGGER_TEXT_MAX)
		return -EBADMSG;
	n = name_span(s, len);
	if (!n || n > TRIGGER_NAME_MAX || n == len || s[n] != ' ')
		return -EBADMSG;
	memcpy(m.name, s, n);
	s += n + 1;
	len -= n + 1;
	n = parse_nonce(s, len, &m.time);
	if (!n || n == len || s[n] != ' ')
		return -EBADMSG;
	memcpy(m.nonce, s, n);
	if (!parse_mac(s + n + 1, len - n - 1, m.mac))
		return -EBADMSG;
	*ret = m;
	return 0;
}

static void make_mac(const char *name, const char *nonce, const void *key, size_t len,
		     uint8_t mac[TRIGGER_MAC_SIZE])
{
	struct hmac_sha256_ctx h;

	hmac_sha256_set_key(&h, len, key);
	hmac_sha256_update(&h, strlen(name), (const uint8_t *)name);
	hmac_sha256_update(&h, 1, (const uint8_t *)" ");
	hmac_sha256_update(&h, strlen(nonce), (const uint8_t *)nonce);
	hmac_sha256_digest(&h, TRIGGER_MAC_SIZE, mac);
	explicit_bzero(&h, sizeof(h));
}

static void put_hex(const uint8_t *data, size_t len, char *to)
{
	for (size_t i = 0; i < len; i++) {
		*to++ = hex[data[i] >> 4];
		*to++ = hex[data[i] & 15];
	}
	*to = 0;
}

int trigger_sign(const char *name, const void *key, size_t len, int64_t now, char **ret)
{
	char nonce[TRIGGER_NONCE_MAX + 1], random[2 * RANDOM_SIGNED + 1];
	char text[2 * TRIGGER_MAC_SIZE + 1];
	uint8_t bytes[RANDOM_SIGNED], mac[TRIGGER_MAC_SIZE];

	if (!trigger_name_ok(name) || len < TRIGGER_KEY_MIN || now < 0 || now > 999999999999)
		return -EINVAL;
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	put_hex(bytes, sizeof(bytes), random);
	snprintf(nonce, sizeof(nonce), "%lld.%s", (long long)now, random);
	make_mac(name, nonce, key, len, mac);
	put_hex(mac, sizeof(mac), text);
	return asprintf(ret, "%s %s %s", name, nonce, text) < 0 ? -ENOMEM : 0;
}

int trigger_check(const struct trigger_message *m, const void *key, size_t len, int64_t now_ms,
		  uint32_t window_ms)
{
	int64_t off = now_ms - m->time * 1000;
	uint8_t mac[TRIGGER_MAC_SIZE];
	int same;

	make_mac(m->name, m->nonce, key, len, mac);
	same = memeql_sec(mac, m->mac, sizeof(mac));
	explicit_bzero(mac, sizeof(mac));
	if (!same)
		return -EKEYREJECTED;
	return off > (int64_t)window_ms || -off > (int64_t)window_ms ? -ESTALE : 0;
}

/* --- the key file --- */

static int key_file_check(int fd, const char *path, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(e, -errno, "cannot read the key file %s: %s", path,
				 strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, -EINVAL, "the key file %s is no regular file", path);
	if (st.st_mode & (S_IRWXO | S_IWGRP))
		return error_set(e, -EPERM,
				 "the key file %s can be read or changed by others: chmod 600 %s",
				 path, path);
	if (st.st_uid && st.st_uid != geteuid())
		return error_set(e, -EPERM,
				 "the key file %s belongs to user %u, who could change it: chown "
				 "it to root",
				 path, st.st_uid);
	if (st.st_size > TRIGGER_KEY_MAX)
		return error_set(e, -EFBIG, "the key file %s is longer than %d bytes", path,
				 TRIGGER_KEY_MAX);
	return 0;
}

int trigger_key_read(const char *path, struct trigger_key *ret, struct error *e)
{
	/* without waiting for a writer, should it be a pipe */
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct trigger_key k = {0};
	ssize_t n;
	int r;

	if (fd < 0)
		return error_set(e, -errno, "cannot open the key file %s: %s", path,
				 strerror(errno));
	r = key_file_check(fd, path, e);
	if (r)
		return r;
	k.data = malloc(TRIGGER_KEY_MAX + 1);
	if (!k.data)
		return error_set(e, -ENOMEM, "out of memory");
	while ((n = read(fd, k.data + k.len, TRIGGER_KEY_MAX - k.len)) > 0)
		k.len += (size_t)n;
	if (n < 0)
		r = error_set(e, -errno, "cannot read the key file %s: %s", path, strerror(errno));
	if (k.len && k.data[k.len - 1] == '\n')
		k.len--;
	if (!r && k.len < TRIGGER_KEY_MIN)
		r = error_set(e, -EINVAL,
			      "the key file %s holds less than %d bytes: make one with 'openssl "
			      "rand -hex -out %s 32'",
			      path, TRIGGER_KEY_MIN, path);
	if (r)
		trigger_key_free(&k);
	else
		*ret = k;
	return r;
}

void trigger_key_free(struct trigger_key *k)
{
	if (k->data)
		explicit_bzero(k->data, TRIGGER_KEY_MAX);
	free(k->data);
	*k = (struct trigger_key){0};
}

/* --- replay --- */

static void forget(struct trigger_seen *s, int64_t now_ms)
{
	size_t left = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].until_ms >= now_ms)
			s->v[left++] = s->v[i];
		else if (s->v[i].time > s->horizon)
			s->horizon = s->v[i].time;
	}
	s->n = left;
}

int trigger_remember(struct trigger_seen *s, const struct trigger_message *m, int64_t now_ms,
		     uint32_t window_ms)
{
	struct trigger_seen_entry *v;

	forget(s, now_ms);
	if (m->time <= s->horizon)
		return -ESTALE;
	for (size_t i = 0; i < s->n; i++)
		if (memcmp(s->v[i].mac, m->mac, TRIGGER_MAC_SIZE) == 0)
			return -EALREADY;
	if (s->n == TRIGGER_SEEN_MAX)
		return -ENOSPC;
	v = realloc(s->v, (s->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	v += s->n++;
	memcpy(v->mac, m->mac, TRIGGER_MAC_SIZE);
	v->time = m->time;
	v->until_ms = m->time * 1000 + window_ms;
	return 0;
}

void trigger_seen_free(struct trigger_seen *s)
{
	free(s->v);
	*s = (struct trigger_seen){0};
}
