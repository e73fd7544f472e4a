"""Mistakes people make in the project file and in worker files: each a small project that is wrong in one way."""

from __future__ import annotations

from dataclasses import dataclass, field

PROJECT = "signoff.yaml"
WORKER = "workers/triage.yaml"
GOOD = "policy: []\n"


@dataclass(frozen=True)
class Mistake:
    """One wrong project. `wrong` is the file that a schema can refuse too; empty where no schema could."""

    title: str
    files: dict[str, str]
    wrong: str = ""
    worker: str = ""
    """The worker that is asked for; empty: the whole project is read."""
    environment: dict[str, str] = field(default_factory=dict[str, str])


def project(title: str, text: str, *, structural: bool = True) -> Mistake:
    return Mistake(title, {PROJECT: text}, PROJECT if structural else "")


def worker(title: str, text: str, *, structural: bool = True, file: str = WORKER, **others: str) -> Mistake:
    beside = {f"workers/{name}.yaml": content for name, content in others.items()}
    return Mistake(title, {PROJECT: GOOD, file: text, **beside}, file if structural else "")


IN_THE_PROJECT = (
    project("a misspelt key", "polcy: []\n"),
    project("neither rules nor toolsets", "model: anthropic:claude-sonnet-5\n"),
    project("a list instead of keys", "- {allow: read_file}\n"),
    project("a tab", "policy:\n\t- {allow: read_file}\n", structural=False),
    project("a key twice", "policy: []\nmodel: a\nmodel: b\n", structural=False),
    project("`yes` for `true`", "policy: []\nlocked: yes\n", structural=False),
    project("a kind of channel that is not there", "policy: []\nchannels: {a: {use: dicsord}}\n", structural=False),
    project(
        "a token in the file", "policy: []\nchannels: {discord: {channel: '112233445566778899', token: MTA.x.y}}\n"
    ),
    project("an id that is none", "policy: []\nchannels: {discord: {channel: '#approvals'}}\n"),
    project(
        "a channel of no kind", "policy: []\nchannels: {night: {channel: '112233445566778899'}}\n", structural=False
    ),
    project(
        "a choice that there is not",
        "policy: []\nchannels: {discord: {channel: '112233445566778899', notify: approver}}\n",
    ),
    project(
        "one account for two people",
        "policy: []\npeople: {ana: {discord: '112233445566778899'}, ben: {discord: '112233445566778899'}}\n",
        structural=False,
    ),
    project(
        "a server's secret in the file",
        "policy: []\nserver: {url: 'https://a.example.com',"
        " oidc: {issuer: 'https://id.example.com', client_id: x, client_secret: hunter2}}\n",
    ),
    project("a server without TLS", "policy: []\nserver: {url: 'http://a.example.com'}\n", structural=False),
    project("a person's key misspelt", "policy: []\npeople: {ana: {role: ops}}\n"),
    project("a toolset that is only a name", "toolsets: {files: filesystem_rw}\n"),
    project("a toolset made of nothing", "toolsets: {files: {config: {root: .}}}\n"),
    project("a misspelt key of a toolset", "toolsets: {files: {use: filesystem_rw, polcy: []}}\n"),
    project("configuration beside `config`", "toolsets: {files: {use: filesystem_rw, root: .}}\n"),
    project("a class path without a colon", "toolsets: {db: {use: mycompany.toolsets.Database}}\n"),
    project("a name with a blank", "toolsets: {my files: {use: filesystem_rw}}\n"),
    project("a rule that says nothing known", "toolsets: {files: {use: filesystem_rw, policy: [{alow: fs.read}]}}\n"),
    project("an unknown label", 'toolsets: {db: {use: sql, labels: {"list_*": data.raed}}}\n'),
    project(
        "`extends` of a toolset that is not there",
        "toolsets: {files: {extends: fils}, fles: {use: filesystem_rw}}\n",
        structural=False,
    ),
    project(
        "`extends` in a circle", "toolsets: {a: {extends: b}, b: {extends: c}, c: {extends: a}}\n", structural=False
    ),
    project(
        "a variable that is not set", 'toolsets: {db: {use: sql, config: {url: "${ORDERS_URL}"}}}\n', structural=False
    ),
    project(
        "a variable without an end", 'toolsets: {db: {use: sql, config: {url: "${ORDERS_URL"}}}\n', structural=False
    ),
    project("`plugins` without `allow`", 'policy: []\nplugins: ["mycompany.*"]\n'),
    project("a directory where a module is meant", "policy: []\nplugins: {allow: mycompany/*}\n"),
    project("defaults for something unknown", "policy: []\ndefaults: {workers: {}}\n"),
    project("a default that only one worker can have", "policy: []\ndefaults: {worker: {name: triage}}\n"),
    project("a default that only one toolset can have", "policy: []\ndefaults: {toolset: {use: sql}}\n"),
)

