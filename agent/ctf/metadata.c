// SPDX-License-Identifier: GPL-2.0-or-later
/* The text that says what is in a trace, in the language TSDL. */
#include <fcntl.h>
#include <stdarg.h>

#include "ctf/priv.h"

#define NS	     UINT64_C(1000000000)
#define NAME_BYTES   96
#define NUMBER_BYTES 8 /* "_12" and more */

char *bytes_add(struct bytes *b, size_t n)
{
	size_t size = b->size ? b->size : 4096;
	char *v;

	while (size - b->n < n)
		size *= 2;
	if (size != b->size) {
		v = realloc(b->v, size);
		if (!v)
			return NULL;
		b->v = v;
		b->size = size;
	}
	b->n += n;
	return b->v + b->n - n;
}

static int PRINTF(2, 3) add(struct bytes *b, const char *fmt, ...)
{
	autofree char *text = NULL;
	va_list ap;
	char *at;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	at = bytes_add(b, (size_t)n);
	if (!at)
		return -ENOMEM;
	memcpy(at, text, (size_t)n);
	return 0;
}

/* --- names --- */

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* An identifier: readers take the underscore before it away, which keeps it from being a word of
 * the language. */
static void write_name(const char *name, char to[NAME_BYTES])
{
	size_t n = 0;

	to[n++] = '_';
	for (; *name && n < NAME_BYTES - 1; name++)
		to[n++] = is_name_char(*name) ? *name : '_';
	to[n] = '\0';
}

static bool is_taken(char names[][NAME_BYTES], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (streq(names[i], names[n]))
			return true;
	return false;
}

/* Two fields may have one name, or become alike: a number then follows. */
static void write_own_name(char names[][NAME_BYTES], size_t i, const char *name)
{
	size_t len;

	write_name(*name ? name : "value", names[i]);
	len = strnlen(names[i], NAME_BYTES - NUMBER_BYTES);
	for (unsigned n = 2; is_taken(names, i); n++)
		snprintf(names[i] + len, NUMBER_BYTES, "_%u", n);
}

/* In double quotes. */
static int add_text(struct bytes *b, const char *text)
{
	int r = add(b, "\"");

	for (; r == 0 && *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			r = add(b, "\\%c", c);
		else if (c < ' ' || c > '~')
			r = add(b, "\\%03o", c);
		else
			r = add(b, "%c", c);
	}
	return r < 0 ? r : add(b, "\"");
}

/* --- declarations --- */

/* The value 1 of 32 bits begins with a byte 1 where numbers begin with their low bytes. */
static const char *byte_order(void)
{
	const uint32_t one = 1;

	return *(const char *)&one ? "le" : "be";
}

