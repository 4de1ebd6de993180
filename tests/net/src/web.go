// SPDX-License-Identifier: GPL-2.0-or-later

// web serve ADDRESS NAME
//
//	An HTTP server: answers "NAME you=PEER host=HOST" and with /big a body of 4 MiB, sent with
//	sendfile or splice where Go's net package does that.
//
// web get URL...
//
//	Fetches each URL over a new connection and prints its body.
//
// web lookup NAME...
//
//	Prints the addresses that Go's own resolver finds.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strings"
	"time"
)

func serve(address, name string) error {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s you=%s host=%s\n", name, r.RemoteAddr, r.Host)
	})
	http.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		f, err := os.Open("/proc/self/exe")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer f.Close()
		io.CopyN(w, f, 4<<20)
	})
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listening at", listener.Addr())
	return http.Serve(listener, nil)
}

func get(urls []string) error {
	client := http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	for _, url := range urls {
		response, err := client.Get(url)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
		if len(body) > 4096 {
			fmt.Printf("%s %d bytes\n", url, len(body))
		} else {
			fmt.Printf("%s %s\n", url, strings.TrimSpace(string(body)))
		}
	}
	return nil
}

func lookup(names []string) error {
	resolver := net.Resolver{PreferGo: true}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, name := range names {
		addresses, err := resolver.LookupHost(ctx, name)
		if err != nil {
			return err
		}
		sort.Strings(addresses)
		fmt.Println(name, strings.Join(addresses, " "))
	}
	return nil
}

func main() {
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == "serve":
		err = serve(os.Args[2], os.Args[3])
	case len(os.Args) > 2 && os.Args[1] == "get":
		err = get(os.Args[2:])
	case len(os.Args) > 2 && os.Args[1] == "lookup":
		err = lookup(os.Args[2:])
	default:
		err = fmt.Errorf("usage: web serve ADDRESS NAME | get URL... | lookup NAME...")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}
