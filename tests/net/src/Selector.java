// SPDX-License-Identifier: GPL-2.0-or-later

// Selector PORT: echoes what comes over many connections, by one selector and without blocking.

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Iterator;

public class Selector {
	static final int SIZE = 32768;

	static void accept(java.nio.channels.Selector selector, ServerSocketChannel listener)
			throws IOException {
		SocketChannel channel = listener.accept();

		if (channel == null)
			return;
		channel.configureBlocking(false);
		channel.setOption(java.net.StandardSocketOptions.TCP_NODELAY, true);
		channel.register(selector, SelectionKey.OP_READ, ByteBuffer.allocateDirect(SIZE));
	}

	// Reads what there is room for, writes what is there; the end comes when all is written.
	static void echo(SelectionKey key) throws IOException {
		SocketChannel channel = (SocketChannel) key.channel();
		ByteBuffer buffer = (ByteBuffer) key.attachment();
		boolean ended = false;

		if (key.isReadable())
			ended = channel.read(buffer) < 0;
		buffer.flip();
		channel.write(buffer);
		int left = buffer.remaining();
		boolean room = left < SIZE;
		buffer.compact();
		if (ended && left == 0) {
			channel.close();
			return;
		}
		key.interestOps((left > 0 ? SelectionKey.OP_WRITE : 0) |
				(room ? SelectionKey.OP_READ : 0));
	}

	public static void main(String[] args) throws IOException {
		java.nio.channels.Selector selector = java.nio.channels.Selector.open();
		ServerSocketChannel listener = ServerSocketChannel.open();

		listener.bind(new InetSocketAddress(Integer.parseInt(args[0])), 128);
		listener.configureBlocking(false);
		listener.register(selector, SelectionKey.OP_ACCEPT);
		while (true) {
			selector.select();
			for (Iterator<SelectionKey> i = selector.selectedKeys().iterator(); i.hasNext();) {
				SelectionKey key = i.next();

				i.remove();
				try {
					if (key.isAcceptable())
						accept(selector, listener);
					else
						echo(key);
				} catch (IOException e) {
					System.out.println("end " + e.getMessage());
					key.channel().close();
				}
			}
		}
	}
}
