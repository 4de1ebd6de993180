// SPDX-License-Identifier: GPL-2.0-or-later
// flags: -O1 -fno-optimize-sibling-calls
/* A program with functions that are called as those of TLS libraries, and encrypt nothing. */
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

int SSL_write(void *connection, const void *data, int n);
int SSL_read_ex(void *connection, void *data, size_t n, size_t *got);
ssize_t gnutls_record_recv(void *connection, void *data, size_t n);
void SSL_free(void *connection);

__attribute__((noinline, noclone)) int SSL_write(void *connection, const void *data, int n)
{
	__asm__ volatile("" : : "r"(connection), "r"(data) : "memory");
	return n;
}

__attribute__((noinline, noclone)) int SSL_read_ex(void *connection, void *data, size_t n,
						   size_t *got)
{
	__asm__ volatile("" : : "r"(connection) : "memory");
	*got = (size_t)snprintf(data, n, "an answer");
	return 1;
}

__attribute__((noinline, noclone)) ssize_t gnutls_record_recv(void *connection, void *data,
							      size_t n)
{
	__asm__ volatile("" : : "r"(connection) : "memory");
	return snprintf(data, n, "another");
}

__attribute__((noinline, noclone)) void SSL_free(void *connection)
{
	__asm__ volatile("" : : "r"(connection) : "memory");
}

int main(void)
{
	char buf[64], question[] = "a question\n";
	int connection;
	size_t got;

	SSL_write(&connection, question, (int)strlen(question));
	SSL_read_ex(&connection, buf, sizeof(buf), &got);
	gnutls_record_recv(buf, buf, sizeof(buf));
	SSL_free(&connection);
	return 0;
}