static void write_uuid(const uint8_t uuid[CTF_UUID], char to[40])
{
	size_t n = 0;

	for (size_t i = 0; i < CTF_UUID; i++)
		n += (size_t)snprintf(to + n, 40 - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static int add_clock(struct bytes *b, int64_t offset_ns)
{
	int64_t seconds = offset_ns / (int64_t)NS, rest = offset_ns % (int64_t)NS;

	if (rest < 0) {
		rest += (int64_t)NS;
		seconds--;
	}
	return add(b,
		   "clock {\n"
		   "\tname = \"monotonic\";\n"
		   "\tdescription = \"CLOCK_MONOTONIC\";\n"
		   "\tfreq = 1000000000;\n"
		   "\toffset_s = %lld;\n"
		   "\toffset = %lld;\n"
		   "};\n\n",
		   (long long)seconds, (long long)rest);
}

static int add_types(struct bytes *b)
{
	return add(b,
		   "typealias integer { size = 8; align = 8; signed = false; } := u8;\n"
		   "typealias integer { size = 32; align = 8; signed = false; } := u32;\n"
		   "typealias integer { size = 64; align = 8; signed = false; } := u64;\n"
		   "typealias integer { size = 64; align = 8; signed = true; } := s64;\n"
		   "typealias integer { size = 64; align = 8; signed = false; base = 16; } := "
		   "x64;\n"
		   "typealias integer { size = 8; align = 8; signed = false; base = 16; } := x8;\n"
		   "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := "
		   "f64;\n"
		   "typealias integer { size = 64; align = 8; signed = false; map = "
		   "clock.monotonic.value; } := time;\n\n");
}

static int add_stream(struct bytes *b)
{
	return add(b, "stream {\n"
		      "\tid = 0;\n"
		      "\tpacket.context := struct {\n"
		      "\t\ttime timestamp_begin;\n"
		      "\t\ttime timestamp_end;\n"
		      "\t\tu64 content_size;\n"
		      "\t\tu64 packet_size;\n"
		      "\t\tu64 events_discarded;\n"
		      "\t};\n"
		      "\tevent.header := struct {\n"
		      "\t\tu32 id;\n"
		      "\t\ttime timestamp;\n"
		      "\t};\n"
		      "\tevent.context := struct {\n"
		      "\t\tu32 _pid;\n"
		      "\t\tu32 _tid;\n"
		      "\t\tu32 _cpu_id;\n"
		      "\t\tstring _procname;\n"
		      "\t\tstring _unread;\n"
		      "\t};\n"
		      "};\n\n");
}

int metadata_begin(struct ctf *c, int64_t offset_ns)
{
	struct bytes *b = &c->metadata;
	char uuid[40], host[256] = "";
	int r;

	write_uuid(c->uuid, uuid);
	gethostname(host, sizeof(host) - 1);
	r = add(b,
		"/* CTF 1.8 */\n\n"
		"trace {\n"
		"\tmajor = 1;\n"
		"\tminor = 8;\n"
		"\tuuid = \"%s\";\n"
		"\tbyte_order = %s;\n"
		"\tpacket.header := struct {\n"
		"\t\tinteger { size = 32; align = 8; signed = false; } magic;\n"
		"\t\tinteger { size = 8; align = 8; signed = false; } uuid[%d];\n"
		"\t\tinteger { size = 32; align = 8; signed = false; } stream_id;\n"
		"\t};\n"
		"};\n\n"
		"env {\n"
		"\ttracer_name = \"ax\";\n"
		"\thostname = ",
		uuid, byte_order(), CTF_UUID);
	r = r < 0 ? r : add_text(b, host);
	r = r < 0 ? r : add(b, ";\n};\n\n");
	r = r < 0 ? r : add_clock(b, offset_ns);
	r = r < 0 ? r : add_types(b);
	return r < 0 ? r : add_stream(b);
}

static int add_field(struct bytes *b, enum ctf_type type, const char *name)
{
	switch (type) {
	case CTF_SIGNED:
		return add(b, "\t\ts64 %s;\n", name);
	case CTF_HEX:
		return add(b, "\t\tx64 %s;\n", name);
	case CTF_FLOAT:
		return add(b, "\t\tf64 %s;\n", name);
	case CTF_STRING:
		return add(b, "\t\tstring %s;\n", name);
	case CTF_STRINGS: /* no field of another's begins without an underscore */
		return add(b, "\t\tu32 length%s;\n\t\tstring %s[length%s];\n", name, name, name);
	case CTF_BYTES:
		return add(b, "\t\tu32 length%s;\n\t\tx8 %s[length%s];\n", name, name, name);
	default:
		return add(b, "\t\tu64 %s;\n", name);
	}
}

int metadata_add(struct ctf *c, const char *name, const struct ctf_field *fields, size_t n)
{
	char names[CTF_FIELDS_MAX][NAME_BYTES];
	struct bytes *b = &c->metadata;
	int r = add(b, "event {\n\tname = ");

	r = r < 0 ? r : add_text(b, name);
	r = r < 0 ? r
		  : add(b, ";\n\tid = %d;\n\tstream_id = 0;\n\tfields := struct {\n", c->events);
	for (size_t i = 0; r == 0 && i < n && i < CTF_FIELDS_MAX; i++) {
		write_own_name(names, i, fields[i].name);
		r = add_field(b, fields[i].type, names[i]);
	}
	return r < 0 ? r : add(b, "\t};\n};\n\n");
}

/* --- the file --- */

/* Readers see the old text or the new one. */
int metadata_write(struct ctf *c)
{
	autoclose int fd = -1;
	int r;

	if (c->metadata_written == c->metadata.n)
		return 0;
	/* anew, whoever may have put something there */
	unlinkat(c->directory, ".metadata", 0);
	fd = openat(c->directory, ".metadata", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	r = write_whole(fd, c->metadata.v, c->metadata.n);
	if (r == 0 && close(take_fd(&fd)) < 0)
		r = -errno;
	if (r == 0 && renameat(c->directory, ".metadata", c->directory, "metadata") < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(c->directory, ".metadata", 0);
		return r;
	}
	c->metadata_written = c->metadata.n;
	return 0;
}
