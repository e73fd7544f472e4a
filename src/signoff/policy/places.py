"""What the name of a file alone tells: paths to refuse as written, and files that something will run later."""

from __future__ import annotations

import re
import unicodedata
from posixpath import normpath

from signoff.core.normal_form import normal_form
from signoff.policy.glob import is_visible

MOST_BYTES = 4096
MOST_NAME_BYTES = 255

_DEVICES = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[1-9])(?:[.:].*)?")
_DRIVE = re.compile(r"[A-Za-z]:")
_STREAM = re.compile(r":[^:]*:?\$")
_EXPANDS = re.compile(r"\$[\w{(\[$!@*#?'\"-]|%[A-Za-z_][\w()]*%|`")
_KERNEL = frozenset({"proc", "dev", "sys"})
KERNEL = "it leads to files of the kernel"


_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u180e\u200b\u2060\ufeff"
"""Blanks, and what is one to programs of other languages: JavaScript trims U+FEFF."""


def normal(path: str) -> str:
    """Return an absolute path without `.`, `..`, double or trailing slashes."""
    plain = normpath(path)
    return plain[1:] if plain.startswith("//") else plain


def is_too_long(path: str) -> bool:
    """Whether no system takes it as a path: it, or a name in it, has too many bytes. Takes a time linear in it."""
    if len(path) > MOST_BYTES:
        return True
    data = path.encode("utf-8", "surrogatepass")
    return len(data) > MOST_BYTES or max(map(len, data.split(b"/"))) > MOST_NAME_BYTES


def path_trouble(path: str, *, windows: bool = False) -> str:
    """Return why a path that a model wrote is refused before the file system is looked at; "" if it is fine.

    What means something else to another program or another system is refused everywhere. `windows` adds what is common
    on other systems but is dropped or cut by Windows: dots and spaces at the end of names, and colons.
    """
    if not path or not path.strip():
        return "it is empty"
    if len(path.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        return f"it is longer than {MOST_BYTES} bytes"
    if not is_visible(path) or any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in set(path)):
        return "it holds control or invisible characters"
    if path.startswith("~"):
        return "it starts with `~`, which is not expanded here"
    if "\\" in path:
        return "it holds a backslash; directories are separated by `/`"
    if path.startswith("//"):
        return "it starts with `//`, which names another machine on some systems"
    if is_kernel_place(path):
        return KERNEL
    if why := next((why for step in path.split("/") if (why := _name_trouble(step, windows))), ""):
        return why
    return "it holds something that a shell would expand, which is not done here" if _EXPANDS.search(path) else ""


def trimmed(path: str) -> str:
    """Return a path as the least careful program reads it: without what any language takes for blanks at its ends."""
    return path.strip(_BLANKS)


def is_kernel_place(path: str) -> bool:
    """Whether an absolute path is in a kernel file system: processes, devices, settings (`/proc`, `/dev`, `/sys`)."""
    names = normpath(path).lstrip("/").split("/")
    return path.startswith("/") and names[0] in _KERNEL


def _name_trouble(name: str, windows: bool) -> str:
    """Return why one name in a path is refused; "" if it is fine."""
    if name in ("", ".", ".."):
        return ""
    if len(name.encode("utf-8", "surrogatepass")) > MOST_NAME_BYTES:
        return f"a name in it is longer than {MOST_NAME_BYTES} bytes"
    if _DRIVE.match(name):
        return "it names a drive"
    if _STREAM.search(name) or (windows and ":" in name):
        return "it names an alternate data stream of a file"
    plain = folded(name)
    if _DEVICES.fullmatch(plain):
        return f"`{name.strip()}` is a device on Windows"
    cut = name.rstrip(". ")
    if cut != name and (windows or cut.startswith(".") or _file_runs(plain, "")):
        return f"`{name}` ends in a dot or a space, which Windows removes"
    return ""


def folded(name: str) -> str:
    """Normalise a name: Unicode compatibility forms, case, invisible characters, trailing dots and spaces, streams."""
    text = normal_form("NFKC", name).casefold()
    if not text.isascii():
        text = "".join(char for char in normal_form("NFKC", text) if unicodedata.category(char) != "Cf")
    return _SHORT_GIT.sub(".git", _STREAM.split(text)[0].rstrip(". "))


_SHORT_GIT = re.compile(r"^git~\d+$")
"""The short (8.3) name of `.git` on Windows."""


def runs_later(path: str) -> str:
    """Return why writing to this path counts as running code, now or the next time somebody works here; "" if not.

    Looks only at names, anywhere in the path, as normalised by `folded`.
    """
    names = [plain for step in path.split("/") if step not in ("", ".", "..") and (plain := folded(step))]
    for at, name in enumerate(names):
        last = at == len(names) - 1
        why = _DIRECTORIES.get(name) or (not last and _hidden_directory(name)) or ""
        if not why and last:
            why = _file_runs(name, names[at - 1] if at else "")
        if why:
            return why
    return ""


