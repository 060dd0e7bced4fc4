"""The settings that docs/clients.md tells, as the engines are given them: what the page says is what is run.

May import the standard library only.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
ADDRESS = "http://127.0.0.1:8090/iceberg"
WAREHOUSE = "main"
_WAREHOUSE = re.compile(rf"""(?<=['"=]){WAREHOUSE}(?=['"\n]|$)""")
_TOKEN = re.compile(r"\bTOKEN\b(?! ')")


def block(section: str, *, uri: str, token: str, catalog: str = WAREHOUSE) -> str:
    """The first block of code below a heading, for a server, a caller and a catalog."""
    text = "".join(re.split(rf"\n#+ {re.escape(section)}\n", PAGE.read_text(encoding="utf-8"), maxsplit=1)[1:])
    code = text.partition("```")[2].partition("\n")[2].partition("\n```")[0]
    if ADDRESS not in code or "TOKEN" not in code:
        raise LookupError(f"{PAGE.name} has no settings for {section}")
    return _TOKEN.sub(lambda _: token, _WAREHOUSE.sub(catalog, code)).replace(ADDRESS, uri)
