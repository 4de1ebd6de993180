// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as a capture file: every packet lies inside of them, in order, and what was read comes
 * out again when it is written. */
#include "packet/pcap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_again(const struct pcap_packet *p)
{
	struct pcap_packet got;
	struct error e;
	struct pcap r;
	autofree char *buf = NULL;
	size_t len;
	FILE *f = open_memstream(&buf, &len);

	check(f != NULL);
	pcap_put_header(f);
	pcap_put_packet(f, p);
	check(fclose(f) == 0);
	check(pcap_begin(&r, buf, len, &e) == 0 && pcap_next(&r, &got, &e) == 1);
	check(got.time_ns == p->time_ns && got.len == p->len);
	check(got.original_len == p->original_len && !memcmp(got.data, p->data, p->len));
	check(pcap_next(&r, &got, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = data;
	struct pcap_packet p;
	struct error e = {0};
	struct pcap r;
	int got;

	if (pcap_begin(&r, data, size, &e)) {
		check(*e.text != 0);
		return 0;
	}
	while ((got = pcap_next(&r, &p, &e)) == 1) {
		check(p.data >= end + 16 && p.len <= size && p.data + p.len <= data + size);
		end = p.data + p.len;
		/* more seconds than 32 bits hold come from parts of a second that are none */
		if (p.time_ns / 1000000000 <= UINT32_MAX)
			check_again(&p);
	}
	check(got == 0 || (got == -EINVAL && *e.text));
	return 0;
}
