// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkup/certificate.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/library.h"

#define FILE_MAX (1u << 20)

/* ax itself is not linked with it: see the Makefile's libldns.a */
static struct {
	__typeof__(BIO_new_mem_buf) *new_mem_buf;
	__typeof__(BIO_free) *bio_free;
	__typeof__(PEM_read_bio_X509) *read_x509;
	__typeof__(PEM_read_bio_PrivateKey) *read_key;
	__typeof__(X509_free) *x509_free;
	__typeof__(EVP_PKEY_free) *key_free;
	__typeof__(X509_get0_notBefore) *not_before;
	__typeof__(X509_get0_notAfter) *not_after;
	__typeof__(ASN1_TIME_to_tm) *time_to_tm;
	__typeof__(X509_check_private_key) *check_key;
} ssl;

#define AT(member) __builtin_offsetof(__typeof__(ssl), member)

static int open_library(struct error *e)
{
	static const struct library libcrypto = {.file = "libcrypto.so.3",
						 .name = "libcrypto",
						 .package = "libssl3",
						 .does = "certificates are read"};
	static const struct library_function functions[] = {
		{"BIO_new_mem_buf", AT(new_mem_buf)},
		{"BIO_free", AT(bio_free)},
		{"PEM_read_bio_X509", AT(read_x509)},
		{"PEM_read_bio_PrivateKey", AT(read_key)},
		{"X509_free", AT(x509_free)},
		{"EVP_PKEY_free", AT(key_free)},
		{"X509_get0_notBefore", AT(not_before)},
		{"X509_get0_notAfter", AT(not_after)},
		{"ASN1_TIME_to_tm", AT(time_to_tm)},
		{"X509_check_private_key", AT(check_key)},
	};
	static bool done;
	int r;

	if (done)
		return 0;
	r = library_open(&libcrypto, functions, ARRAY_SIZE(functions), &ssl, e);
	done = !r;
	return r;
}

/* No terminal is asked for a password. */
static int no_password(char *buf, int size, int writing, void *arg)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)arg;
	return -1;
}

/* NULL with a sentence. */
static BIO *open_file(const char *path, char **text, struct error *e)
{
	int r = open_library(e);
	BIO *b;

	if (r)
		return NULL;
	r = file_read(path, FILE_MAX, text);
	if (r) {
		error_set(e, r, "%s cannot be read: %s", path, strerror(-r));
		return NULL;
	}
	b = ssl.new_mem_buf(*text, (int)strlen(*text));
	if (!b)
		error_set(e, -ENOMEM, "out of memory");
	return b;
}

static X509 *read_first(const char *path, struct error *e)
{
	autofree char *text = NULL;
	BIO *b = open_file(path, &text, e);
	X509 *x = b ? ssl.read_x509(b, NULL, no_password, NULL) : NULL;

	if (b && !x)
		error_set(e, -EINVAL, "%s has no certificate in PEM", path);
	if (b)
		ssl.bio_free(b);
	return x;
}

int certificate_read(const char *path, time_t *from, time_t *until, struct error *e)
{
	X509 *x = read_first(path, e);
	struct tm first, last;
	bool fine;

	if (!x)
		return e->code;
	fine = ssl.time_to_tm(ssl.not_before(x), &first) == 1 &&
	       ssl.time_to_tm(ssl.not_after(x), &last) == 1;
	ssl.x509_free(x);
	if (!fine)
		return error_set(e, -EINVAL, "the times in %s cannot be understood", path);
	*from = timegm(&first);
	*until = timegm(&last);
	return 0;
}

int certificate_has_key(const char *path, const char *key, struct error *e)
{
	X509 *x = read_first(path, e);
	autofree char *text = NULL;
	BIO *b = x ? open_file(key, &text, e) : NULL;
	EVP_PKEY *k = b ? ssl.read_key(b, NULL, no_password, NULL) : NULL;
	int r = 0;

	if (!b)
		r = e->code;
	else if (!k)
		r = error_set(e, -EINVAL,
			      "%s has no key in PEM, or one that wants a password: give the agent "
			      "one without",
			      key);
	else if (ssl.check_key(x, k) != 1)
		r = error_set(e, -EINVAL, "the key in %s is not that of the certificate in %s", key,
			      path);
	if (k)
		ssl.key_free(k);
	if (b)
		ssl.bio_free(b);
	if (x)
		ssl.x509_free(x);
	if (text)
		explicit_bzero(text, strlen(text));
	return r;
}
