"""`access explain`: why an action is allowed or refused.

May import `client`, this room and the words of `access`. The server returns the reasons; this module formats them.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import ExitCode, UsageError
from limnos.cli.output import Row, show_done, show_rows, visible
from limnos.client.values import Decision, Explanation

app = App(name="access")
ExplainedKind = Literal[
    "metalake", "catalog", "namespace", "table", "view", "role", "user", "group", "tag", "job_template"
]


@app.command
def explain(
    action: str | None = None,
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
    actions: Annotated[
        bool, Parameter(name="--actions", help="List all actions, and ask nothing.", negative=())
    ] = False,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Say whether an action is allowed, and which roles, owners and denials decide. The action is not performed.

    Exit code 0 if it is allowed, 7 if it is refused. `--actions` lists the actions.

    Parameters
    ----------
    action
        The action, such as `table_load`, `table_commit` or `namespace_create`.
    path
        Its object, such as `main.raw.nyc.flights`, or the name of a role or user; by default the metalake.
    """
    if actions:
        _list_actions(common)
        return int(ExitCode.OK)
    if action is None:
        raise UsageError("say which action to explain", hint="limnos access explain --actions")
    with common.client() as client:
        explanation = client.access.explain(action, path or (), user=for_, kind=kind, through=through)
    if common.shape == "json":
        show_done("", _document(explanation), shape="json")
    else:
        _print(explanation)
    return int(ExitCode.OK if explanation.decision.allowed else ExitCode.REFUSED)


def _list_actions(common: CommonFlags) -> None:
    from limnos.access.actions import Action

    rows: list[Row] = [
        {"action": action.word, "kinds": ", ".join(kind.word for kind in sorted(action.kinds))} for action in Action
    ]
    show_rows(rows, ["action", "kinds"], shape=common.shape)


def _document(explanation: Explanation) -> Row:
    decision = msgspec.to_builtins(explanation.decision)
    factors = [_factor_row(explanation.decision, index) for index in range(len(explanation.decision.factors))]
    decision |= {
        "target": explanation.decision.target_name,
        "message": explanation.decision.sentence,
        "factors": factors,
    }
    return {"decision": decision, "suggestions": explanation.suggestions}


def _factor_row(decision: Decision, index: int) -> Row:
    factor = decision.factors[index]
    return {
        "kind": factor.kind,
        "privilege": factor.privilege,
        "object": factor.object_name or None,
        "role": factor.role,
        "group": factor.group,
    }


def _print(explanation: Explanation) -> None:
    decision = explanation.decision
    print(visible(f"{'ALLOWED' if decision.allowed else 'REFUSED'}: {decision.sentence or decision.action}"))
    if decision.factors:
        print()
        rows = [_factor_row(decision, index) for index in range(len(decision.factors))]
        show_rows(rows, ["kind", "privilege", "object", "role", "group"], shape="table")
    if explanation.suggestions:
        print("\nmind:" if decision.allowed else "\nwhat would change it:")
        for suggestion in explanation.suggestions:
            print(visible(f"  {suggestion}"))
