// SPDX-License-Identifier: GPL-2.0-or-later
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** java WebServer.java PORT NAME: answers "NAME you=PEER me=LOCAL" on the wildcard address. */
public class WebServer {
	public static void main(String[] args) throws Exception {
		int port = Integer.parseInt(args[0]);
		HttpServer server = HttpServer.create(new InetSocketAddress(port), 0);
		server.createContext("/", exchange -> {
			String text = args[1] + " you=" + exchange.getRemoteAddress().getAddress().getHostAddress()
				+ " me=" + exchange.getLocalAddress().getAddress().getHostAddress() + "\n";
			byte[] body = text.getBytes();
			exchange.sendResponseHeaders(200, body.length);
			exchange.getResponseBody().write(body);
			exchange.close();
		});
		server.setExecutor(Executors.newCachedThreadPool());
		server.start();
		System.out.println("listening at " + server.getAddress());
	}
}
