"""A small reverse proxy: one connection for each request, WebSockets as they are."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from urllib.parse import urlsplit

END = b"\r\n\r\n"


@contextmanager
def proxied(address: str, path: str, *, host: str | None = None) -> Iterator[str]:
    """The address under which requests below `path` reach the server at `address`; others get 404.
    `host` takes the place of the Host that the browser sends.
    """
    server = urlsplit(address)
    listener = socket.create_server(("localhost", 0))

    def serve() -> None:
        with suppress(OSError):  # closed at the end
            while True:
                client, _ = listener.accept()
                Thread(target=answer, args=(client,), daemon=True).start()

    def answer(client: socket.socket) -> None:
        with client, suppress(OSError):
            head = b""
            while END not in head:
                if not (part := client.recv(65536)):
                    return
                head += part
            if not head.split(b" ")[1].startswith(path.encode()):
                client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0" + END)
                return
            if b"upgrade: websocket" not in head.lower():
                head = re.sub(rb"(?i)\r\nconnection: [^\r]*", b"", head, count=1)
                head = head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
            if host is not None:
                head = re.sub(rb"(?i)\r\nhost: [^\r]*", b"\r\nHost: " + host.encode(), head)
            with socket.create_connection((server.hostname, server.port)) as upstream:
                upstream.sendall(head)
                back = Thread(target=copy, args=(upstream, client), daemon=True)
                back.start()
                copy(client, upstream)
                back.join()

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(65536):
                target.sendall(part)
            target.shutdown(socket.SHUT_RDWR)

    Thread(target=serve, daemon=True).start()
    try:
        yield f"http://localhost:{listener.getsockname()[1]}{path}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
