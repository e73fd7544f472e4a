"""Started by a coding agent before each tool call. Exit code 0 only after a complete answer; all else refuses the call.

Agents let a call run if a hook fails in any other way than with exit code 2. So this file guards all the rest (fail
closed): it needs only the standard library, and any failure of the code that it calls, or of this process, ends as a
refusal. It is started by a shell, as `python -I hook_launcher.py AGENT … || exit 2`: that covers a missing interpreter
and a killed process. `signoff hook install` writes that line.
"""

import os
import signal
import sys

TYPE_CHECKING = False  # importing `typing` would take longer than all else here
if TYPE_CHECKING:
    import socket

BLOCKED = 2
MOST_BYTES = 16 * 1024 * 1024
"""Maximum size of an event, which may hold a long tool result. A call to be decided has a lower limit."""
LONGEST = 3600.0
"""Timeout in seconds after which this process refuses the call, whatever it is doing."""
GRACE = 10.0
"""How many seconds later it is ended from outside of Python. The agent waits longer still."""
LOOKS_EVERY = 0.5
"""How often, in seconds, this process looks whether the agent still waits for it."""


class ClientGone(Exception):
    """The agent no longer waits for the answer, so the call is not made."""


class HookClient:
    """The agent that started this process and reads its answer.

    An agent that is interrupted ends its hook with a signal; one that is killed leaves an output that nobody reads, or
    another parent.
    """

    def __init__(self) -> None:
        """From here on, signals are noted and no longer end this process."""
        self._parent = os.getppid()
        self._signal = 0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)

    def _note(self, number: int, frame: object) -> None:
        self._signal = number

    def check(self) -> None:
        """Raise `ClientGone` if it is gone."""
        if self._signal:
            raise ClientGone(f"the agent ended this hook ({signal.Signals(self._signal).name})")
        if os.getppid() != self._parent:
            raise ClientGone("the agent that started this hook is gone")
        import select

        output = select.poll()
        output.register(1, 0)  # nothing but errors: nobody can read it any more
        if output.poll(0):
            raise ClientGone("nobody reads the answer of this hook any more")


def main(arguments: "list[str]") -> int:
    """Answer one event from standard input."""
    try:
        agent, options = _read(arguments)
        limit = float(options.get("limit", LONGEST))
        _end_after(limit)
        text = _standard_input()
        client = HookClient()
        given: dict[str, str | float] = {
            "agent": agent,
            "project": options.get("project", ""),
            "store": options.get("store", ""),
            "server": options.get("server", ""),
            "token-file": options.get("token-file", ""),
            "patience": patience_within(limit),
            "caller": os.getpid(),
            "attempt": os.urandom(16).hex(),
        }
        out, err, code = _resident(given, text, client) or _here(given, text, client)
        if err:
            _write(2, err)
        _deliver(out, given, text, client)
        return code
    except BaseException as error:
        return _refused(error)


def patience_within(limit: float) -> float:
    """Return for how many seconds people are waited for: `hook install --wait` adds half a minute for the rest."""
    return limit - 30 if limit > 31 else max(1.0, limit / 2)


def _end_after(limit: float) -> None:
    """End this process as a refusal when its time is over, and a little later even if Python is stuck."""
    import faulthandler

    def refuse(number: int, frame: object) -> None:
        os._exit(_refused(TimeoutError(f"nothing was decided within {limit:g} s")))

    signal.signal(signal.SIGALRM, refuse)
    signal.setitimer(signal.ITIMER_REAL, limit)
    # A thread that needs no interpreter: it ends the process with 1, and the installed line makes that a refusal.
    faulthandler.dump_traceback_later(limit + GRACE, exit=True, file=os.open(os.devnull, os.O_WRONLY))


def _here(given: "dict[str, str | float]", text: bytes, client: HookClient) -> "tuple[str, str, int]":
    """Compute the answer in this process, and start the resident helper for the next hook."""
    from signoff.wiring.hook_answer import HookOptions, answer_hook

    reply = answer_hook(text, HookOptions.given(given), client=client.check)
    start_resident()
    return reply.out, reply.err, reply.code


def start_resident() -> None:
    """Start the resident helper, detached from this process. If that fails, the next hook is answered like this one."""
    if not socket_path():
        return
    import contextlib
    import subprocess

    nowhere = subprocess.DEVNULL
    command = [sys.executable, "-I", "-m", "signoff.wiring.hook_resident"]
    with contextlib.suppress(OSError):
        subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True, cwd="/")


