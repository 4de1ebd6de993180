// SPDX-License-Identifier: GPL-2.0-or-later

// What is in interfaces of Go: values, pointers, errors, nothing.
package main

import (
	"errors"
	"fmt"
	"os"
)

type shape interface{ Area() int }
type square struct{ Side int }
type box struct {
	Name string
	W, H int
}

func (s square) Area() int { return s.Side * s.Side }
func (b *box) Area() int   { return b.W * b.H }

type holder struct {
	What any
	Err  error
}

//go:noinline
func look(s shape, v any, err error) int {
	if s == nil || len(os.Args) > 9 {
		println(v, err)
		return 0
	}
	return s.Area()
}

//go:noinline
func keep(h *holder) any {
	if len(os.Args) > 9 {
		println(h)
	}
	return h.What
}

var n int

func main() {
	n += look(square{3}, 42, errors.New("an error"))
	n += look(&box{"a box", 2, 5}, "a text", fmt.Errorf("wrapped: %w", os.ErrExist))
	n += look(&box{"b", 2, 5}, box{"by value", 1, 2}, nil)
	n += look(nil, nil, nil)
	for _, h := range []*holder{{3.5, os.ErrExist}, {true, nil}, {map[int]int{}, nil}, {int32(-7), nil}} {
		if keep(h) == nil {
			n++
		}
	}
}
