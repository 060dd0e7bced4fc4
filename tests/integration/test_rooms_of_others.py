# SPDX-License-Identifier: Apache-2.0
"""A room of another package, built as a wheel and installed into an environment of its own: `examples/weather`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import connect

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.heavy]
ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


class Place:
    """An environment that sees this one's packages, and a data directory."""

    def __init__(self, home: Path) -> None:
        self.home, self.python = home, home / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "venv")], check=True)
        site = next((home / "venv" / "lib").glob("python*/site-packages"))
        seen = sysconfig.get_paths()["purelib"]
        (site / "seen.pth").write_text(f"import site; site.addsitedir({seen!r})\n", encoding="utf-8")
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home / "dist")]
        subprocess.run(build, cwd=ROOT / "examples" / "weather", check=True, capture_output=True)

    def pip(self, *words: str) -> None:
        """Install or uninstall by uv, without the network."""
        command = [str(UV), "--offline", "pip", *words, "--python", str(self.python)]
        subprocess.run(command, check=True, capture_output=True)

    def install(self) -> None:
        """Install the wheel of the room."""
        self.pip("install", "--no-deps", str(next((self.home / "dist").glob("*.whl"))))

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment."""
        command = [str(self.python), "-m", "limnos.cli.main", *words]
        return subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, check=False, cwd=self.home
        )

    @contextmanager
    def server(self, **variables: str) -> Iterator[str]:
        """Run a server, and return its URL."""
        command = [str(self.python), "-m", "limnos.cli.main", "server", "start", "--data", "data"]
        with (self.home / "log").open("a") as log:
            process = subprocess.Popen(
                [*command, "--listen", "127.0.0.1:0", "--authentication", "simple"],
                env=os.environ | variables,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.home,
            )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("ready "), (self.home / "log").read_text()
            yield line.removeprefix("ready ").strip()
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()


def ask(url: str) -> tuple[int, dict]:
    """Send a request as admin."""
    request = urllib.request.Request(url, headers={"Authorization": "Basic YWRtaW46eA=="})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_room_of_another_package_is_installed_and_uninstalled(tmp_path: Path) -> None:
    """Its route, setting, table, loop, task, command and resource work. Without it the store serves on, and with it
    again its table is as it was. `rooms.off` switches it off, and a broken one stops the server.
    """
    place = Place(tmp_path)
    place.install()
    with place.server(LIMNOS__WEATHER__PLACE="dales") as url:
        assert ask(f"{url}/api/weather") == (200, {"user": "admin", "place": "dales", "weather": ["rain"]})
        output = place.run("weather", "--uri", url, "--user", "admin", "--output", "json")
        assert json.loads(output.stdout)["weather"] == ["rain"], output.stderr
        assert "weather" in place.run("--help").stdout
    assert "weather.place" in place.run("server", "config").stdout
    with closing(connect(tmp_path / "data" / "limnos.db")) as store:
        assert store.execute("SELECT version_num FROM room_weather_version").fetchall() == [("w1",)]
        assert store.execute("SELECT count(*) FROM task WHERE kind = 'look-at-the-sky'").fetchone() == (1,)

    with place.server(LIMNOS__ROOMS__OFF="weather") as url:
        status, body = ask(f"{url}/api/weather")
        assert status == 404
        assert "the setting rooms.off contains weather" in body["error"]["message"]
        absent = place.run("weather", "--uri", url, LIMNOS__ROOMS__OFF="weather")
        assert (absent.returncode, "which is off here" in absent.stderr) == (2, True)

    place.pip("uninstall", "limnos-weather")
    with place.server() as url:
        assert ask(f"{url}/api/weather")[0] == 404
        assert ask(f"{url}/api/limnos/v1/whoami") == (200, {"user": "admin"})
    assert place.run("weather").returncode == 2
    assert "unknown setting 'weather.place'" in place.run("server", "config", LIMNOS__WEATHER__PLACE="x").stderr

    place.install()
    with place.server() as url:
        assert ask(f"{url}/api/weather")[1]["weather"] == ["rain"]

    package = next((tmp_path / "venv" / "lib").glob("python*/site-packages/limnos_weather"))
    (package / "manifest.py").write_text("import no_such_library\n", encoding="utf-8")
    refused = place.run("server", "start", "--data", "data", "--listen", "127.0.0.1:0")
    assert refused.returncode != 0
    assert "The room weather of another package cannot be used" in refused.stderr
    assert place.run("--version").returncode == 0
