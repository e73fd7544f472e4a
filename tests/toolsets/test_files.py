"""The file tools: what they do, what they refuse, what they say to models and to people."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ToolReturnPart

from signoff import Signoff
from signoff.core.verdict import Effect, Verdict
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets.builtin.files.file_toolset import READS, WRITES, FilesToolset, filesystem


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small project beside something that is none of its business."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("outside")
    directory = tmp_path / "root"
    (directory / "src" / "deep").mkdir(parents=True)
    (directory / ".git").mkdir()
    (directory / ".git" / "config").write_text("[core]\nneedle\n")
    (directory / "src" / "main.py").write_text("import os\n\nneedle = 1\n")
    (directory / "src" / "deep" / "util.py").write_text("Needle\n")
    (directory / "notes.md").write_text("one\ntwo\nthree\n")
    (directory / ".env").write_text("TOKEN=needle\n")
    (directory / "blob.bin").write_bytes(b"needle\0\x01\x02")
    (directory / "out").symlink_to("../outside")
    (directory / "alias").symlink_to(".env")
    (directory / "cfg").symlink_to(".git")
    (directory / "in").symlink_to("src/main.py")
    return directory


@pytest.fixture
def files(root: Path) -> FilesToolset:
    """Its tools."""
    return filesystem(root)


def refused(tool: Any, *args: Any, **options: Any) -> str:
    """What a model is told about a call that is refused."""
    with pytest.raises(ToolFailed) as caught:
        tool(*args, **options)
    assert caught.value.__cause__ is None
    return caught.value.message


# reading


def test_what_is_changed_in_the_tools_of_one_is_not_in_those_of_another(root: Path) -> None:
    one, other = filesystem(root), filesystem(root)
    told = other.tools["read_file"].function_schema
    one.tools["read_file"].function_schema.json_schema["properties"].clear()
    one.tools["read_file"].function_schema.return_schema["changed"] = True
    assert "path" in told.json_schema["properties"] and "changed" not in told.return_schema
    assert "path" in filesystem(root).tools["read_file"].function_schema.json_schema["properties"]
    assert told.function == other.read_file, "each calls its own"


def test_listing(files: FilesToolset) -> None:
    lines = files.list_files().split("\n")
    assert lines == [
        ".env", ".git/", "alias (a link)", "blob.bin", "cfg (a link)", "in (a link)", "notes.md", "out (a link)", "src/"
    ]  # fmt: skip
    assert files.list_files("src", recursive=True) == "src/deep/\nsrc/main.py\nsrc/deep/util.py"
    assert files.list_files(recursive=True, pattern="*.py") == "src/main.py\nsrc/deep/util.py"
    assert files.list_files("src", recursive=True, pattern="deep/*") == "src/deep/util.py"
    assert files.list_files(pattern="*.nothing") == "[nothing found]"
    assert ".git/config" not in files.list_files(recursive=True)
    assert "pattern" in refused(files.list_files, pattern="[")
    assert "outside the root directory" in refused(files.list_files, "out")


def test_a_long_list_is_cut_and_says_so(root: Path) -> None:
    for number in range(30):
        (root / f"f{number:02}").touch()
    assert filesystem(root, max_results=5).list_files().endswith("\n[stopped after 5 results]")
    assert "[cut after 20 characters]" in filesystem(root, max_chars=20).list_files()


def test_odd_names_are_shown_as_what_they_are(root: Path, files: FilesToolset) -> None:
    (root / "a\nb").touch()
    (root / os.fsdecode(b"\xff")).touch()
    lines = files.list_files().split("\n")
    assert len(lines) == 11
    assert not any("\udcff" in line for line in lines)


def test_reading_lines(root: Path, files: FilesToolset) -> None:
    assert files.read_file("notes.md") == "one\ntwo\nthree\n"
    assert files.read_file(str(root / "notes.md")) == "one\ntwo\nthree\n"
    assert files.read_file("notes.md", start_line=2, max_lines=1) == "two\n[lines 2-2 of 3; continue with start_line=3]"
    assert files.read_file("in").startswith("import os")
    assert "3 lines only" in refused(files.read_file, "notes.md", start_line=9)
    (root / "latin").write_bytes(b"caf\xe9\n")
    assert files.read_file("latin") == "caf\ufffd\n[bytes that are not UTF-8 are shown as \ufffd]"
    (root / "empty").touch()
    assert files.read_file("empty") == "[the file is empty]"
    small = filesystem(root, max_chars=6)
    assert small.read_file("notes.md") == "one\n[lines 1-1 of 3; continue with start_line=2]"
    (root / "wide").write_text("x" * 100)
    assert small.read_file("wide") == "xxxxxx\n[line 1 is cut after 6 characters]"


def test_what_is_not_read(root: Path, files: FilesToolset) -> None:
    assert "not a text file; it has 9 bytes" in refused(files.read_file, "blob.bin")
    assert "too large: 14 bytes" in refused(filesystem(root, max_bytes=10).read_file, "notes.md")
    assert "does not exist" in refused(files.read_file, "missing")
    assert "is a directory" in refused(files.read_file, "src")
    os.mkfifo(root / "pipe")
    assert "is a pipe" in refused(files.read_file, "pipe")
    for path in ("../outside/secret", "out/secret", "/etc/passwd", "", "~/x", "a\0", "src/../../outside/secret"):
        message = refused(files.read_file, path)
        assert "refused" in message
        assert str(root.parent) not in message


def test_what_the_kernel_keeps_is_no_file() -> None:
    files = filesystem("/")
    for path in ("/proc/self/environ", "proc/version", "tmp/../proc/version", "dev/null", "/sys/kernel/notes"):
        refused(files.read_file, path)
        assert isinstance(files.needs_approval("read_file", {"path": path}, None), Verdict)
    assert "refused" in refused(files.list_files, "proc/self")
    for path in ("etc/shadow", "/etc/shadow", "etc/../etc/shadow"):
        assert files.needs_approval("read_file", {"path": path}, None).effect is Effect.ASK
    assert files.needs_approval("read_file", {"path": "/etc/hostname"}, None).effect is Effect.ALLOW


def test_searching(root: Path, files: FilesToolset) -> None:
    found = files.search_files("needle").split("\n")
    assert found == [
        "src/main.py:3: needle = 1",
        "[1 files that are not text left out; 1 files that may hold secrets left out]",
    ]
    assert "src/deep/util.py:1: Needle" in files.search_files("needle", ignore_case=True)
    assert files.search_files(r"n\w+ = \d$", regex=True, glob="*.py") == "src/main.py:3: needle = 1"
    assert files.search_files("N.*e$", "src/deep", regex=True, ignore_case=True) == "src/deep/util.py:1: Needle"
    assert files.search_files("needle", "src/main.py") == "src/main.py:3: needle = 1"
    assert files.search_files("TOKEN", ".env") == ".env:1: TOKEN=needle", "named by itself, it was asked about"
    assert "not supported" in refused(files.search_files, "(?=a)", regex=True)
    assert "empty" in refused(files.search_files, "")
    assert "outside the root directory" in refused(files.search_files, "x", "out")
    (root / "many").write_text("needle\n" * 50)
    assert "\n[stopped after 3 results; " in filesystem(root, max_results=3).search_files("needle")


def test_a_search_ends_whatever_the_pattern(root: Path, files: FilesToolset) -> None:
    (root / "a.txt").write_text("a" * 15_000 + "!\n")
    begun = time.monotonic()
    assert files.search_files(r"(a+)+$", regex=True) == files.search_files(r"(a|a)*b$", regex=True)
    assert time.monotonic() - begun < 8


# writing


def test_writing(root: Path, files: FilesToolset) -> None:
    assert files.write_file("new/deep/file.txt", "häl\n") == "wrote 5 bytes to new/deep/file.txt"
    assert (root / "new/deep/file.txt").read_bytes() == "häl\n".encode()
    (root / "notes.md").chmod(0o600)
    files.write_file("notes.md", "new\n")
    assert stat.S_IMODE((root / "notes.md").stat().st_mode) == 0o600
    assert [name for name in os.listdir(root) if name.endswith(".tmp")] == []
    assert "unpaired surrogates" in refused(files.write_file, "x", "\ud800")
    assert "more than 3 bytes" in refused(filesystem(root, max_bytes=3).write_file, "x", "four")
    assert not (root / "x").exists()
    assert "is a directory" in refused(files.write_file, "src", "x")
    os.mkfifo(root / "pipe")
    assert "is a pipe" in refused(files.write_file, "pipe", "x")
    for path in ("out/new", "out/secret", "../outside/secret", "out/deep/new", str(root.parent / "outside" / "x")):
        assert "refused" in refused(files.write_file, path, "x")
    assert os.listdir(root.parent / "outside") == ["secret"]
    assert (root.parent / "outside" / "secret").read_text() == "outside"


def test_editing(root: Path, files: FilesToolset) -> None:
    assert files.edit_file("notes.md", "two", "2") == "edited notes.md"
    assert (root / "notes.md").read_text() == "one\n2\nthree\n"
    assert "is not in the file" in refused(files.edit_file, "notes.md", "four", "4")
    assert "3 times" in refused(files.edit_file, "notes.md", "e", "E")
    files.edit_file("notes.md", "e", "E", replace_all=True)
    assert (root / "notes.md").read_text() == "onE\n2\nthrEE\n"
    (root / "odd").write_bytes(b"\xff a\r\nb\r\n")
    assert "CR LF" in refused(files.edit_file, "odd", "a\nb", "c")
    files.edit_file("odd", "a", "c")
    assert (root / "odd").read_bytes() == b"\xff c\r\nb\r\n"
    files.edit_file("in", "needle", "thread")
    assert (root / "in").is_symlink()
    assert "thread" in (root / "src/main.py").read_text()
    assert "not a text" in refused(files.edit_file, "blob.bin", "needle", "x")
    assert "does not exist" in refused(files.edit_file, "missing", "a", "b")
    assert "same" in refused(files.edit_file, "notes.md", "2", "2")
    assert "empty" in refused(files.edit_file, "notes.md", "", "2")


def test_edits_at_the_same_time_do_not_undo_each_other(root: Path, files: FilesToolset) -> None:
    (root / "many").write_text("".join(f"<{number}>\n" for number in range(8)))
    threads = [threading.Thread(target=files.edit_file, args=("many", f"<{n}>", f"[{n}]")) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (root / "many").read_text() == "".join(f"[{number}]\n" for number in range(8))


def test_moving(root: Path, files: FilesToolset) -> None:
    (root / "other").write_text("other")
    assert "already exists" in refused(files.move_file, "notes.md", "other")
    files.move_file("notes.md", "other", overwrite=True)
    files.move_file("other", "new/place")
    files.move_file("src", "lib/")
    assert (root / "new/place").read_text() == "one\ntwo\nthree\n"
    assert (root / "lib/main.py").exists()
    assert "does not exist" in refused(files.move_file, "missing", "x")
    for source, target in (("new/place", "out/x"), ("out/secret", "x"), ("../outside/secret", "x"), ("lib", "../lib")):
        assert "refused" in refused(files.move_file, source, target)
    assert "cannot be used this way" in refused(files.move_file, "lib", "lib/lib")


def test_deleting(root: Path, files: FilesToolset) -> None:
    files.delete_file("notes.md")
    files.delete_file("out")
    assert not (root / "notes.md").exists() and not (root / "out").is_symlink()
    assert (root.parent / "outside" / "secret").exists()
    assert "not empty" in refused(files.delete_file, "src")
    (root / "void").mkdir()
    files.delete_file("void/")
    assert not (root / "void").exists()
    assert "does not exist" in refused(files.delete_file, "void")
    assert "is a directory" in refused(files.delete_file, ".")


def test_a_link_is_no_way_around_a_name(root: Path, files: FilesToolset) -> None:
    (root / ".git" / "x").write_text("x")
    assert "use that path itself" in refused(files.read_file, "alias")
    assert "use that path itself" in refused(files.search_files, "TOKEN", "alias")
    for tool in (files.write_file, lambda path, text: files.move_file("notes.md", path)):
        assert "counts as running code" in refused(tool, "cfg/config", "x")
        assert "counts as running code" in refused(tool, "cfg/new/config", "x")
    assert "counts as running code" in refused(files.delete_file, "cfg/x")
    assert (root / ".git/config").read_text().startswith("[core]")
    assert not (root / ".git/new").exists()
    assert files.read_file(".env") == "TOKEN=needle\n", "by its own name it can be asked about"
    assert files.read_file("cfg/config").startswith("[core]"), "reading it is harmless"


def test_a_swap_while_a_person_is_asked_changes_nothing(root: Path, files: FilesToolset) -> None:
    assert files.needs_approval("read_file", {"path": "notes.md"}, None).effect is Effect.ALLOW
    (root / "notes.md").unlink()
    (root / "notes.md").symlink_to(".env")
    assert "use that path itself" in refused(files.read_file, "notes.md")
    (root / "src" / "main.py").unlink()
    (root / "src" / "main.py").symlink_to("../.git/config")
    assert "counts as running code" in refused(files.write_file, "src/main.py", "x")
    assert (root / ".git/config").read_text().startswith("[core]")


def test_the_directory_that_is_written_to_is_the_one_that_is_judged(root: Path, files: FilesToolset) -> None:
    files.root.where = lambda path, follow=True: path  # the look before it, as it was before somebody swapped `cfg`
    assert "counts as running code" in refused(files.write_file, "cfg/config", "x")
    assert "counts as running code" in refused(files.move_file, "notes.md", "cfg/new")
    assert "counts as running code" in refused(files.delete_file, "cfg/config")
    assert (root / ".git/config").read_text().startswith("[core]") and (root / "notes.md").exists()


# what it declares


@pytest.mark.parametrize(
    ("name", "args", "labels", "needs"),
    [("list_files", {}, {"fs.read"}, False), ("read_file", {"path": "notes.md"}, {"fs.read"}, False),
     ("read_file", {"path": ".env"}, {"fs.read"}, True), ("read_file", {"path": "./src/../.env"}, {"fs.read"}, True),
     ("search_files", {"pattern": "x"}, {"fs.read"}, False),
     ("search_files", {"pattern": "x", "path": ".ssh"}, {"fs.read"}, True),
     ("write_file", {"path": "notes.md", "content": ""}, {"fs.write"}, True),
     ("write_file", {"path": ".git/config", "content": ""}, {"fs.write", "proc.exec"}, True),
     ("edit_file", {"path": "package.json", "old": "a", "new": "b"}, {"fs.write", "proc.exec"}, True),
     ("move_file", {"source": "notes.md", "target": "Makefile"}, {"fs.write", "proc.exec"}, True),
     ("move_file", {"source": "conftest.py", "target": "x"}, {"fs.write", "proc.exec"}, True),
     ("delete_file", {"path": "notes.md"}, {"fs.write"}, True), ("delete_file", {"path": "out"}, {"fs.write"}, True),
     ("something_else", {"path": "notes.md"}, set(), True)],
)  # fmt: skip
def test_labels_and_needs(files: FilesToolset, name: str, args: dict[str, Any], labels: set[str], needs: bool) -> None:
    assert set(files.capability_labels(name, args, None)) == labels
    assert (files.needs_approval(name, args, None).effect is not Effect.ALLOW) is needs


@pytest.mark.parametrize(
    ("name", "args"),
    [("read_file", {"path": "../outside/secret"}), ("read_file", {"path": "out/secret"}),
     ("read_file", {"path": "alias"}), ("read_file", {"path": ""}),
     ("write_file", {"path": "cfg/config", "content": "x"}), ("write_file", {"path": "/etc/x", "content": "x"}),
     ("move_file", {"source": "notes.md", "target": "out/x"}), ("delete_file", {"path": "out/secret"})],
)  # fmt: skip
def test_nobody_is_asked_about_what_is_refused_anyway(files: FilesToolset, name: str, args: dict[str, Any]) -> None:
    said = files.needs_approval(name, args, None)
    assert isinstance(said, Verdict)
    assert said.effect is Effect.DENY
    assert "refused" in said.reason
    assert "refused" in files.describe_approval(name, args, None)["reason"]
    refused(getattr(files, name), **args)


def test_people_see_the_difference(root: Path, files: FilesToolset) -> None:
    said = files.describe_approval("write_file", {"path": "notes.md", "content": "one\n2\nthree\n"}, None)
    assert said["summary"] == "Write notes.md" and said["path"] == "notes.md"
    assert said["diff"].split("\n")[2:] == ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]
    said = files.describe_approval("edit_file", {"path": "in", "old": "needle", "new": "x"}, None)
    assert "-needle = 1\n+x = 1" in said["diff"]
    assert said["summary"] == "Edit in (a way to src/main.py)"
    said = files.describe_approval("write_file", {"path": "new.txt", "content": "a\nb\n"}, None)
    assert "+a\n+b" in said["diff"] and "\n-" not in said["diff"].replace("\n--- ", "")
    said = files.describe_approval("write_file", {"path": "not/yet/new.txt", "content": "a\nb\n"}, None)
    assert "+a\n+b" in said["diff"] and "reason" not in said, "directories that are missing are made"
    said = files.describe_approval("edit_file", {"path": "not/yet/new.txt", "old": "a", "new": "b"}, None)
    assert said["reason"].startswith("it may fail: No such file") and "diff" not in said
    said = files.describe_approval("delete_file", {"path": "notes.md"}, None)
    assert "-one\n-two\n-three" in said["diff"]
    said = files.describe_approval(
        "move_file", {"source": "notes.md", "target": "src/main.py", "overwrite": True}, None
    )
    assert said["summary"] == "Move notes.md to src/main.py, replacing what is there" and "-import os" in said["diff"]
    said = files.describe_approval("edit_file", {"path": "notes.md", "old": "none", "new": "x"}, None)
    assert "it will fail: the text to replace is not in the file" in said["reason"]
    said = files.describe_approval("write_file", {"path": "blob.bin", "content": "x"}, None)
    assert said["preview"] == "9 bytes -> 1 byte; not a text, so no difference is shown"
    said = files.describe_approval("write_file", {"path": "big", "content": "x" * 2_000_000}, None)
    assert "too large" in said["preview"]
    assert (root / "notes.md").read_text() == "one\ntwo\nthree\n" and not (root / "new.txt").exists()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("write_file", {"path": "notes.md", "content": "x"}),
        ("edit_file", {"path": "notes.md", "old": "one", "new": "1"}),
        ("move_file", {"source": "notes.md", "target": "other.md"}),
        ("delete_file", {"path": "notes.md"}),
    ],
)
def test_where_no_rule_speaks_the_reason_is_what_the_call_does(
    files: FilesToolset, name: str, args: dict[str, Any]
) -> None:
    said = files.needs_approval(name, args, None)
    assert (said.effect, said.reason, said.yields) == (Effect.ASK, "it changes files", True)


def test_people_hear_why_it_matters(files: FilesToolset) -> None:
    said = files.describe_approval("write_file", {"path": ".git/config", "content": "x"}, None)
    assert "counts as running code" in said["reason"] and "-[core]" in said["diff"]
    said = files.describe_approval("read_file", {"path": ".env"}, None)
    assert "secret" in said["reason"]
    said = files.describe_approval("write_file", {"path": ".env", "content": "TOKEN=2\n"}, None)
    assert "needle" not in str(said), "what is secret was shown"


# in an agent, behind the gate


def agent(files: FilesToolset, ui: ScriptedApprover, *turns: tuple[str, dict[str, Any]]) -> Agent[Any, Any]:
    script: list[dict[str, Any]] = [{"calls": [{"tool": tool, "args": args}]} for tool, args in turns]
    model = ScriptedModel([*script, {"say": "done"}])
    return Agent(model, toolsets=[files.prefixed("p")], capabilities=[Signoff(policy=[], approver=ui)])


def returns(messages: list[ModelMessage]) -> list[tuple[str, str]]:
    parts = [part for message in messages for part in message.parts]
    return [(part.outcome, str(part.content)) for part in parts if isinstance(part, ToolReturnPart)]


async def test_reads_run_writes_ask_and_failures_do_not_end_the_run(root: Path, files: FilesToolset) -> None:
    ui = ScriptedApprover(["approve", "deny"])
    reads = [("p_read_file", {"path": path}) for path in ("notes.md", *["missing"] * 3, "../outside/secret")]
    write = ("p_write_file", {"path": "notes.md", "content": "new\n"})
    made = agent(files, ui, *reads, write, ("p_delete_file", {"path": "notes.md"}))
    told = returns((await made.run("go")).all_messages())
    assert [outcome for outcome, _ in told] == ["success", "failed", "failed", "failed", "denied", "success", "denied"]
    assert "outside the root directory" in told[4][1]
    assert [request.summary for request in ui.asked] == ["Write notes.md", "Delete notes.md"]
    assert "+new" in ui.asked[0].metadata["diff"]
    assert ui.asked[0].call is not None and ui.asked[0].call.labels == {"fs.write"}
    assert (root / "notes.md").read_text() == "new\n"


async def test_read_only_leaves_write_tools_out_and_refuses_them_anyway(root: Path) -> None:
    files, writer = filesystem(root, read_only=True), filesystem(root)
    assert set(files.tools) == set(READS) and set(writer.tools) == {*READS, *WRITES}
    args = {"path": "notes.md", "content": "x"}
    said = files.needs_approval("write_file", args, None)
    assert isinstance(said, Verdict) and said.effect is Effect.DENY
    for call in (
        lambda: files.write_file(**args),
        lambda: files.edit_file("notes.md", "one", "1"),
        lambda: files.move_file("notes.md", "x"),
        lambda: files.delete_file("notes.md"),
    ):
        assert "read-only" in refused(call)

    class Smuggled(FilesToolset):
        """Knows the write tools, whatever it was told."""

        async def get_tools(self, ctx: Any) -> Any:
            return {**await super().get_tools(ctx), **await writer.get_tools(ctx)}

    files.__class__ = Smuggled
    made = agent(files, ScriptedApprover(["approve"]), ("p_write_file", args))
    told = returns((await made.run("go")).all_messages())
    assert told[0][0] in ("denied", "failed")
    assert (root / "notes.md").read_text() == "one\ntwo\nthree\n"
    with pytest.raises(ToolFailed, match="read-only"):
        await files.call_tool("write_file", args, None, None)  # pyright: ignore[reportArgumentType]


async def test_models_are_told_what_arguments_mean(files: FilesToolset) -> None:
    for tool in files.tools.values():
        schema = tool.function_schema.json_schema
        assert tool.description
        assert all(value.get("description") for value in schema["properties"].values()), tool.name
