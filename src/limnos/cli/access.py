"""`access explain`: why somebody may do something, or not.

May import `client` and this room. The reasons are the server's; here they are only laid out.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, Common
from limnos.cli.output import Row, show_done, show_rows, visible
from limnos.client.values import Decision, Explanation

app = App(name="access")
ExplainedKind = Literal[
    "metalake", "catalog", "namespace", "table", "view", "role", "user", "group", "tag", "job_template"
]


@app.command
def explain(
    action: str,
    path: str | None = None,
    /,
    *,
    for_: Annotated[str | None, Parameter(name="--for", help="Another user, for who may manage grants.")] = None,
    kind: Annotated[ExplainedKind | None, Parameter(help="What PATH is, when it is not plain.")] = None,
    through: Annotated[
        tuple[str, ...],
        Parameter(
            help="A view that it is read through, as main.raw.late; may be repeated, the outermost first.", negative=()
        ),
    ] = (),
    common: Common = DEFAULTS,
) -> None:
    """Say whether something is allowed, and which roles, owners and denials decide it. Nothing is done.

    Parameters
    ----------
    action
        What is done, as `table_load`, `table_commit` or `namespace_create`.
    path
        To what, as `main.raw.nyc.flights`, or a role's or user's name; without it, to the metalake.
    """
    with common.client() as client:
        found = client.access.explain(action, path or (), user=for_, kind=kind, through=through)
    if common.shape == "json":
        show_done("", _document(found), shape="json")
    else:
        _print(found)


def _document(found: Explanation) -> Row:
    decision = msgspec.to_builtins(found.decision)
    factors = [_factor_row(found.decision, index) for index in range(len(found.decision.factors))]
    decision |= {"target": found.decision.target_name, "message": found.decision.sentence, "factors": factors}
    return {"decision": decision, "suggestions": found.suggestions}


def _factor_row(decision: Decision, index: int) -> Row:
    factor = decision.factors[index]
    return {
        "kind": factor.kind,
        "privilege": factor.privilege,
        "object": factor.object_name or None,
        "role": factor.role,
        "group": factor.group,
    }


def _print(found: Explanation) -> None:
    decision = found.decision
    print(visible(f"{'ALLOWED' if decision.allowed else 'REFUSED'}: {decision.sentence or decision.action}"))
    if decision.factors:
        print()
        rows = [_factor_row(decision, index) for index in range(len(decision.factors))]
        show_rows(rows, ["kind", "privilege", "object", "role", "group"], shape="table")
    if found.suggestions:
        print("\nmind:" if decision.allowed else "\nwhat would change it:")
        for suggestion in found.suggestions:
            print(visible(f"  {suggestion}"))
