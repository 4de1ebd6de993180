// SPDX-License-Identifier: GPL-2.0-or-later
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/** java WebClient.java URL...: fetches each URL and prints "URL BODY". */
public class WebClient {
	public static void main(String[] args) throws Exception {
		HttpClient client = HttpClient.newBuilder()
			.version(HttpClient.Version.HTTP_1_1)
			.connectTimeout(Duration.ofSeconds(5))
			.build();
		for (String url : args) {
			HttpRequest request = HttpRequest.newBuilder(URI.create(url))
				.timeout(Duration.ofSeconds(5))
				.build();
			HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
			System.out.println(url + " " + response.body().trim());
		}
	}
}
