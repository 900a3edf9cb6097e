"""A broker of Kafka that wants a login: it answers SASL itself, by PLAIN (RFC 4616), SCRAM-SHA-256 (RFC 7677) or SCRAM-SHA-512, and passes
on all other requests of a client that has logged in to a broker without SASL.

Options: {"port": PORT of that broker, "mechanism": MECHANISM, "user": USER, "password": PASSWORD}.
Events: {"event": "ready", "port": N}, {"event": "login", "mechanism": MECHANISM, "ok": true|false, "sent_password": true|false},
{"event": "refused", "request": API KEY} for a request without a login.
"""

import base64
import hashlib
import hmac
import json
import os
import socket
import struct
import sys
import threading

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
UNSUPPORTED_MECHANISM, AUTHENTICATION_FAILED = 33, 58
ITERATIONS = 4096
OPTIONS = json.loads(sys.argv[1])


def tell(**event):
    print(json.dumps(event), flush=True)


def read_exactly(stream, count):
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read_frame(stream):
    (size,) = struct.unpack(">i", read_exactly(stream, 4))
    return read_exactly(stream, size)


def write_frame(stream, data):
    stream.sendall(struct.pack(">i", len(data)) + data)


def octets(value):
    return struct.pack(">i", len(value)) + value


class Scram:
    """The server's side of SCRAM (RFC 5802), without channel binding."""

    def __init__(self, name):
        self.digest = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[name]
        self.salt = os.urandom(16)
        self.salted = hashlib.pbkdf2_hmac(self.digest, OPTIONS["password"].encode(), self.salt, ITERATIONS)
        self.first = None

    def hmac(self, key, data):
        return hmac.digest(key, data, self.digest)

    def step(self, data):
        """The answer, and whether the login is complete. None: refused."""
        if self.first is None:
            self.first = data.removeprefix(b"n,,")
            fields = dict(field.split(b"=", 1) for field in self.first.split(b","))
            if fields[b"n"] != OPTIONS["user"].encode():
                return None, False
            self.nonce = fields[b"r"] + base64.b64encode(os.urandom(12))
            self.challenge = b"r=%s,s=%s,i=%d" % (self.nonce, base64.b64encode(self.salt), ITERATIONS)
            return self.challenge, False
        final, proof = data.rsplit(b",p=", 1)
        fields = dict(field.split(b"=", 1) for field in final.split(b","))
        signed = b",".join([self.first, self.challenge, final])
        client_key = self.hmac(self.salted, b"Client Key")
        stored_key = hashlib.new(self.digest, client_key).digest()
        signature = self.hmac(stored_key, signed)
        expected = bytes(a ^ b for a, b in zip(client_key, signature))
        if fields[b"r"] != self.nonce or base64.b64decode(proof) != expected:
            return None, False
        server_key = self.hmac(self.salted, b"Server Key")
        return b"v=" + base64.b64encode(self.hmac(server_key, signed)), True


class Plain:
    def step(self, data):
        _, user, password = data.decode().split("\0")
        ok = (user, password) == (OPTIONS["user"], OPTIONS["password"])
        return (b"" if ok else None), ok


def with_sasl(response, version):
    """The answer to ApiVersions, which also names the requests of SASL."""
    more = [(SASL_HANDSHAKE, 0, 1), (SASL_AUTHENTICATE, 0, 0)]
    head, rest = response[:6], response[6:]
    if head[4:] != b"\0\0":
        # The broker does not know the version, and the client asks again.
        return response
    if version < 3:
        (count,) = struct.unpack(">i", rest[:4])
        entries = b"".join(struct.pack(">hhh", *one) for one in more)
        return head + struct.pack(">i", count + len(more)) + entries + rest[4:]
    assert rest[0] < 126, "the count is one octet"
    entries = b"".join(struct.pack(">hhhB", *one, 0) for one in more)
    return head + bytes([rest[0] + len(more)]) + entries + rest[1:]


def serve(client, own_port):
    broker = socket.create_connection(("127.0.0.1", OPTIONS["port"]))
    login, logged_in, everything = None, False, b""
    here = b"127.0.0.1" + struct.pack(">i", OPTIONS["port"])
    try:
        while True:
            request = read_frame(client)
            key, version = struct.unpack(">hh", request[:4])
            correlation = request[4:8]
            if key == API_VERSIONS:
                write_frame(broker, request)
                write_frame(client, with_sasl(read_frame(broker), version))
            elif key == SASL_HANDSHAKE:
                (length,) = struct.unpack(">h", request[8:10])
                body = request[10 + max(length, 0) :]
                mechanism = body[2:].decode()
                known = mechanism == OPTIONS["mechanism"]
                login = (Plain() if mechanism == "PLAIN" else Scram(mechanism)) if known else None
                name = OPTIONS["mechanism"].encode()
                error = 0 if known else UNSUPPORTED_MECHANISM
                write_frame(
                    client, correlation + struct.pack(">hih", error, 1, len(name)) + name
                )
            elif key == SASL_AUTHENTICATE:
                (length,) = struct.unpack(">h", request[8:10])
                data = request[10 + max(length, 0) + 4 :]
                everything += data
                answer, logged_in = login.step(data)
                if answer is None or logged_in:
                    sent = OPTIONS["password"].encode() in everything
                    tell(event="login", mechanism=OPTIONS["mechanism"], ok=logged_in, sent_password=sent)
                if answer is None:
                    what = b"wrong user or password"
                    error = struct.pack(">hh", AUTHENTICATION_FAILED, len(what)) + what
                    write_frame(client, correlation + error + octets(b""))
                    return
                write_frame(client, correlation + struct.pack(">hh", 0, -1) + octets(answer))
            elif not logged_in:
                tell(event="refused", request=key)
                return
            else:
                write_frame(broker, request)
                # The broker's own address leads past the login.
                there = b"127.0.0.1" + struct.pack(">i", own_port)
                write_frame(client, read_frame(broker).replace(here, there))
    except (EOFError, OSError):
        pass
    finally:
        client.close()
        broker.close()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    tell(event="ready", port=port)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, port), daemon=True).start()


main()
