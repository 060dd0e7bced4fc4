# SPDX-License-Identifier: Apache-2.0
"""The systemd unit: it starts an existing command, and its restrictions leave the server the access that it needs."""

from __future__ import annotations

import configparser
import inspect
import re

from limnos.cli.operation import server
from limnos.config.server import ServerSection
from tests.deploy.named_things import DEPLOY

FILE = DEPLOY / "systemd" / "limnos.service"
SECTIONS = {
    "Unit": {"Description", "Documentation", "After", "Wants"},
    "Service": {
        "Type",
        "User",
        "Group",
        "StateDirectory",
        "StateDirectoryMode",
        "CacheDirectory",
        "CacheDirectoryMode",
        "Environment",
        "WorkingDirectory",
        "EnvironmentFile",
        "ExecStartPre",
        "ExecStart",
        "Restart",
        "RestartSec",
        "RestartPreventExitStatus",
        "KillSignal",
        "KillMode",
        "TimeoutStopSec",
        "LimitNOFILE",
        "NoNewPrivileges",
        "ProtectSystem",
        "ProtectHome",
        "PrivateTmp",
        "PrivateDevices",
        "ProtectClock",
        "ProtectControlGroups",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectKernelTunables",
        "RestrictAddressFamilies",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
        "LockPersonality",
        "CapabilityBoundingSet",
        "AmbientCapabilities",
        "SystemCallArchitectures",
        "SystemCallFilter",
        "SystemCallErrorNumber",
        "UMask",
    },
    "Install": {"WantedBy"},
}
"""Keys of systemd.unit, systemd.service and systemd.exec: another one is a mistake, which systemd ignores."""


def unit() -> configparser.ConfigParser:
    """Read the unit as systemd does: case-sensitive keys, no interpolation, each key once."""
    parser = configparser.ConfigParser(interpolation=None, strict=True, delimiters=("=",), comment_prefixes=("#", ";"))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(FILE, encoding="utf-8")
    return parser


def test_every_key_is_one_of_systemd() -> None:
    """Every section and key is one of systemd's."""
    keys_by_section = {name: set(unit()[name]) for name in unit().sections()}

    assert keys_by_section == SECTIONS


def test_unit_commands_and_flags_exist() -> None:
    """The commands exist, and their flags are flags of the server, with the directories of the unit."""
    service = unit()["Service"]
    flags = set(inspect.signature(server.ServerFlags).parameters)

    for line, command in ((service["ExecStartPre"], server.check), (service["ExecStart"], server.start)):
        program, group, name, *words = line.split()
        assert program.endswith("/bin/limnos")
        assert (group, name) == ("server", command.__name__)
        assert {word[2:].replace("-", "_") for word in words[::2]} <= flags
        assert (
            words[words.index("--data") + 1] == f"/var/lib/{service['StateDirectory']}" == service["WorkingDirectory"]
        )


def test_stop_timeout_exceeds_the_servers_drain() -> None:
    """The stop timeout is longer than the server's drain, and exit code 2 (invalid settings) does not cause a
    restart.
    """
    service = unit()["Service"]

    assert float(service["TimeoutStopSec"].removesuffix("s")) > ServerSection().drain_timeout_s
    assert (service["KillSignal"], service["RestartPreventExitStatus"], service["Restart"]) == (
        "SIGTERM",
        "2",
        "on-failure",
    )


def test_unit_runs_unprivileged() -> None:
    """An unprivileged user, no capabilities, a read-only system, no new privileges; Java may still create code at run
    time.
    """
    service = unit()["Service"]

    assert service["User"] not in ("", "root")
    assert service["CapabilityBoundingSet"] == service["AmbientCapabilities"] == ""
    assert service["ProtectSystem"] == "strict"
    on = [
        key
        for key, value in service.items()
        if re.match("Protect|Private|NoNew|Restrict(Real|SUID|Name)|Lock", key) and value == "yes"
    ]
    assert len(on) == 14
    assert "MemoryDenyWriteExecute" not in service
    assert "landlock_restrict_self" in service["SystemCallFilter"]