IN_WORKERS = (
    worker("a misspelt key", "toolset: [files]\n"),
    worker("configuration in a worker file", "toolsets: {files: {use: filesystem_rw, config: {root: .}}}\n"),
    worker("configuration of one toolset in the list", "toolsets: [shell_readonly, {files: {root: .}}]\n"),
    worker("a key of the project file", "config: {root: .}\n"),
    worker("a toolset named twice", "toolsets: [files, files]\n"),
    worker("a toolset beside `add`", "toolsets: {add: [files], shell_readonly: {}}\n"),
    worker("a toolset to drop that is not given", "toolsets: {drop: [files]}\n", structural=False),
    worker(
        "a toolset to add that is given",
        "extends: base\ntoolsets: {add: [files]}\n",
        structural=False,
        base="toolsets: [files]\n",
    ),
    worker("a rule that grants the worker more", "policy: [{allow: write_file}]\n"),
    worker("silence that grants the worker more", "policy: [{ask: deploy, timeout: 5m, on_timeout: allow}]\n"),
    worker("a name that is not the file's", "name: sorter\n", structural=False),
    worker("`extends` of a worker that is not there", "extends: bse\n", structural=False, base="instructions: Hi.\n"),
    worker("`extends` in a circle", "extends: base\n", structural=False, base="extends: triage\n"),
    worker(
        "`delegates` to a worker that is not there",
        "delegates: [analyser]\n",
        structural=False,
        analyzer="instructions: Hi.\n",
    ),
    worker("`delegates` in a circle", "delegates: [analyzer]\n", structural=False, analyzer="delegates: [triage]\n"),
    worker("`delegates` to itself", "delegates: [triage]\n", structural=False),
    worker("`*` beside names", 'delegates: ["*", analyzer]\n', structural=False, analyzer="instructions: Hi.\n"),
    worker("an unknown limit", "limits: {request: 50}\n"),
    worker("a limit of nothing", "limits: {requests: 0}\n"),
    worker("a time in words", "limits: {time: five minutes}\n"),
    worker("a time in parts of a second", "limits: {time: 500ms}\n"),
    worker("a text where a number is", "description: 5\n"),
    worker("a capability with two names", "capabilities: [{WebSearch: {}, Thinking: {}}]\n"),
    worker("an input without fields", "input: {type: string}\n"),
    worker("an output that is no schema", "output: {type: strng}\n", structural=False),
    worker("one thing under two names", "output: {type: object}\noutput_schema: {type: object}\n"),
    worker("an attachment from outside", "attachments: [../../secrets.txt]\n", structural=False),
    worker("an empty file", "# later\n"),
    worker("Markdown without keys", "Sort the mail.\n", structural=False, file="workers/triage.md"),
    worker("keys without an end", "---\nmodel: test\n\nSort the mail.\n", structural=False, file="workers/triage.md"),
    worker(
        "instructions twice",
        "---\nmodel: test\ninstructions: Sort.\n---\n\nSort the mail.\n",
        structural=False,
        file="workers/triage.md",
    ),
    worker(
        "a wrong key on top of Markdown",
        "---\nmodel: test\ntolsets: [files]\n---\nSort the mail.\n",
        structural=False,
        file="workers/triage.md",
    ),
    worker("a blank in the file's name", "instructions: Hi.\n", structural=False, file="workers/my worker.yaml"),
    Mistake(
        "somebody else to answer",
        {PROJECT: "policy: []\ndefaults: {worker: {approvers: ops}}\n", WORKER: "approvers: dev\n"},
    ),
    Mistake("two files for one worker", {PROJECT: GOOD, WORKER: "model: a\n", "workers/triage.md": "---\n---\nHi.\n"}),
    Mistake("a worker that is not there", {PROJECT: GOOD, WORKER: "model: a\n"}, worker="tirage"),
)

MISTAKES = (*IN_THE_PROJECT, *IN_WORKERS)
