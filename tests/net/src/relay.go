// SPDX-License-Identifier: GPL-2.0-or-later

// relay LISTEN TO
//
// Accepts connections and copies bytes both ways between each and one of its own to TO, by io.Copy:
// Go's net package takes splice(2) for that.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func copyAndClose(to, from *net.TCPConn) {
	io.Copy(to, from)
	to.CloseWrite()
}

func relay(client *net.TCPConn, to string) {
	defer client.Close()
	conn, err := net.Dial("tcp", to)
	if err != nil {
		fmt.Println("end", err)
		return
	}
	server := conn.(*net.TCPConn)
	defer server.Close()
	done := make(chan bool)
	go func() {
		copyAndClose(server, client)
		close(done)
	}()
	copyAndClose(client, server)
	<-done
}

func main() {
	if len(os.Args) != 3 {
		os.Exit(2)
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			continue
		}
		go relay(conn.(*net.TCPConn), os.Args[2])
	}
}
