"""Sessions printed in a README, typed again at a real terminal, and what is seen compared with what is printed.

A fenced block of the language `console` holds commands (`$ …`), what they print, and what a person types at a prompt of
theirs. `# exit code N` after a command says how it ends. `…` stands for anything. Ids, ages, times and hashes differ
each time: an id in the README stands for whichever was printed in its place, also in the commands that follow.

python -m tests.examples.transcript README.md      # prints the file anew, with what is seen today
(once more where it fails because an id of today happens to have no digit)
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pexpect
from tests import start

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)$", re.MULTILINE)
PROMPTS = (
    "your answer > ",
    "reason, for the model and the audit log > ",
    "remember this? y yes, Enter no > ",
    "[y/N]: ",
)
TYPED = re.compile(rf"({'|'.join(map(re.escape, PROMPTS))})(\S.*)$", re.MULTILINE)
"""What a person types, behind the prompts that wait for it."""
SHELL = re.compile(r"[|&;<>()$`*?~=%\n]")
"""What only a shell understands."""
ENDS = re.compile(r"# exit code (\d)")
ID = r"(?=[a-z]*[0-9])[a-z0-9]{10}"
"""An id of a request, a run or a grant. In a README it has a digit in it, so that no word is taken for one."""
DIFFERS = re.compile(
    rf"(?P<id>\b{ID}\b)|(?P<any>…)|(?P<hash>\b(?=[a-f]*[0-9])[0-9a-f]{{12}}\b)"
    r"|(?P<age>\b(?:just now|\d+ (?:s|min) ago|in \d+ (?:s|min))\b)"
    r"|(?P<time>\b(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d\b)|(?P<took>\b\d+\.\d+s\b)"
    r"|(?P<tokens>\b[\d,]+ tokens in, [\d,]+ out\b)|(?P<process>\bprocess \d+ on [\w.-]+)"
)
"""What is different each time."""
LIKE = {
    "any": "(?s:.*?)",
    "hash": "[0-9a-f]{12}",
    "age": r"(?:just now|\d+ (?:s|min) ago|in \d+ (?:s|min))",
    "time": r"(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d",
    "took": r"\d+\.\d+s",
    "tokens": r"[\d,]+ tokens in, [\d,]+ out",
    "process": r"process \d+ on [\w.-]+",
}


BEGINS = re.compile(r"  (allowed|approved|auto-approved|remembered) ")
"""A call that runs from here on, until its result."""


@dataclass(frozen=True)
class Step:
    """A command of a README, and what is printed below it there."""

    command: str
    printed: str

    @property
    def exit_code(self) -> int:
        found = ENDS.search(self.command)
        return int(found[1]) if found else 0

    @property
    def answers(self) -> list[tuple[str, str]]:
        """Each prompt that waits, and what is typed there."""
        return [(found[1], found[2]) for found in TYPED.finditer(self.printed)]


def steps(readme: str) -> Iterator[Step]:
    """Everything that a README types, in its order."""
    for block in BLOCK.finditer(readme):
        parts = COMMAND.split(block[1])
        assert not parts[0], f"a console block begins with a command, not with {parts[0]!r}"
        for command, printed in zip(parts[1::2], parts[2::2], strict=True):
            yield Step(command, printed.removeprefix("\n"))


@dataclass
class Session:
    """A person at a terminal, in a directory that holds copies of the examples."""

    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    ids: dict[str, str] = field(default_factory=dict[str, str])
    """Ids as the README prints them, with those that they stand for today."""
    has_shell: bool = False
    """Whether each command goes to a shell, which finds the installed program as a reader's does."""

    @classmethod
    def with_example(cls, example: Path, home: Path, **environment: str) -> Session:
        """One with a fresh copy of an example below `home`."""
        copy = home / "examples" / example.name
        shutil.copytree(example, copy, ignore=shutil.ignore_patterns("__pycache__", "shop", "*.db", ".signoff"))
        return cls.in_directory(home, **environment)

    @classmethod
    def in_directory(cls, home: Path, **environment: str) -> Session:
        """One that knows nothing of whoever runs the tests."""
        nowhere = "http://127.0.0.1:9"  # whoever tries the network fails at once
        plain = {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "xterm",
            "NO_COLOR": "1",
            "SIGNOFF_AS": "ana",
            **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), nowhere),
        }
        return cls(home, {**plain, **environment})

    def play(self, readme: str) -> None:
        """Type everything a README types; what is seen has to be what it prints."""
        for step in steps(readme):
            seen = self.type(step)
            assert self.is_as_printed(step.printed, seen), f"$ {step.command}\n{seen}\n--- is not ---\n{step.printed}"

    def type(self, step: Step) -> str:
        """Run one command, answering what it asks; what is seen, as it stands on the screen at the end."""
        command = self.today(step.command)
        if command.startswith("cd "):
            self.directory = (self.directory / command.removeprefix("cd ")).resolve(strict=True)
            return ""
        child: pexpect.spawn[str] = start.terminal(
            self.started(command), cwd=self.directory, env=dict(self.environment), encoding="utf-8", dimensions=(50, 80)
        )
        seen = ""
        for prompt, typed in step.answers:
            assert child.expect_exact([prompt, pexpect.EOF]) == 0, on_screen(seen + (child.before or ""))
            seen += f"{child.before}{prompt}"
            child.sendline(self.today(typed))
        child.expect(pexpect.EOF)
        child.wait()
        seen = on_screen(seen + (child.before or ""))
        assert child.exitstatus == step.exit_code, f"$ {step.command}\nended with {child.exitstatus}:\n{seen}"
        return seen

    def started(self, command: str) -> list[str]:
        """What a shell would start for a command; the shell itself where that is more than one program."""
        if not self.has_shell and not SHELL.search(command):
            words = shlex.split(command, comments=True)
            if words[0] == "signoff":
                return [*start.SIGNOFF, *words[1:]]
            if words[0] == "python":
                return [sys.executable, *words[1:]]
        return ["/bin/sh", "-c", command]

    def today(self, text: str) -> str:
        """A text of the README with the ids of today."""
        return re.sub(rf"\b{ID}\b", lambda found: self.ids.get(found[0], found[0]), text)

    def is_as_printed(self, printed: str, seen: str) -> bool:
        """Whether what is seen is what the README prints. Learns the ids that are new in it."""
        printed, seen = results_last(printed), results_last(seen)
        pattern, at, new = "", 0, dict[str, str]()
        for found in DIFFERS.finditer(printed):
            pattern += re.escape(printed[at : found.start()])
            at = found.end()
            if found.lastgroup != "id":
                pattern += LIKE[found.lastgroup or ""]
            elif found[0] in self.ids:
                pattern += re.escape(self.ids[found[0]])
            elif found[0] in new:
                pattern += f"(?P={new[found[0]]})"
            else:
                new[found[0]] = f"id{len(new)}"
                pattern += f"(?P<{new[found[0]]}>[a-z0-9]{{10}})"
        match = re.fullmatch(pattern + re.escape(printed[at:]), seen)
        if match is not None:
            self.ids.update({known_as: match[group] for known_as, group in new.items()})
        return match is not None

    def learn_in_order(self, printed: str, seen: str) -> None:
        """The ids that are new in what the README prints stand for those that are new in what is seen, one by one."""
        known = dict.fromkeys(one for one in re.findall(rf"\b{ID}\b", printed) if one not in self.ids)
        today = dict.fromkeys(one for one in re.findall(rf"\b{ID}\b", seen) if one not in self.ids.values())
        self.ids.update(zip(known, today, strict=False))


