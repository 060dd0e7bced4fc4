# SPDX-License-Identifier: Apache-2.0
"""The Containerfile: hadolint has no complaints, and the files and extras that it names exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.deploy.named_things import DEPLOY, ROOT, addresses, settings_of

FILE = DEPLOY / "container" / "Containerfile"
TEXT = re.sub(r"\\\n", " ", FILE.read_text(encoding="utf-8"))
LAST = TEXT.rpartition("\nFROM ")[2]
"""The final stage."""


def lines(word: str, text: str = LAST) -> list[str]:
    """Return the arguments of an instruction."""
    return re.findall(rf"^{word} (.+)$", text, re.MULTILINE)


def test_hadolint_reports_no_violation(tmp_path: Path) -> None:
    """Hadolint finds no violation; it reports one in a wrong file, so it works."""
    hadolint = Path(sys.executable).with_name("hadolint")
    wrong = tmp_path / "Containerfile"
    wrong.write_text("FROM debian\nRUN cd /tmp && sudo apt-get install curl\n")

    assert subprocess.run([hadolint, FILE], check=False, capture_output=True, text=True).stdout == ""
    assert "DL3004" in subprocess.run([hadolint, wrong], check=False, capture_output=True, text=True).stdout


def test_copied_files_are_in_the_build_context() -> None:
    """All files that the build copies are in the checkout, or in what `make dist` writes, and sent to the build."""
    copied = [name for line in lines("COPY", TEXT) if "--from" not in line for name in line.split()[:-1]]
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8")

    assert copied == ["pyproject.toml", "uv.lock", "dist/limnos-*.whl"]
    for name in copied:
        assert name == "dist/limnos-*.whl" or (ROOT / name).exists()
        assert f"!{name}\n" in sent


def test_image_is_built_from_the_wheel_of_the_version() -> None:
    """The build installs the wheel and no source; its command names the chart's tag."""
    chart = (DEPLOY / "helm/limnos/Chart.yaml").read_text(encoding="utf-8")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    assert "pip install --no-cache-dir --no-deps dist/limnos-*.whl" in TEXT
    assert f"-t limnos:{version} ." in TEXT
    assert f"appVersion: {version}\n" in chart


def test_extras_exist_and_uv_version_matches_setup_script() -> None:
    """Each extra belongs to the project, and uv has the version of the set-up script."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

    assert set(re.findall(r"--extra (\w+)", TEXT)) == {"server", "postgres", "s3", "lance"} <= set(extras)
    assert f"uv=={re.search(r'UV_VERSION=([0-9.]+)', (ROOT / 'scripts' / 'setup.sh').read_text())[1]}" in TEXT  # type: ignore[index]


def test_container_runs_as_numeric_non_root_user() -> None:
    """The last stage has a numeric user that is not root, set once and at the end."""
    (user,) = lines("USER")

    assert user.split(":")[0].isdigit()
    assert int(user.split(":")[0]) >= 1000
    assert LAST.index("USER") > LAST.rindex("RUN")


def test_variables_are_settings_and_require_authentication() -> None:
    """The variables are settings; callers must authenticate, because the server is reachable from outside."""
    (variables,) = lines("ENV")
    settings = settings_of(dict(pair.split("=", 1) for pair in variables.split())).settings

    assert settings.access.authentication == "token"
    assert settings.server.listen == f"0.0.0.0:{lines('EXPOSE')[0]}"
    assert json.loads(lines("VOLUME")[0]) == [settings.server.data]


def test_health_check_requests_a_served_path() -> None:
    """The health check requests the served port at an existing path, with an existing program."""
    (instruction,) = lines("HEALTHCHECK")
    program, flag, code = json.loads(instruction[instruction.index("CMD ") + 4 :])
    request_match = re.search(r"127\.0\.0\.1:(\d+)(/[\w/]+)", code)

    assert (program, flag) == ("python", "-c")
    compile(code, "HEALTHCHECK", "exec")
    assert request_match is not None
    assert request_match[1] == lines("EXPOSE")[0]
    assert request_match[2] in addresses()
