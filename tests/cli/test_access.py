"""`access explain`: the views that something is read through."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import Fake

EXPLAIN = "/api/limnos/v1/metalakes/lake/access/explain"
ALLOWED = {"decision": {"allowed": True, "action": "table_load"}, "suggestions": []}


def test_a_chain_of_views_is_of_one_catalog(fake: Fake, limnos: Run) -> None:
    """`--through` takes whole paths, as every flag does; one that lies elsewhere is told back with the catalog, before anything is asked."""
    fake.on("POST", EXPLAIN, ALLOWED)
    words = ("access", "explain", "table_load", "main.raw.t", "--through", "main.raw.v", "--through")

    assert limnos(*words, "main.raw.w").code == 0
    assert fake.asked[-1].body["through"] == [["raw", "v"], ["raw", "w"]]  # type: ignore[index]
    for other in ("raw.w", "lab.raw.w", "main.w"):
        done = limnos(*words, other)
        assert done.code == 2, other
        assert f"give its whole path, as main.{other}" in str(done.error["message"])
    assert len(fake.asked) == 1
