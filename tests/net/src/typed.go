// SPDX-License-Identifier: GPL-2.0-or-later

// Strings, slices and interfaces as Go passes them.
package main

import "os"

type point struct{ X, Y int }
type record struct {
	Name string
	N    int32
	Ok   bool
	F    float64
	Tags []int
	P    *point
	Err  error
}

//go:noinline
func take(s string, list []point, r *record, all record, p point, f float64) (int, string) {
	if len(os.Args) > 9 {
		println(r)
	}
	return len(s) + len(list) + r.P.X + len(all.Name) + p.X + int(f), s
}

//go:noinline
func join(n string, p point) string {
	if p.X < 0 {
		return n
	}
	return n + "!"
}

func main() {
	r := &record{Name: "in go", N: -3, Ok: true, F: 2.5, Tags: []int{4, 5}, P: &point{1, 2},
		Err: os.ErrExist}
	for i := 0; i < 2; i++ {
		n, s := take("hello", []point{{1, 2}, {3, 4}}, r, *r, point{8, 9}, 1.25)
		sink = n + len(s) + len(join("j", point{i, 5}))
	}
}

var sink int
