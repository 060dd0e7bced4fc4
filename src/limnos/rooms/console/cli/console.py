# SPDX-License-Identifier: Apache-2.0
"""`console`: opens the console in a browser, signed in.

The code in the URL can be used once, within two minutes.
"""

from __future__ import annotations

import sys
import webbrowser
from typing import Annotated

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import UsageError
from limnos.cli.output import show_done
from limnos.names.percent import quote

OpenFlag = Annotated[bool, Parameter(help="Open the URL in a browser; by default only on a terminal.")]


def console(*, open: OpenFlag | None = None, common: CommonFlags = DEFAULTS) -> None:
    """Open the console in a browser, signed in as the user of this command line.

    Prints a URL that signs in one browser and is valid for two minutes.
    """
    if common.as_user is not None:
        raise UsageError(
            "a browser cannot act as another user with --as: the token of --as ends with this command, and its sign-in"
            " too",
            hint="the console shows a table's rows as another user sees them, to who may grant on it",
        )
    with common.client() as client:
        code = client.logins.console_code()
    url = f"{code.public_url or common.server_url}/console/enter?code={quote(code.code)}"
    if sys.stdout.isatty() if open is None else open:
        webbrowser.open(url)
    show_done(url, {"url": url, "expires_in_s": code.expires_in_s}, output_format=common.output_format)
