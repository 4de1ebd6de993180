// SPDX-License-Identifier: GPL-2.0-or-later
// Strings of C++: short ones in themselves, long ones elsewhere, in structs and by value.
#include <string>
#include <string_view>

struct record {
	int id;
	std::string name;
	std::string_view view;
};
enum class mode : unsigned char { off, on = 3 };
volatile long sink;

__attribute__((noinline)) void take(const std::string &s, record &r, mode m, std::string copy,
				    std::string_view v)
{
	sink = static_cast<long>(s.size() + copy.size() + v.size()) + r.id + static_cast<long>(m);
	asm volatile("" : : "r"(&s), "r"(&r), "r"(&copy), "r"(v.data()) : "memory");
}

int main()
{
	record r{7, "in a struct", "seen"};
	std::string shorter("short\0x", 7), longer(300, 'x');

	take(shorter, r, mode::on, "by value and long enough", "a view");
	take(longer, r, mode::off, "by value", "");
	return 0;
}