def _hidden_directory(name: str) -> str:
    if name.startswith(".") and name not in _CALM_DIRECTORIES:
        return "hidden directories hold settings of tools, which can name programs to run"
    return ""


def _file_runs(name: str, directory: str) -> str:
    """Return why a file of this name, in a directory of that name, is run later; "" if it is not."""
    if why := _FILES.get(name):
        return why
    for expression, why in _LIKE:
        if expression.fullmatch(name):
            return why
    if name.endswith((".json", ".jsonc")) and ("tsconfig" in name or "jsconfig" in name):
        return _CHECK
    if name in ("hooks", "workers"):
        return "tools run or follow files in a directory of this name"
    if directory == "hooks" and name in HOOKS:
        return "git runs it as a hook"
    if directory == "workers" and name.endswith((".yaml", ".yml", ".md", ".toml", ".json")):
        return "it describes a worker and what it may do"
    if name.startswith(".") and name not in _CALM_FILES and not name.endswith(("ignore", ".example", ".sample")):
        return "hidden files hold settings of tools, which can name programs to run"
    return ""


def _table(*rows: tuple[str, str]) -> dict[str, str]:
    return {name: why for names, why in rows for name in names.split()}


_DIRECTORIES = _table(
    (".git .hg .svn .jj .githooks .husky", "version control runs hooks and programs that are named there"),
    (".github .gitlab .circleci .buildkite .gitea .forgejo .woodpecker .drone", "build servers run what it defines"),
    (".vscode .idea .fleet .zed .devcontainer .vs", "editors run tasks that are described there"),
    (".signoff", "it configures signoff: what is asked, and who answers"),
    (".claude .cursor .codex .gemini .windsurf .continue .opencode .kiro .agents", "agents follow its instructions"),
    (".ssh", "it decides who may log in, and what runs then"),
    ("tsconfig tsconfigs", "checks of the project read settings from there"),
    ("node_modules site-packages dist-packages .venv venv __pycache__ .tox .nox", "programs load code from there"),
    ("cron.d cron.hourly cron.daily cron.weekly cron.monthly crontabs", "it is run on a schedule"),
    (
        "filter_plugins lookup_plugins action_plugins callback_plugins connection_plugins test_plugins vars_plugins",
        "Ansible loads code from there",
    ),
    ("inventory_plugins strategy_plugins cache_plugins become_plugins", "Ansible loads code from there"),
    ("profile.d init.d systemd launchagents launchdaemons autostart sudoers.d", "it is run when somebody logs in"),
)
"""Directories whose entire content is run, loaded or followed."""

_CALM_DIRECTORIES = frozenset({".well-known", ".changeset", ".cache"})
_CALM_FILES = frozenset({".gitkeep", ".keep", ".nojekyll", ".editorconfig", ".mailmap", ".ds_store", ".codespellrc"})

_BUILD = "building, testing or installing the project runs it"
_CHECK = "checks of the project read settings from it, which can name code and other files"
_PYTHON = "Python runs it when a program or a test run starts"
_INSTALL = "it decides which code is downloaded and installed"
_SHELL = "shells run it when somebody logs in"
_SERVER = "build servers run what it defines"
_AGENTS = "agents follow its instructions"

