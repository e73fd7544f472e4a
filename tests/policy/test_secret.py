"""Places that hold secrets: known by name, however it is spelled, and where a shell pattern may find them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.tables import table

from signoff.policy.secret import _places, holds_secrets, is_plain, may_match_secret, secret_place

SECRET = """
    ~/.ssh ~/.ssh/config ~/.ssh/known_hosts .ssh/id_rsa /home/ana/.ssh/id_ed25519 x/.ssh/y/z
    id_rsa keys/id_ed25519 id_rsa_work id_ecdsa_sk server.pem tls/server.key a.p12 a.pfx store.jks a.keystore my.kdbx
    deploy-key api_key github_token token secret my-secret db_password credentials creds.json credentials.json
    client_secret_42.json app-secrets.yaml secrets.yml secrets.prod.yaml config/secrets.toml passwords.txt token.json
    service-account.json gcp-key.json private_key.txt .credentials.json .env .env.local .env.production prod.env .envrc
    .netrc _netrc ~/.pgpass .my.cnf .pypirc .npmrc .boto .s3cfg ~/.git-credentials ~/.docker/config.json ~/.kube/config
    ~/.aws ~/.aws/config ~/.azure/x ~/.config/gcloud/credentials.db ~/.config/gh/hosts.yml ~/.gem/credentials
    ~/.cargo/credentials ~/.cargo/credentials.toml ~/.m2/settings.xml ~/.gradle/gradle.properties
    ~/.terraform.d/credentials.tfrc.json terraform.tfstate terraform.tfstate.backup prod.tfvars ~/.vault-token
    ~/.gnupg/secring.gpg ~/.password-store/bank.gpg ~/.local/share/keyrings/login.keyring ~/.mozilla/firefox/x/key4.db
    ~/.config/google-chrome/Default/Cookies /Users/ana/Library/Keychains/login.keychain-db ~/Library/Safari/History.db
    ~/.bash_history ~/.zsh_history ~/.python_history ~/.psql_history ~/.local/share/fish/fish_history
    /etc/shadow /etc/shadow- /etc/gshadow /etc/sudoers /etc/sudoers.d/x /etc/ssl/private/x /etc/ssh/ssh_host_rsa_key
    /root /proc/self/environ /proc/1/environ /proc/123/mem /proc/123/maps /proc/self/fd/3
    /proc/1/root/etc/passwd /proc/self/cwd /proc/1/auxv /proc/self/task/1/environ /proc/thread-self/environ /proc/kcore
    /dev/sda /dev/mem /dev/tty /dev/tcp/example.com/80 /dev/fd/3 /run/secrets/db /var/run/secrets/kubernetes.io/x
    /run/user/1000/keyring ~/.local/state/signoff/signoff.db ~/.yarnrc.yml /home/ana/.yarnrc.yml .htpasswd auth.json
    ~/.aider.conf.yml .aider.conf.yml ~/.config/io.datasette.llm/keys.json ~/.purple/accounts.xml ~/.erlang.cookie
    ~/.config/nushell/history.txt /etc/exim4/passwd.client /etc/postfix/sasl_passwd ~/.gemini/oauth_creds.json
    ~/.claude/.credentials.json ~/.local/share/atuin/history.db /etc/ipsec.secrets ~/.config/anthropic/x
    ../../../etc/shadow /tmp/../etc/shadow a/../.env ~/x/../.aws/credentials /proc/self/../1/environ ~bob/.ssh/id_rsa
    .vault_pass.txt .dockerconfigjson kubeconfig.yaml wg0.conf x-firebase-adminsdk-1.json token.pickle .tokens
    deploy_rsa keystore.properties mykey.priv keystore/UTC--2020 #.env# .env1 .env.d/x .secrets/x smbpasswd
    /etc/netplan/x.yaml backup_id_rsa my-id_rsa sub/x.htpasswd
