# SPDX-License-Identifier: Apache-2.0
"""The engines' settings in docs/guides/engines.md, which the runs use, so that the documented settings are tested.

May import the standard library only.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "engines.md"
ADDRESS = "http://127.0.0.1:8090/iceberg"
STORE = "http://127.0.0.1:9000"
WAREHOUSE = "main"
_WAREHOUSE = re.compile(rf"""(?<=['"=]){WAREHOUSE}(?=['"\n]|$)""")
_TOKEN = re.compile(r"\bTOKEN\b(?! ')")
_SECRET = re.compile(r"\bSECRET\b(?! caller)")
_CODE = re.compile(r"`([^`]+)`")
_ALIAS = re.compile(rf"(?<=spark\.sql\.catalog\.){WAREHOUSE}\b")
ALIAS = "lake"
"""The name by which the runs know the catalog in Spark, which is another one than the server's."""
PROGRAM = "etl"
"""The service account in the page."""


def block(section: str, *, uri: str, token: str, catalog: str = WAREHOUSE, store: str = STORE) -> str:
    """Return the first code block below a heading, for a server, a caller and a catalog.

    A caller `etl:SECRET` authenticates with that credential, by the settings that the page names instead of a token.
    """
    text = "".join(re.split(rf"\n#+ {re.escape(section)}\n", PAGE.read_text(encoding="utf-8"), maxsplit=1)[1:])
    code = text.partition("```")[2].partition("\n")[2].partition("\n```")[0]
    if ADDRESS not in code or "TOKEN" not in code:
        raise LookupError(f"{PAGE.name} has no settings for {section}")
    if token.startswith(f"{PROGRAM}:"):
        code = _SECRET.sub(lambda _: token.partition(":")[2], _by_credential(code))
    code = _ALIAS.sub(ALIAS, code)
    return _TOKEN.sub(lambda _: token, _WAREHOUSE.sub(catalog, code)).replace(ADDRESS, uri).replace(STORE, store)


def _by_credential(code: str) -> str:
    """Return settings with a credential instead of the token, from the page's table.

    Raises LookupError for another client.
    """
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        instead, *credential_lines = (line.startswith("| ") and _CODE.findall(line)) or [""]
        if "TOKEN" in instead and (match := re.search(rf"(?<!\w){re.escape(instead)}", code)):
            return code[: match.start()] + "\n".join(credential_lines) + code[match.end() :]
    raise LookupError(f"{PAGE.name} has no way for it to sign in by a credential")
