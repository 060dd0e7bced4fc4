# SPDX-License-Identifier: Apache-2.0
"""`catalog disable | enable`: whether requests for a catalog's objects are answered."""

from __future__ import annotations

import shlex

from cyclopts import App

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import UsageError
from limnos.cli.output import show_done
from limnos.names import display

app = App(name="catalog")


@app.command
def disable(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Refuse requests for a catalog's objects, over every protocol, until it is enabled. Nothing is deleted.

    Parameters
    ----------
    name
        The catalog, as `main`.
    """
    _set_in_use(name, common, in_use=False)


@app.command
def enable(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Answer requests for a disabled catalog's objects again.

    Parameters
    ----------
    name
        The catalog, as `main`.
    """
    _set_in_use(name, common, in_use=True)


def _set_in_use(path: str, common: CommonFlags, *, in_use: bool) -> None:
    name, *below = display.parse(path)
    if below:
        raise UsageError(
            f"'{path}' is in a catalog, which is enabled and disabled as a whole",
            hint=f"'{shlex.join(['limnos', 'catalog', 'enable' if in_use else 'disable', display.render([name])])}'",
        )
    with common.client() as client:
        (client.catalogs.enable if in_use else client.catalogs.disable)(name)
    message = f"{'enabled' if in_use else 'disabled'} catalog {display.render([name])}"
    show_done(message, {"catalog": name, "enabled": in_use}, output_format=common.output_format)
