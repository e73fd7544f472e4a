"""The bash grammar (tree-sitter), and what must be known about its syntax trees and its mistakes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from signoff.policy.shell.literal import HOLE, Arg, Certainty, read_word, unescape_here
from signoff.policy.shell.shell_variables import changes_programs
from signoff.policy.shell.wrappers import is_number

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_CHUNK = 128  # characters per read of the parser
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
HOLES = frozenset("simple_expansion expansion command_substitution process_substitution arithmetic_expansion".split())
REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_HERE_PARTS = frozenset(
    ("<<", "<<-", "heredoc_start", "heredoc_body", "heredoc_end", "ERROR", "|", "&&", "||", "file_descriptor")
)
_STATEMENTS = frozenset("command pipeline list redirected_statement subshell compound_statement test_command".split())
_ODD = (
    (re.compile(r"[\x00-\x08\x0b-\x1f\x7f]"), "holds a control character"),
    (re.compile("[\ud800-\udfff]"), "holds half of a surrogate pair"),
    (re.compile(r"[\x85\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]"), "holds an unusual space"),
    (re.compile(r"\$\{[\s|]"), "holds a substitution that only some shells know"),
)
_GLUED = re.compile(r"(?<![ \t\n])\\\n(?![ \t\n])|\n[ \t]*+\\\n")
_TIGHT = frozenset(
    "program command list pipeline redirected_statement file_redirect subshell compound_statement do_group "
    "command_substitution process_substitution negated_command if_statement while_statement for_statement "
    "case_statement case_item else_clause elif_clause function_definition herestring_redirect "
    "declaration_command unset_command variable_assignments".split()
)
_BLANK_OR_BACKSLASH = re.compile(r"[\s\\]")
_BLANKS = re.compile(r"(?:[ \t\n]|\\\n)*\Z")
_BLANKS_IN_LINE = re.compile(r"(?:[ \t]|\\\n)*\Z")
_BLANK_AT_EDGE = re.compile(r"(?:\A|[\s;|&()<>`])\\[ \t]|\\[ \t](?:[\s;|&()<>`]|\Z)")
_GLUED_DESCRIPTOR = re.compile(r"[^\s;|&<>()\d]\d++[<>]")
_AFTER_HERE = re.compile(r"(?<!<)<<(?!<)-?[ \t]*+[^\s;|&<>()]++[ \t]*+[^\s]")
_ARITHMETIC = {"arithmetic_expansion": "", "command_substitution": "$((", "compound_statement": "((", "subshell": "(("}
_EXPANSION = re.compile(
    r"\$\{(?P<mark>[!#]?)(?P<name>\w+|[@*#?$!-])?(?:\[(?P<index>[^\]]*)\])?(?P<rest>.*)\Z", re.DOTALL
)
_INDEX = re.compile(r"\d+\Z|[@*]\Z")
_INDEX_IN_ARRAY = re.compile(r"[\s(]\[(?!\d+\]\+?=)")
_EXPANDS = re.compile(r"\$[({\[]|`")
_COMPARES = frozenset("-eq -ne -lt -le -gt -ge".split())
_NUMBER = re.compile(r"""\(*+(["']?)[-+]?(?:\d++|\$[#?$]|\$\{#\w++(?:\[[@*]\])?\})\1\)*\Z""")
_VARIABLE = re.compile(r"[A-Za-z_]\w*+\Z")


def pitfalls(text: str) -> Iterator[str]:
    """Yield where the parser is known to build a wrong tree, or may. Looks at the text only, in linear time."""
    for pattern, reason in _ODD:
        if match := pattern.search(text):
            yield f"{reason}: {match[0]!a}"
    if match := _GLUED.search(text):
        start = max(0, match.start() - 8)
        yield f"continues on the next line in a way that shells read differently: `{text[start : match.end() + 8]}`"
    if _BLANK_AT_EDGE.search(text):
        yield "has a word that starts or ends with a space: `\\ `"
    if match := _GLUED_DESCRIPTOR.search(text):
        yield f"has a digit between a word and a redirect: `{match[0]}`"
    if match := _AFTER_HERE.search(text):
        yield f"has more words after the start of a here-document: `{short(match[0])}`"
    if "<<" in text and any("<<" in line and not line.isascii() for line in text.split("\n")):
        yield "has a here-document with an unusual delimiter"
    if "`" in text:
        if 0 <= text.find("${") < text.rfind("`"):
            yield "holds a backquote inside or after `${`"
        if any("\\" in piece for piece in text.split("`")[1:-1:2]):
            yield "holds a backslash inside backquotes"
    if "@P}" in text:
        yield "expands a variable as a prompt, which can run commands: `@P}`"


@cache
def _language() -> Language:
    import tree_sitter_bash  # a literal line needs no grammar
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def parse_root(text: str) -> tuple[Node, bool]:
    """Return the root of the syntax tree, and whether the parser saw the whole text.

    The parser gets one byte for each character, so that its offsets are ours: a non-ASCII character becomes a comma,
    which like it is not a blank, an operator or part of a name. How often the parser reads, again and again where it
    looks ahead, measures its work, and is limited.
    """
    source = _NOT_ASCII.sub(",", text).encode("ascii")
    left = 256 + len(source) // 8

    def read(offset: int, _: object) -> bytes:
        nonlocal left
        left -= 1
        return source[offset : offset + _CHUNK] if left > 0 else b""

    from tree_sitter import Parser

    return Parser(_language()).parse(read).root_node, left > 0


def oddity(text: str, node: Node, kind: str) -> str:
    """Return why the shell may read this node differently than the parser; "" if it does not."""
    if kind in _TIGHT and (gap := _gap(text, node, kind)):
        return f"holds text that the parser skips: `{short(gap)}`"
    if kind in _EVALUATES and (reason := _evaluation(text, node, kind)):
        return reason
    if kind not in ("comment", "negated_command", "compound_statement", "simple_expansion"):
        return ""
    start, source = node.start_byte, text[node.start_byte : node.end_byte]
    if kind == "comment" and ((start and text[start - 1] not in " \t\n;&|()<>`") or "\n" in source):
        return f"holds what may or may not be a comment: `{short(source)}`"
    if kind == "negated_command" and source[1:2] not in ("", " ", "\t", "(", "\n"):
        return f"holds `!` as part of a word: `{short(source)}`"
    if kind == "simple_expansion" and _BLANK_OR_BACKSLASH.search(source):
        return f"holds `$` without a name: `{short(source)}`"
    if source.startswith("{}"):
        return "holds `{}` in the place of a program"
    return ""


_EVALUATES = frozenset((*_ARITHMETIC, *"c_style_for_statement subscript array expansion regex extglob_pattern".split()))


def _evaluation(text: str, node: Node, kind: str) -> str:
    """Return where the value of a variable is evaluated, which may run commands in it: `x='a[$(rm y)]'; ((x))`."""
    source = text[node.start_byte : node.end_byte]
    if kind == "subscript":
        index = source.partition("[")[2].removesuffix("]")
        return "" if _INDEX.match(index) else f"evaluates a subscript that is not a number: `{short(source)}`"
    if kind == "array":
        evaluated = _INDEX_IN_ARRAY.search(source)
        return f"evaluates a subscript that is not a number: `{short(source)}`" if evaluated else ""
    if kind in ("regex", "extglob_pattern"):
        hidden = not node.child_count and _EXPANDS.search(source)
        return f"holds a pattern with an expansion: `{short(source)}`" if hidden else ""
    if kind == "expansion":
        return _expansion(source)
    if kind == "c_style_for_statement":
        body = node.child_by_field_name("body")
        source = text[node.start_byte + 3 : body.start_byte if body else node.end_byte]
    elif not source.startswith(_ARITHMETIC[kind]):
        return ""
    return (
        ""
        if is_number(source.removeprefix("$"))
        else f"evaluates an expression that can run commands: `{short(source.strip())}`"
    )


def _expansion(source: str) -> str:
    """Return why `${…}` may run or set something; "" if it does not."""
    match = _EXPANSION.match(source)
    if match is None:
        return f"holds an expansion that signoff does not understand: `{short(source)}`"
    name, index, rest = match["name"] or "", match["index"], match["rest"]
    if match["mark"] == "!" and name and not (rest == "}" and index in ("@", "*")) and rest not in ("@}", "*}"):
        return f"uses an indirect variable: `{short(source)}`"
    if index is not None and not _INDEX.match(index):
        return f"evaluates a subscript that is not a number: `{short(source)}`"
    if rest.startswith(":") and rest[1:2] not in ("-", "=", "?", "+") and not is_number(rest[1:-1]):
        return f"evaluates an expression that can run commands: `{short(source)}`"
    if rest.startswith(("=", ":=")) and changes_programs(name):
        return f"sets `{short(name)}`"
    return ""


def test_doubts(text: str) -> Iterator[str]:
    """Yield why `[[ … ]]` may run commands in its words or in variables."""
    if "'" in text and ("$(" in text or "`" in text):
        yield "may run a command in a subscript inside `[[`"
    words = ("", *text.split(), "")
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        if word in _COMPARES and not (_NUMBER.match(before) and _NUMBER.match(after)):
            yield f"evaluates an expression that can run commands: `{short(f'{before} {word} {after}')}`"
        elif word in ("-v", "-R") and not _VARIABLE.match(after):
            yield f"may run a command in a subscript: `{short(f'{word} {after}')}`"


def _gap(text: str, node: Node, kind: str) -> str:
    """Return the text between the children of a node if it is more than blanks, or ""."""
    end, last = node.start_byte, len(text) if kind == "program" else node.end_byte
    if kind == "program":
        end = 0
    blanks = _BLANKS_IN_LINE if kind in ("command", "file_redirect", "herestring_redirect") else _BLANKS
    for child in node.children:
        start = child.start_byte
        if start > end and not blanks.match(text, end, start):
            return text[end:start]
        end = child.end_byte
    return "" if end >= last or _BLANKS.match(text, end, last) else text[end:last]


def ends_as_shown(text: str, here: Node) -> bool:
    """Whether a here-document ends where the parser says: at the first line that is its delimiter."""
    parts = {child.type: child for child in here.children}
    start, end = parts.get("heredoc_start"), parts.get("heredoc_end")
    if start is None or end is None or end.start_byte == end.end_byte:
        return False
    delimiter, agreed = read_word(text, start.start_byte, start.end_byte)
    at = text.find("\n", start.end_byte) + 1
    while agreed and 0 < at <= end.start_byte:
        after = text.find("\n", at)
        line = text[at : after if after >= 0 else len(text)]
        tabs = len(line) - len(line.lstrip("\t")) if "<<-" in parts else 0
        if line[tabs:] == delimiter.text:
            return at + tabs == end.start_byte
        if after < 0:
            break
        at = after + 1
    return False


def here_text(source: str, node: Node) -> Arg | None:
    """Return the text of a here-document as the command reads it, or None."""
    parts = {child.type: child for child in node.children}
    start, body = parts.get("heredoc_start"), parts.get("heredoc_body")
    if start is None or body is None:
        return None
    raw = is_raw(source[start.start_byte : start.end_byte])
    holes = [] if raw else find_holes(body)
    text = source[body.start_byte : body.end_byte]
    for hole in reversed(holes):
        text = text[: hole.start_byte - body.start_byte] + "\0" + text[hole.end_byte - body.start_byte :]
    text = text if raw else unescape_here(text).replace("\0", HOLE)
    if "<<-" in parts:
        text = re.sub(r"(?m)^\t+", "", text)
    return Arg(text, Certainty.PART if holes else Certainty.SURE)


def short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"


def is_raw(delimiter: str) -> bool:
    return any(char in delimiter for char in "'\"\\")


def is_here_word(node: Node) -> bool:
    return node.type not in _HERE_PARTS and node.type not in REDIRECTS and node.type not in _STATEMENTS


def find_targets(redirect: Node) -> list[Node]:
    """Return the words of a redirect. Only the first is its target; the others belong to the command."""
    return [child for child in redirect.children if child.is_named and child.type not in ("file_descriptor", "ERROR")]


def last_command(node: Node | None) -> Node | None:
    """Return the simple command that redirects after this statement belong to, or None."""
    while node is not None and node.type in ("list", "pipeline", "negated_command", "redirected_statement"):
        bodies = [child for child in node.named_children if child.type not in REDIRECTS]
        node = bodies[-1] if bodies else None
    return node if node is not None and node.type == "command" else None


def find_holes(word: Node) -> list[Node]:
    """Return the expansions in a word, in order, without those nested in others."""
    found: list[Node] = []
    stack = [word]
    while stack:
        node = stack.pop()
        if node.type in HOLES:
            found.append(node)
        elif node.child_count:
            stack.extend(reversed(node.children))
    return found


def find_atoms(node: Node) -> list[Node]:
    """Return the leaf nodes; quoted texts and expansions count as one each."""
    found: list[Node] = []
    stack = list(reversed(node.children))
    while stack:
        one = stack.pop()
        if one.child_count and one.type not in HOLES and one.type != "string":
            stack.extend(reversed(one.children))
        else:
            found.append(one)
    return found
