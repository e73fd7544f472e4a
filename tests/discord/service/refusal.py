"""How the service says no: Discord's error bodies, and the complaints about requests that no document describes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Path = tuple[str | int, ...]


class Refusal(Exception):
    """An answer that is an error. `code` is Discord's own number for it, beside the HTTP status."""

    def __init__(self, status: int, code: int, message: str, errors: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{status} ({code}): {message} {errors or ''}")
        self.status = status
        self.code = code
        self.message = message
        self.errors = errors

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"message": self.message, "code": self.code}
        if self.errors:
            body["errors"] = self.errors
        return body


class Unknown(Refusal):
    """A request that the API documents do not describe. It is kept in `service.errors` and fails the test."""


def unknown_channel() -> Refusal:
    return Refusal(404, 10003, "Unknown Channel")


def unknown_message() -> Refusal:
    return Refusal(404, 10008, "Unknown Message")


def unknown_interaction() -> Refusal:
    return Refusal(404, 10062, "Unknown interaction")


def missing_access() -> Refusal:
    return Refusal(403, 50001, "Missing Access")


def missing_permissions() -> Refusal:
    return Refusal(403, 50013, "Missing Permissions")


def empty_message() -> Refusal:
    return Refusal(400, 50006, "Cannot send an empty message")


class Form:
    """Collects what is wrong with a body, by place, and refuses it as one "Invalid Form Body".

    Lengths are counted in Unicode code points: that is what Discord does (discord/discord-api-docs issue 1315).
    """

    def __init__(self) -> None:
        self.errors: dict[str, Any] = {}
        self.unknown: list[str] = []

    def add(self, path: Path, code: str, message: str) -> None:
        place = self.errors
        for part in path:
            place = place.setdefault(str(part), {})
        place.setdefault("_errors", []).append({"code": code, "message": message})

    def fields(self, path: Path, value: Any, known: Iterable[str]) -> bool:
        """True if the value is an object; fields that no document names are complained about."""
        if not isinstance(value, Mapping):
            self.add(path, "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
            return False
        for field in set(value) - set(known):
            self.unknown.append(".".join(str(part) for part in (*path, field)))
        return True

    def text(self, path: Path, value: Any, most: int, *, least: int = 0, needed: bool = False) -> None:
        if value is None:
            if needed:
                self.required(path)
        elif not isinstance(value, str):
            self.add(path, "STRING_TYPE_CONVERT", f'Could not interpret "{value}" as string.')
        elif least and not least <= len(value) <= most:
            if not value and needed:
                self.required(path)
            else:
                self.add(path, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")
        elif len(value) > most:
            self.add(path, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")

    def number(self, path: Path, value: Any, least: int, most: int) -> None:
        if value is None:
            return
        if not isinstance(value, int) or isinstance(value, bool):
            self.add(path, "NUMBER_TYPE_COERCE", f'Value "{value}" is not int.')
        elif value < least:
            self.add(path, "NUMBER_TYPE_MIN", f"int value should be greater than or equal to {least}.")
        elif value > most:
            self.add(path, "NUMBER_TYPE_MAX", f"int value should be less than or equal to {most}.")

    def count(self, path: Path, value: Any, least: int, most: int) -> bool:
        """True if it is a list that can be looked into."""
        if not isinstance(value, list):
            self.add(path, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
            return False
        if not least <= len(value) <= most:
            self.add(path, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")
        return True

    def choice(self, path: Path, value: Any, choices: Iterable[Any]) -> None:
        if value not in tuple(choices):
            self.add(path, "BASE_TYPE_CHOICES", f"Value must be one of {tuple(choices)}.")

    def required(self, path: Path) -> None:
        self.add(path, "BASE_TYPE_REQUIRED", "This field is required")

    def close(self) -> None:
        """Refuse the body if anything was wrong with it."""
        if self.unknown:
            raise Unknown(400, 50035, "Invalid Form Body", {"unknown": sorted(self.unknown)})
        if self.errors:
            raise Refusal(400, 50035, "Invalid Form Body", self.errors)