def socket_path() -> str:
    """Return the path of the resident helper's socket; empty if it is disabled."""
    if os.environ.get("SIGNOFF_HOOK_RESIDENT", "1") == "0":
        return ""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "signoff", "hook", "socket")


def code_stamp() -> str:
    """Return a version stamp of this code. A helper with another stamp answers nothing."""
    return f"{__file__} {os.stat(__file__).st_mtime_ns} {sys.version}"


def environment() -> "dict[str, str]":
    """Return the environment variables that affect the answer."""
    return {
        name: value for name, value in os.environ.items() if name.startswith(("SIGNOFF_", "XDG_")) or name == "HOME"
    }


def _resident(given: "dict[str, str | float]", text: bytes, client: HookClient) -> "tuple[str, str, int] | None":
    """Return the answer of the resident helper; None if this process has to answer. Raises `ClientGone`.

    There may be no helper, or one that may not be asked. If a helper ends in the middle, this process answers too: what
    was decided is on record, and is found there.
    """
    path = socket_path()
    try:
        found = os.lstat(path)
        above = os.lstat(os.path.dirname(path))
    except (OSError, ValueError):
        return None
    if found.st_uid != os.getuid() or above.st_uid != os.getuid() or above.st_mode & 0o077:
        return None  # not ours: another user who can write there could answer anything
    import json
    import socket

    projects = {name: value for name, value in os.environ.items() if name.endswith("_PROJECT_DIR")}
    head = {"stamp": code_stamp(), "environment": environment(), "projects": projects, "given": given}
    line = json.dumps(head).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.connect(path)
            link.sendall(len(line).to_bytes(4, "big") + line + len(text).to_bytes(4, "big") + text)
            # The helper takes the end of this connection as the end of this process: nobody waits any more.
            link.settimeout(LOOKS_EVERY)
            got = b""
            while part := _received(link, client):
                got += part
        reply = json.loads(got)
        return str(reply["out"]), str(reply["err"]), int(reply["code"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _received(link: "socket.socket", client: HookClient) -> bytes:
    """Return the next part of the answer, b"" at its end. Raises `ClientGone`."""
    while True:
        try:
            return link.recv(65536)
        except TimeoutError:
            client.check()


def _deliver(out: str, given: "dict[str, str | float]", text: bytes, client: HookClient) -> None:
    """Write the answer. If nobody can have read it, the call does not run, and an approval is not used up by it."""
    try:
        if out:
            client.check()
        _write(1, out)
    except (OSError, ClientGone):
        from signoff.wiring.hook_answer import HookOptions, undelivered

        undelivered(text, HookOptions.given(given))
        raise


def _read(arguments: "list[str]") -> "tuple[str, dict[str, str]]":
    """Return the agent and the `--name value` pairs."""
    agent, *rest = arguments
    if len(rest) % 2 or not all(one.startswith("--") for one in rest[::2]):
        raise ValueError(f"the hook has wrong arguments, so install it again: {' '.join(arguments)}")
    return agent, {name[2:]: value for name, value in zip(rest[::2], rest[1::2], strict=True)}


def _standard_input() -> bytes:
    """Read all of standard input, up to the limit."""
    text = bytearray()
    while part := os.read(0, 65536):
        text += part
        if len(text) > MOST_BYTES:
            raise ValueError(f"the event is larger than {MOST_BYTES} bytes")
    return bytes(text)


def _write(descriptor: int, text: str) -> None:
    """Write all bytes of a text, or raise."""
    rest = text.encode("utf-8")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def refusal_text(error: BaseException) -> str:
    """Return the text for the model if a call could not be checked."""
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"signoff: the call is refused, because it could not be checked: {reason}\n"


def _refused(error: BaseException) -> int:
    """Print the reason and return the exit code of a refusal. Printing may fail: the code alone refuses."""
    try:
        _write(2, refusal_text(error))
    finally:
        return BLOCKED  # noqa: B012 - that is the point


if __name__ == "__main__":
    code = BLOCKED
    try:
        code = main(sys.argv[1:])
    finally:
        # No running thread and no atexit handler of a library can change the exit code any more.
        os._exit(code)
