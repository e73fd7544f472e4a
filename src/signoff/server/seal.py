"""HMAC signatures of values that browsers hold: forged values are refused without reading the store."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hmac import compare_digest, digest


class Seal:
    """Signs texts, each for one purpose only."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def mark(self, purpose: str, text: str) -> str:
        """Return the signature alone: 256 bits, in a form that a cookie can hold."""
        made = digest(self._key, f"{purpose}\0{text}".encode(errors="surrogatepass"), "sha256")
        return urlsafe_b64encode(made).rstrip(b"=").decode()

    def close(self, purpose: str, text: str) -> str:
        """Return the text with its signature."""
        return f"{text}.{self.mark(purpose, text)}"

    def open(self, purpose: str, sealed: str) -> str | None:
        """Return the text if it was signed here for this purpose, else None."""
        text, _, mark = sealed.rpartition(".")
        return text if text and is_same(mark, self.mark(purpose, text)) else None


def is_same(sent: str, meant: str) -> bool:
    """Compare two secrets in constant time."""
    return compare_digest(sent.encode(errors="surrogatepass"), meant.encode())
