"""The settings that docs/engines.md tells, as the engines are given them: what the page says is what is run.

May import the standard library only.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
ADDRESS = "http://127.0.0.1:8090/iceberg"
WAREHOUSE = "main"


def block(engine: str, *, uri: str, token: str, catalog: str = WAREHOUSE) -> str:
    """The first block of code below the heading that begins with the engine's name, for a server, a caller and a catalog."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {engine}")[2]
    code = text.partition("```")[2].partition("\n")[2].partition("\n```")[0]
    if ADDRESS not in code or "TOKEN" not in code:
        raise LookupError(f"{PAGE.name} has no settings for {engine}")
    named = code.replace(f"'{WAREHOUSE}'", f"'{catalog}'").replace(f"warehouse={WAREHOUSE}\n", f"warehouse={catalog}\n")
    return re.sub(r"\bTOKEN\b(?! ')", lambda _: token, named).replace(ADDRESS, uri)
