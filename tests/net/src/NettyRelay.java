// SPDX-License-Identifier: GPL-2.0-or-later

// NettyRelay PORT: echoes what comes. NettyRelay PORT ADDRESS TO: a proxy of bytes to that address and
// port. By Netty, with its own ways of reading ahead, of writing what the other side has room for, and
// of half-closing.

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;

public class NettyRelay {
	// Hands on what is read, and reads no more than `to` can be written.
	static class Handler extends ChannelInboundHandlerAdapter {
		Channel to;
		boolean ended;

		Handler(Channel to) {
			this.to = to;
		}

		@Override
		public void channelRead(ChannelHandlerContext ctx, Object data) {
			to.write(data);
		}

		@Override
		public void channelReadComplete(ChannelHandlerContext ctx) {
			to.flush();
			ctx.channel().config().setAutoRead(to.isWritable());
		}

		// (of the channel that this one reads from)
		@Override
		public void channelWritabilityChanged(ChannelHandlerContext ctx) {
			if (ctx.channel().isWritable())
				to.config().setAutoRead(true);
		}

		@Override
		public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
			if (!(event instanceof ChannelInputShutdownEvent))
				return;
			ended = true;
			((SocketChannel) to).shutdownOutput().addListener(f -> close(ctx.channel()));
		}

		void close(Channel channel) {
			Handler other = to.pipeline().get(Handler.class);

			if (other == null || other.ended) {
				channel.close();
				to.close();
			}
		}

		@Override
		public void exceptionCaught(ChannelHandlerContext ctx, Throwable e) {
			System.out.println("end " + e.getMessage());
			ctx.close();
			to.close();
		}
	}

	static void relay(SocketChannel client, String address, int port) {
		client.config().setAutoRead(false);
		new Bootstrap().group(client.eventLoop()).channel(NioSocketChannel.class)
				.option(ChannelOption.ALLOW_HALF_CLOSURE, true)
				.option(ChannelOption.TCP_NODELAY, true)
				.handler(new Handler(client)).connect(address, port)
				.addListener((ChannelFutureListener) f -> {
					if (!f.isSuccess()) {
						System.out.println("end " + f.cause().getMessage());
						client.close();
						return;
					}
					client.pipeline().addLast(new Handler(f.channel()));
					client.config().setAutoRead(true);
				});
	}

	public static void main(String[] args) throws Exception {
		EventLoopGroup loops = new NioEventLoopGroup(2);

		new ServerBootstrap().group(loops).channel(NioServerSocketChannel.class)
				.childOption(ChannelOption.ALLOW_HALF_CLOSURE, true)
				.childOption(ChannelOption.TCP_NODELAY, true)
				.childHandler(new ChannelInitializer<SocketChannel>() {
					@Override
					public void initChannel(SocketChannel client) {
						if (args.length > 2)
							relay(client, args[1], Integer.parseInt(args[2]));
						else
							client.pipeline().addLast(new Handler(client));
					}
				}).bind(Integer.parseInt(args[0])).sync().channel().closeFuture().sync();
	}
}
