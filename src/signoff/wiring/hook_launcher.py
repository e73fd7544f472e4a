"""Started by a coding agent before each tool call. It ends with 0 only after a whole answer; everything else refuses.

Agents let a call run where a hook fails in any other way than by the exit code 2. So this file guards all the rest: it
needs nothing but the standard library, and whatever happens to the code that it calls, or to this process, ends as a
refusal. It is started by a shell, as `python -I hook_launcher.py AGENT … || exit 2`: that covers an interpreter that is
not there, and a process that is killed. `signoff hook install` writes that line.
"""

import os
import signal
import sys

BLOCKED = 2
MOST_BYTES = 16 * 1024 * 1024
"""Of an event: what a tool gave may be long. A call that is to be judged is much shorter."""
LONGEST = 3600.0
"""Seconds until the system itself ends this process, whatever it is doing."""


def main(arguments: "list[str]") -> int:
    """Answer one event from standard input."""
    try:
        agent, options = _read(arguments)
        limit = float(options.get("limit", LONGEST))
        # No handler: the system ends the process even where Python does not get to run one.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limit)
        given: dict[str, str | float] = {
            "agent": agent,
            "project": options.get("project", ""),
            "store": options.get("store", ""),
            "server": options.get("server", ""),
            "token-file": options.get("token-file", ""),
            "patience": max(1.0, limit - min(30.0, limit / 2)),
            "caller": os.getpid(),
        }
        text = _standard_input()
        reply = _resident(given, text) or _here(given, text)
        out, err, code = reply
        if err:
            _write(2, err)
        _write(1, out)
        return code
    except BaseException as error:
        return _refused(error)


def _here(given: "dict[str, str | float]", text: bytes) -> "tuple[str, str, int]":
    """The answer, worked out in this process; the next one finds a resident helper, if that can be started."""
    from signoff.wiring.hook_answer import HookOptions, answer_hook

    reply = answer_hook(text, HookOptions.given(given))
    start_resident()
    return reply.out, reply.err, reply.code


def start_resident() -> None:
    """Start the helper, detached from whoever asks. Where that fails, the next hook is answered as this one was."""
    if not socket_path():
        return
    import contextlib
    import subprocess

    nowhere = subprocess.DEVNULL
    command = [sys.executable, "-I", "-m", "signoff.wiring.hook_resident"]
    with contextlib.suppress(OSError):
        subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True, cwd="/")


def socket_path() -> str:
    """Where the resident helper listens; empty where nobody may start one."""
    if os.environ.get("SIGNOFF_HOOK_RESIDENT", "1") == "0":
        return ""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "signoff", "hook", "socket")


def code_stamp() -> str:
    """Which code this is: a helper of another version answers nothing."""
    return f"{__file__} {os.stat(__file__).st_mtime_ns} {sys.version}"


def environment() -> "dict[str, str]":
    """What of the environment decides about the answer."""
    return {
        name: value for name, value in os.environ.items() if name.startswith(("SIGNOFF_", "XDG_")) or name == "HOME"
    }


def _resident(given: "dict[str, str | float]", text: bytes) -> "tuple[str, str, int] | None":
    """The answer of the resident helper; None where there is none that may be asked, and it has to be worked out here.

    A helper that ends in the middle is as good as none: what was decided is on record, and is found there.
    """
    path = socket_path()
    try:
        found = os.lstat(path)
        above = os.lstat(os.path.dirname(path))
    except (OSError, ValueError):
        return None
    if found.st_uid != os.getuid() or above.st_uid != os.getuid() or above.st_mode & 0o077:
        return None  # not ours: whoever can write there could answer anything
    import json
    import socket

    projects = {name: os.environ[name] for name in ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR") if name in os.environ}
    head = {"stamp": code_stamp(), "environment": environment(), "projects": projects, "given": given}
    line = json.dumps(head).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.connect(path)
            link.sendall(len(line).to_bytes(4, "big") + line + len(text).to_bytes(4, "big") + text)
            link.shutdown(socket.SHUT_WR)
            got = b""
            while part := link.recv(65536):
                got += part
        reply = json.loads(got)
        return str(reply["out"]), str(reply["err"]), int(reply["code"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(arguments: "list[str]") -> "tuple[str, dict[str, str]]":
    """The agent, and `--name value` pairs."""
    agent, *rest = arguments
    if len(rest) % 2 or not all(one.startswith("--") for one in rest[::2]):
        raise ValueError(f"the hook has wrong arguments, so install it again: {' '.join(arguments)}")
    return agent, {name[2:]: value for name, value in zip(rest[::2], rest[1::2], strict=True)}


def _standard_input() -> bytes:
    """All of it, up to a limit."""
    text = bytearray()
    while part := os.read(0, 65536):
        text += part
        if len(text) > MOST_BYTES:
            raise ValueError(f"the event is larger than {MOST_BYTES} bytes")
    return bytes(text)


def _write(descriptor: int, text: str) -> None:
    """Every byte of it, or an error."""
    rest = text.encode("utf-8")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def refusal_text(error: BaseException) -> str:
    """What the model reads where a call could not be judged."""
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"signoff: the call is refused, because it could not be checked: {reason}\n"


def _refused(error: BaseException) -> int:
    """The exit code of a refusal, after saying why. To say it may fail: the code alone refuses."""
    try:
        _write(2, refusal_text(error))
    finally:
        return BLOCKED  # noqa: B012 - that is the point


if __name__ == "__main__":
    code = BLOCKED
    try:
        code = main(sys.argv[1:])
    finally:
        # Nothing that still goes on, and no handler of a library, can change the code any more.
        os._exit(code)
