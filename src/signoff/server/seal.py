"""Signatures of what browsers hold: what was not made here is refused without a look into the store."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hmac import compare_digest, digest


class Seal:
    """Signs texts, each for one purpose only."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def mark(self, purpose: str, text: str) -> str:
        """The signature alone: 256 bits, as a browser may hold them."""
        made = digest(self._key, f"{purpose}\0{text}".encode(errors="surrogatepass"), "sha256")
        return urlsafe_b64encode(made).rstrip(b"=").decode()

    def close(self, purpose: str, text: str) -> str:
        """The text with its signature."""
        return f"{text}.{self.mark(purpose, text)}"

    def open(self, purpose: str, sealed: str) -> str | None:
        """The text, if it was signed here for this purpose."""
        text, _, mark = sealed.rpartition(".")
        return text if text and is_same(mark, self.mark(purpose, text)) else None


def is_same(sent: str, meant: str) -> bool:
    """Whether two secrets are one, in a time that tells nothing about them."""
    return compare_digest(sent.encode(errors="surrogatepass"), meant.encode())
