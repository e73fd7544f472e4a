"""Between a store and its server: a wire that can be cut, at the worst moment too."""

from __future__ import annotations

import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

NAME = ".s.PGSQL.5432"


class Proxy:
    """Passes bytes on between its own socket and the server's. `url` leads through it."""

    def __init__(self, url: str) -> None:
        host = parse_qs(urlsplit(url).query)["host"][0]
        self._server = str(Path(host) / NAME)
        self._directory = tempfile.TemporaryDirectory(prefix="signoff-proxy-", dir="/tmp")
        self.url = url.replace(f"host={quote(host, safe='')}", f"host={quote(self._directory.name, safe='')}")
        assert self.url != url
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener: socket.socket | None = None
        self.on_commit = ""
        """What becomes of the next commit: `lost` on the way there, or its answer `unheard`."""
        self.connections = 0
        self.open()

    def open(self) -> None:
        """Let connections through."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = Path(self._directory.name) / NAME
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        listener.listen()
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def shut(self) -> None:
        """Refuse connections, and cut those there are."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def cut(self) -> None:
        """Cut every connection."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _close(*pair)

    def close(self) -> None:
        self.shut()
        self._directory.cleanup()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            server.connect(self._server)
            self.connections += 1
            with self._lock:
                self._pairs.append((client, server))
            for function in (self._there, self._back):
                threading.Thread(target=function, args=(client, server), daemon=True).start()

    def _there(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                fate = ""
                if b"commit\0" in data:
                    fate, self.on_commit = self.on_commit, ""
                if fate != "lost":
                    server.sendall(data)
                if fate:
                    break
        _close(client, server)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                client.sendall(data)
        _close(client, server)


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
