// SPDX-License-Identifier: GPL-2.0-or-later
// Port 7000 echoes; port 80 is HTTP: the body of /N is N bytes, the body of a POST is sent back.
'use strict';
const net = require('net');
const http = require('http');
const body = Buffer.alloc(1 << 20);

for (let i = 0; i < body.length; i++)
	body[i] = (i * 2654435761) >>> 24;

net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
	socket.on('error', (e) => console.log('end', e.code));
	socket.pipe(socket);
}).listen(7000);

http.createServer((request, response) => {
	if (request.method === 'POST') {
		request.pipe(response);
		return;
	}
	response.end(body.subarray(0, Number(request.url.slice(1)) % (body.length + 1)));
}).listen(80, () => console.log('ready'));