"""
PLAIN = """
    README.md src/app.py . .. / ~ src secrets.py password_reset.html tokenizer.json tokenizer_config.json tokens.json
    test_credentials.py password-policy.md tests/test_secret.py secret.rs token.go credentials.ts passwords.md
    docs/secrets.md special_tokens_map.json .env.example .env.sample .env.template .env.dist env environment.yml
    id_rsa.pub public_key public-key.txt monkey keyboard.json hotkey key keys.py package.json package-lock.json
    .yarnrc.yml .gitignore .git/config .gitconfig ~/.gitconfig ~/.bashrc /etc/passwd /etc/hosts /etc/os-release
    /etc/ssl/certs/ca.crt /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/stdin /dev /proc /proc/cpuinfo
    /proc/meminfo /proc/self/status /proc/1/cmdline /proc/123/limits /proc/self/net/tcp
    /home/ana/project/x.txt ~/project/config.json app/reset-password .config/nvim/init.lua .docker/Dockerfile HEAD main
    .kube/cache/x config.json settings.xml gradle.properties hosts.yml .terraform.d/plugins/x.json etc/hosts a.pemx
"""


@table("path", SECRET.split())
def test_a_secret_place_is_known(path: str) -> None:
    assert secret_place(path)


@table("path", PLAIN.split())
def test_an_ordinary_place_is_not(path: str) -> None:
    assert secret_place(path) == ""


@pytest.mark.parametrize("path", ["", "~/Library/Application Support/Google/Chrome/x", "Login Data"])
def test_paths_with_blanks(path: str) -> None:
    assert bool(secret_place(path)) is bool(path)


def test_the_reason_follows_the_path_in_a_sentence() -> None:
    assert secret_place("~/.ssh/id_rsa") == "is where SSH keys are stored"
    assert secret_place("/dev/sda") == "is a device"


_TWINS = {"s": "ſ", "e": "ｅ", "k": "\u212a", "v": "ｖ", "i": "ｉ", "a": "ａ", "o": "ｏ"}


def _respelled(draw: st.DrawFn, path: str, slashes: tuple[str, ...]) -> str:
    """The same place in other words: case, twins of letters, slashes and dots that mean nothing."""
    made = ""
    for char in path:
        way = draw(st.sampled_from(["same", "same", "upper", "twin", "hidden"]))
        if char == "/" and made and way != "same":
            made += draw(st.sampled_from(slashes))
        elif way == "hidden" and char.isalpha():
            made += char + "\u200d"
        else:
            made += char.upper() if way == "upper" else _TWINS.get(char, char) if way == "twin" else char
    return made


@st.composite
def _pairs(draw: st.DrawFn, paths: str, *slashes: str) -> tuple[str, str]:
    path = draw(st.sampled_from(paths.split()))
    return path, _respelled(draw, path, slashes)


@examples(2_000)
@given(_pairs(SECRET, "//", "/./", "///", "/x/../"))
def test_another_spelling_is_as_secret(pair: tuple[str, str]) -> None:
    assert secret_place(pair[1]), pair


_STARTS = ("/", "/home/ana/", "/home/", "/root/", "/srv/shop/", "/proc/1/", "/etc/", "/Users/ana/Library/", "/var/run/")


@st.composite
def _absolute(draw: st.DrawFn) -> str:
    """A path made of names that are known, which say something only together or only in certain places."""
    known = [*_places().vocabulary.split("\n"), *_places().roots.split("\n"), "x", "a.json", "..", "task", "dev", "tcp"]
    names = st.lists(st.sampled_from([*known, *SECRET.split(), *PLAIN.split()]), min_size=1, max_size=3)
    parts = "/".join(name.removeprefix("~").strip("/") for name in draw(names))
    return _respelled(draw, draw(st.sampled_from(_STARTS)) + parts, ("//", "/./"))


@examples(5_000, daily=500)
@given(_absolute())
def test_the_quick_look_passes_no_secret_place(path: str) -> None:
    assert not (is_plain(path) and secret_place(path)), secret_place(path)


def test_the_quick_look_passes_ordinary_files() -> None:
    assert all(map(is_plain, ("/srv/shop/src/app.py", "/home/ana/shop/README.md", "/srv/shop/package.json")))


@examples(2_000, daily=50)
@given(_pairs(PLAIN, "//", "/./", "///"))
def test_another_spelling_is_not_more_secret(pair: tuple[str, str]) -> None:
    assert secret_place(pair[1]) == secret_place(pair[0])


@table(
    "pattern",
    r"""~/.ss?/id* ~/.ssh/* .ssh/* .e* .* .[e]nv .en[uvw] .??? .aws/credential? .a*/credentials *.pem *.key *.env id_*
    [i]d_rsa id_rs? [h-j]d_rsa ??_rsa credential* *secret* s*.yaml pass* ~/.*_history ~/.bash* /etc/* /etc/sh* /etc/s*
    /e*/shadow /*/shadow /proc/*/environ /proc/[0-9]*/environ /proc/self/e* /proc/1/* /dev/* /dev/sd? /root/*
    /home/*/.ssh/* /home/*/.aws/config */.env **/.env .\env \.env* .E* .SS*/x *.TFSTATE /run/secrets/* /r*/secrets/x
    ../*/.ssh/x ../../etc/s* .git-cred* .n* ~/.config/g*/* .docker/c* *.p12 [.]*/../.env""".split(),
)  # fmt: skip
def test_a_pattern_may_find_a_secret(pattern: str) -> None:
    assert may_match_secret(pattern)


@table(
    "pattern",
    r"""* *.py *.json *.txt *.md src/* src/*.py docs/*.md */*.c test_* README* *.[ch] /tmp/* /tmp/*.log /usr/bin/*
    /var/log/*.log ~/* ~/project/* .github/* .github/*.yml package*.json *.ts Make* ?? *test* /home/ana/project/*
    /proc/*/status /proc/*/cmdline .eslint* ?env [.]env \* src/\*.pem.txt""".split(),
)  # fmt: skip
def test_an_everyday_pattern_is_fine(pattern: str) -> None:
    assert may_match_secret(pattern) == ""


@pytest.mark.parametrize(
    "text", ["*?" * 500, "*a" * 200, "*e*c*r*e*t" * 50, "[a]*" * 300, "*/" * 300 + "x", "?*/" * 20 + "s*"]
)
def test_no_pattern_takes_long(text: str) -> None:
    started = process_time()
    may_match_secret(text)

    assert process_time() - started < 1


