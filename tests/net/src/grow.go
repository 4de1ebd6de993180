// SPDX-License-Identifier: GPL-2.0-or-later

// A Go program to be traced: goroutines whose stacks grow, and so move, while they call each other.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

//go:noinline
func add(a, b int, name string) int {
	return a + b + len(name)
}

// Each call takes more than half a kilobyte of stack.
//
//go:noinline
func deep(n int) int {
	var pad [64]int
	pad[n&63] = n
	if n == 0 {
		return 0
	}
	return deep(n-1) + pad[n&63] - n + 1
}

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	depth, _ := strconv.Atoi(os.Args[2])
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for g := 0; g < 8; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			sum := 0
			for i := 0; i < n; i++ {
				sum += add(i, g, "abc")
			}
			sum += deep(depth)
			mu.Lock()
			total += sum
			mu.Unlock()
		}(g)
	}
	wg.Wait()
	fmt.Println(total)
}
