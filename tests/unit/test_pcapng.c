// SPDX-License-Identifier: GPL-2.0-or-later
/* Files of packets with comments, held against bytes that were put together from the draft's text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/pcapng.h"

struct bytes {
	uint8_t b[1024];
	size_t len;
};

static void put16(struct bytes *w, uint16_t v)
{
	memcpy(w->b + w->len, &v, 2);
	w->len += 2;
}

static void put32(struct bytes *w, uint32_t v)
{
	memcpy(w->b + w->len, &v, 4);
	w->len += 4;
}

static void put_text(struct bytes *w, const char *text, size_t padded)
{
	memset(w->b + w->len, 0, padded);
	memcpy(w->b + w->len, text, strlen(text));
	w->len += padded;
}

static void is_written(void (*f)(FILE *to), const struct bytes *want)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	f(to);
	assert_int_equal(fclose(to), 0);
	assert_int_equal(size, want->len);
	assert_memory_equal(text, want->b, size);
	free(text);
}

static void write_section(FILE *to)
{
	pcapng_put_section(to, "Linux", "ax");
}

static void a_section_has_its_byte_order_and_who_wrote_it(void **state)
{
	struct bytes w = {0};

	(void)state;
	put32(&w, 0x0a0d0d0a);
	put32(&w, 52);
	put32(&w, 0x1a2b3c4d);
	put16(&w, 1);
	put16(&w, 0);
	put32(&w, UINT32_MAX);
	put32(&w, UINT32_MAX);
	put16(&w, 3);
	put16(&w, 5);
	put_text(&w, "Linux", 8);
	put16(&w, 4);
	put16(&w, 2);
	put_text(&w, "ax", 4);
	put32(&w, 0);
	put32(&w, 52);
	is_written(write_section, &w);
}

static void write_interface(FILE *to)
{
	pcapng_put_interface(to, "eth0", "proto tcp", 96);
}

static void an_interface_has_nanoseconds_and_its_filter(void **state)
{
	struct bytes w = {0};

	(void)state;
	put32(&w, 1);
	put32(&w, 56);
	put16(&w, 1);
	put16(&w, 0);
	put32(&w, 96);
	put16(&w, 2);
	put16(&w, 4);
	put_text(&w, "eth0", 4);
	put16(&w, 9);
	put16(&w, 1);
	put32(&w, 9); /* on this machine: 09 00 00 00 */
	put16(&w, 11);
	put16(&w, 10);
	w.b[w.len++] = 0;
	put_text(&w, "proto tcp", 11);
	put32(&w, 0);
	put32(&w, 56);
	is_written(write_interface, &w);
}

static void write_packet(FILE *to)
{
	const struct pcapng_packet p = {
		.interface = 3,
		.time_ns = 0x123456789abcdef0,
		.data = (const uint8_t *)"hello",
		.len = 5,
		.original_len = 77,
		.direction = PCAPNG_INBOUND,
		.id = 0x1122334455667788,
		.queue = 9,
		.comment = "why",
		.xdp_action = 2,
	};

	pcapng_put_packet(to, &p);
}

static void a_packet_has_its_comment_direction_number_queue_and_verdict(void **state)
{
	struct bytes w = {0};

	(void)state;
	put32(&w, 6);
	put32(&w, 96);
	put32(&w, 3);
	put32(&w, 0x12345678);
	put32(&w, 0x9abcdef0);
	put32(&w, 5);
	put32(&w, 77);
	put_text(&w, "hello", 8);
	put16(&w, 1);
	put16(&w, 3);
	put_text(&w, "why", 4);
	put16(&w, 2);
	put16(&w, 4);
	put32(&w, 1);
	put16(&w, 5);
	put16(&w, 8);
	put32(&w, 0x55667788);
	put32(&w, 0x11223344);
	put16(&w, 6);
	put16(&w, 4);
	put32(&w, 9);
	put16(&w, 7);
	put16(&w, 9);
	w.b[w.len++] = 2;
	put32(&w, 2);
	put_text(&w, "", 7);
	put32(&w, 0);
	put32(&w, 96);
	is_written(write_packet, &w);
}

static void write_little(FILE *to)
{
	pcapng_put_packet(to, &(struct pcapng_packet){.xdp_action = -1});
}

static void what_is_not_known_is_not_there(void **state)
{
	struct bytes w = {0};

	(void)state;
	put32(&w, 6);
	put32(&w, 44);
	for (int i = 0; i < 5; i++)
		put32(&w, 0);
	put16(&w, 6);
	put16(&w, 4);
	put32(&w, 0);
	put32(&w, 0);
	put32(&w, 44);
	is_written(write_little, &w);
}

static void write_statistics(FILE *to)
{
	pcapng_put_statistics(
		to, &(struct pcapng_statistics){
			    .start_ns = 1, .end_ns = 0x100000002, .received = 30, .dropped = 4});
}

static void statistics_have_what_was_dropped(void **state)
{
	struct bytes w = {0};
	const uint32_t values[4][3] = {
		{2, 0, 1}, {3, 1, 2}, {4, 30, 0}, {7, 4, 0}}; /* times: the upper half first */

	(void)state;
	put32(&w, 5);
	put32(&w, 76);
	put32(&w, 0);
	put32(&w, 1);
	put32(&w, 2);
	for (int i = 0; i < 4; i++) {
		put16(&w, (uint16_t)values[i][0]);
		put16(&w, 8);
		put32(&w, values[i][1]);
		put32(&w, values[i][2]);
	}
	put32(&w, 0);
	put32(&w, 76);
	is_written(write_statistics, &w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_section_has_its_byte_order_and_who_wrote_it),
		cmocka_unit_test(an_interface_has_nanoseconds_and_its_filter),
		cmocka_unit_test(a_packet_has_its_comment_direction_number_queue_and_verdict),
		cmocka_unit_test(what_is_not_known_is_not_there),
		cmocka_unit_test(statistics_have_what_was_dropped),
	};

	return cmocka_run_group_tests_name("pcapng", tests, NULL, NULL);
}