def test_what_is_no_path_is_not_trusted() -> None:
    assert secret_place("a" * 5000) == may_match_secret("*" * 5000) == holds_secrets("a" * 5000) != ""


def test_what_bash_finds_by_a_pattern_that_names_something(tmp_path: Path) -> None:
    """Every secret file that a real shell finds is foreseen, unless the pattern says nothing about names."""
    names = [".env", ".netrc", "id_rsa", "credentials.json", "api_key", "secrets.yaml", ".npmrc", "token", "auth.json"]
    for name in names:
        (tmp_path / name).touch()
    patterns = [cut for name in names for at in range(1, len(name)) for cut in (name[:at] + "*", name[:at] + "?" * 9)]
    patterns += [f"{name[:at]}[{name[at]}]{name[at + 1 :]}" for name in names for at in range(len(name))]
    for pattern in patterns:
        found = subprocess.run(
            ["bash", "-c", f"printf '%s\\n' {pattern}"], cwd=tmp_path, capture_output=True, text=True
        )
        secret = [name for name in found.stdout.split() if name in names]
        assert not secret or may_match_secret(pattern), (pattern, secret)


@table(
    "directory", "/ // /home /home/ /home/ana ~ ~/ ~bob /root /etc /proc /proc/1 /var/run /run /dev /Users/Ana .. "
    "../.. .ssh ~/.aws /etc/ssh ~/.config /private/etc /tmp/.. /home/ana/x/.. /HOME".split(),
)  # fmt: skip
def test_a_directory_above_secrets(directory: str) -> None:
    assert holds_secrets(directory)


@table("directory", ". src ./src /home/ana/project ~/project /usr /usr/share /tmp /opt/app ../lib /srv".split())
def test_a_directory_without_known_secrets(directory: str) -> None:
    assert holds_secrets(directory) == ""


def test_the_home_of_the_superuser() -> None:
    home = "/" + "root"

    assert secret_place(f"{home}/.ssh/authorized_keys")
    assert secret_place(f"{home}/notes")
    assert secret_place(f"{home}/.config/x/y")
    assert secret_place(f"{home}/project/src/a.py") == ""