_FILES = _table(
    ("gnumakefile bsdmakefile makefile.am makefile.in justfile rakefile guardfile fastfile procfile", _BUILD),
    ("snakefile sconstruct sconscript wscript build workspace build.bazel module.bazel workspace.bazel", _BUILD),
    ("meson.build cmakelists.txt cmakepresets.json configure configure.ac configure.in build.rs build.zig", _BUILD),
    ("build.xml pom.xml build.sbt mix.exs rebar.config gradlew gradlew.bat mvnw mvnw.cmd gradle.properties", _BUILD),
    ("noxfile.py tox.ini tox.toml manage.py tasks.py fabfile.py dodo.py pylintrc", _BUILD),
    ("vagrantfile tiltfile earthfile berksfile dangerfile appfile capfile puppetfile", _BUILD),
    ("go.mod go.work rust-toolchain rust-toolchain.toml nx.json turbo.json deno.json deno.jsonc lerna.json", _BUILD),
    ("gulpfile.js gruntfile.js angular.json metro.config.js composer.json angular-cli.json", _BUILD),
    ("setup.py setup.cfg pyproject.toml package.json cargo.toml", _BUILD),
    (
        "binding.gyp rakefile.rb build.ninja build.pl gruntfile.coffee cmakeuserpresets.json nodemon.json cdk.json",
        _BUILD,
    ),
    (
        "cdktf.json firebase.json project.json rush.json webpack.mix.js ",
        _BUILD,
    ),
    ("ember-cli-build.js truffle.js truffle-config.js plopfile.js rector.php phpstan.neon", _BUILD),
    ("phpstan.neon.dist conanfile.py xmake.lua premake5.lua setup.hs setup.lhs dune dune-project project.clj", _BUILD),
    ("deps.edn bb.edn magefile.go build.cake build.fsx jamroot jamfile tupfile wscript_build default.do eask", _BUILD),
    (
        "versioneer.py hatch_build.py pdm_build.py toxfile.py pavement.py duties.py build.sc build.mill build.clj",
        _BUILD,
    ),
    ("build.mjs build.cjs testem.js mocha.opts makefile.pl vercel.json", _BUILD),
    ("package.json5 package.yaml package.yml", _BUILD),
    ("ripgreprc config.nims pdm.toml hatch.toml pixi.toml vcpkg.json dub.json dub.sdl", _BUILD),
    ("autorun.inf", "the system runs what it names"),
    ("entry_points.txt", _PYTHON),
    ("conftest.py sitecustomize.py usercustomize.py __main__.py pyvenv.cfg", _PYTHON),
    (
        "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock bunfig.toml",
        _INSTALL,
    ),
    (
        "cargo.lock go.sum gemfile gemfile.lock podfile podfile.lock brewfile composer.lock flake.nix flake.lock",
        _INSTALL,
    ),
    ("gems.rb gems.locked", _INSTALL),
    ("pipfile pipfile.lock poetry.lock poetry.toml uv.lock uv.toml environment.yml environment.yaml", _INSTALL),
    ("pip.conf pip.ini npmrc nuget.config package.swift deno.lock mise.toml", _INSTALL),
    ("azure-pipelines.yml azure-pipelines.yaml bitbucket-pipelines.yml appveyor.yml cloudbuild.yaml", _SERVER),
    ("jenkinsfile buildspec.yml buildspec.yaml action.yml action.yaml codefresh.yml", _SERVER),
    ("lefthook.yml lefthook.yaml lefthook.toml lefthook.json gitconfig", "git runs what it defines"),
    ("authorized_keys authorized_keys2 sshd_config ssh_config", "it decides who may log in, and what runs then"),
    ("crontab anacrontab", "it is run on a schedule"),
    ("bashrc bash.bashrc profile zshrc zshenv zprofile rc.local sudoers ld.so.preload environment", _SHELL),
    ("signoff.yaml signoff.yml signoff.toml", "it configures signoff: what is asked, and who answers"),
    ("policy.yaml policy.yml policy.toml policy.json", "it may hold rules of signoff"),
    ("toolsets.py", "signoff loads tools from it"),
    ("agents.md claude.md gemini.md qwen.md crush.md warp.md conventions.md skill.md copilot-instructions.md", _AGENTS),
    ("mcp.json mcp.jsonc opencode.json opencode.jsonc crush.json", _AGENTS),
)

_WRITTEN = "[cm]?[jt]sx?|json[c5]?|ya?ml|toml"
"""How files with settings end."""
_TOOLS = "|".join(
    """
    biome buf.gen clippy codegen convex cspell cucumber doc8 esbuild gatsby-config gatsby-node jasmine jest karma knip
    mypy nano-staged nest nest-cli nose nose2 nyc oxlint pep8 pylintrc pyrefly pyrightconfig pytest ruff rustfmt
    serverless simple-git-hooks spin stryker tauri tstyche typedoc typos unittest vitest wrangler xo
    """.split()
)
"""Programs that build, test or check, with settings in a file of their name."""

_LIKE = tuple(
    (re.compile(expression), why)
    for expression, why in (
        (
            r"makefile(?:\..*)?|.*\.(?:mk|mak|cmake|gradle|kts|gemspec|nix|bzl|podspec|sbt|gypi?|nimble|rockspec|hxml|m4|smk)",
            _BUILD,
        ),
        (r".*\.(?:csproj|fsproj|vbproj|vcxproj|props|targets|sln|slnx|code-workspace)", _BUILD),
        (rf".*\.(?:config|conf)[\w-]*\.(?:{_WRITTEN})|.*\.setup\.[cm]?[jt]sx?", _BUILD),
        (r"(?:gulp|grunt|web|jake|knex)file\.[cm]?[jt]s", _BUILD),
        (rf"(?:{_TOOLS})(?:\.[\w-]+)?\.(?:{_WRITTEN}|ini|cfg)", _CHECK),
        (r"(?:dockerfile|containerfile)(?:[.-].*)?|.*\.(?:dockerfile|containerfile)", _BUILD),
        (r"(?:docker-)?compose(?:[.-].*)?\.ya?ml|taskfile(?:\..*)?\.ya?ml", _BUILD),
        (r"(?:requirements|constraints)(?:[._-].*)?\.(?:txt|in)|.*[._-]requirements\.(?:txt|in)", _INSTALL),
        (r".*\.(?:pth|pyc|pyo|egg-link)", _PYTHON),
        (r".*\.(?:service|timer|socket|desktop|plist)", "the system runs it at log-in or on a schedule"),
    )
)

HOOKS = frozenset(
    """
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit
    pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update
    reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman
    post-index-change
    """.split()
)
"""The names of git's hooks."""
