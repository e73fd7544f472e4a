"""Generate a hardened systemd unit that starts `signoff serve`."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from datetime import timedelta

_PLAIN = re.compile(r"[\w@%+=:,./$-]+", re.ASCII)
MORE = timedelta(seconds=15)
"""How much longer than the drain timeout systemd waits before it kills the process."""

_UNIT = """\
# Written by signoff serve --print-systemd.
#   for yourself:    ~/.config/systemd/user/signoff.service, then: systemctl --user enable --now signoff
#   for the machine: /etc/systemd/system/signoff.service with a User= of its own, then: systemctl enable --now signoff
# Secrets belong into the EnvironmentFile, readable by nobody else: SIGNOFF_STORE, tokens of channels, keys of models.
[Unit]
Description=signoff: human sign-off for the tool calls of AI agents
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
WorkingDirectory={directory}
EnvironmentFile=-%E/signoff/environment
Environment=PYTHONUNBUFFERED=1
ExecStart={command}
Restart=on-failure
RestartSec=2
# The first SIGTERM drains: running calls may finish. What is left then is killed.
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec={patience}
UMask=0077
# The policy decides what agents may do. These settings remove what no agent here should need.
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=full
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
"""


def unit_text(directories: Sequence[str], options: Sequence[str], drain: timedelta) -> str:
    """The unit for these projects and options."""
    program = shutil.which("signoff")
    words = [program] if program else [sys.executable, "-P", "-c", "from signoff.cli.main import main; main()"]
    words += ["serve", *(word for one in directories for word in ("--project", one)), *options]
    return _UNIT.format(
        directory=directories[0].replace("%", "%%"),
        command=" ".join(map(_word, words)),
        patience=int((drain + MORE).total_seconds()),
    )


def _word(text: str) -> str:
    """Quote and escape a word of a command for systemd."""
    text = text.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