def on_screen(text: str) -> str:
    """What stands on the screen in the end: without the line at the bottom that was taken away again, and colours."""
    text = re.sub(r"[^\n]*\r\x1b\[K", "", text.replace("\r\n", "\n"))
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.rstrip() for line in text.split("\n")]
    return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""


def results_last(text: str) -> str:
    """Calls that run at once begin and end in any order: their results are put behind the last of them that began."""
    lines, held, running = list[str](), list[str](), 0
    for line in text.splitlines(keepends=True):
        if not line.startswith("  "):  # something else than what becomes of calls
            lines, held, running = [*lines, *held], [], 0
        is_result = line.startswith("  result ")
        running += bool(BEGINS.match(line)) - is_result
        (held if is_result else lines).append(line)
        if running <= 0:
            lines, held, running = [*lines, *held], [], 0
    return "".join([*lines, *held])


def anew(readme: Path) -> str:
    """A page with what its commands print today, and the ids of today: a README of an example, or any other."""
    text = readme.read_text("utf-8")
    with tempfile.TemporaryDirectory() as home:
        session = Session.in_directory(Path(home))
        if readme.name == "README.md":
            session = Session.with_example(readme.resolve().parent, Path(home))
        for step in steps(text):
            seen = session.type(step)
            session.learn_in_order(step.printed, seen)
            text = text.replace(f"$ {step.command}\n{step.printed}", f"$ {step.command}\n{seen}", 1)
    return re.sub(rf"\b{ID}\b", lambda found: session.ids.get(found[0], found[0]), text)


if __name__ == "__main__":
    print(anew(Path(sys.argv[1])), end="")
