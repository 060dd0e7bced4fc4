# SPDX-License-Identifier: Apache-2.0
"""`find`: searches over the metalake."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec
from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.lookups import exists
from limnos.cli.operations import KIND_WORDS
from limnos.cli.output import show_rows, visible
from limnos.names import display

FILTERS: Final = ("kind", "tag", "owner", "format", "in")
"""The filters of a search."""
_OTHER_FILTERS: Final = {
    typed: ours
    for line in (
        "kind type types kinds object_type object-type",
        "tag tags label labels classification",
        "owner owners owned-by owned_by creator",
        "in catalog schema database namespace parent under path",
        " name names title column columns field fields col comment description text",
    )
    for ours, *words in [line.split(" ")]
    for typed in words
}
"""Filters of other tools, and ours; empty for words, which search the text of the field, too."""
_FILTER: Final = re.compile(r"([a-z_-]+):(.+)", re.IGNORECASE)


def find(
    *words: str,
    limit: Annotated[int, Parameter(help="Maximum number of objects to show, up to 200.")] = 50,
    facets: Annotated[
        bool, Parameter(help="Also count the first 200 by kind, catalog and format.", negative=())
    ] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Search the objects of the metalake that are visible to you, by name, prefix of a name, path, id or UUID.

    Parameters
    ----------
    words
        Words, and filters as `kind:table`, `tag:pii`, `owner:etl`, `format:lance`, `in:main.raw`.
    """
    with common.client() as client:
        question = " ".join(f'"{word}"' if " " in word and not _has_filter(word) else word for word in words)
        result = client.searches.find(question, limit=limit, facets=facets)
    rows = [
        {
            **msgspec.structs.asdict(hit),
            "name": display.render(hit.path),
            "matched": [msgspec.structs.asdict(each) for each in hit.matched],
            "found_in": ", ".join(
                f"{each.where} {each.text}" for each in hit.matched if each.where not in {"name", "filter"}
            ),
        }
        for hit in result.hits
    ]
    show_rows(
        rows,
        ["name", "kind", "format", "found_in"],
        output_format=common.output_format,
        empty="no matching object that you may load",
    )
    if common.output_format != "json" and (
        remark := _remark(more=result.more, bounded=result.bounded, behind=result.behind)
    ):
        print(remark, file=sys.stderr)
    if common.output_format != "json" and result.meant:
        print(f"did you mean: {', '.join(result.meant)}", file=sys.stderr)
    if not rows:
        parts = [part for word in words for part in (word.split() if _has_filter(word) else [word])]
        for remark in _filter_remarks(parts, only_unknown=common.output_format == "json"):
            print(visible(remark), file=sys.stderr)
    if common.output_format != "json" and result.facets:
        print("  ".join(f"{each.key}:{each.value} {each.count}" for each in result.facets), file=sys.stderr)


def _has_filter(word: str) -> bool:
    """Return whether an argument with blanks has a filter, such as `kind:table orders`: it is a whole search, no name
    with blanks.
    """
    matches = [_FILTER.fullmatch(part) for part in word.split()]
    return any(match is not None and match[1].lower() in FILTERS for match in matches)


def _filter_remarks(words: Sequence[str], *, only_unknown: bool) -> list[str]:
    """Return sentences about the filters of a search without results: unknown ones, and the place of `in`.

    `only_unknown` leaves out sentences that take another request.
    """
    remarks = []
    for word in words:
        match = _FILTER.fullmatch(word)
        if match is not None and match[1] not in FILTERS:
            remarks.append(
                f"'{match[1]}:' is no filter, and was searched as text: the filters are {', '.join(FILTERS)}"
            )
            if (proposal := _with_known_filters(words)) is not None:
                remarks.append(f"next: '{shlex.join(['limnos', 'find', *proposal])}'")
        elif match is None or only_unknown:
            continue
        elif match[1] in {"tag", "owner"}:
            remarks.append(_of_owner_or_tag("tag" if match[1] == "tag" else "user", match[2]))
        elif match[1] == "in":
            above = match[2].rpartition(".")[0]
            command_line = shlex.join(["limnos", "list", *([above] if above else [])])
            remarks.append(f"is there a '{match[2]}' that you may see? '{command_line}' lists what there is")
    return remarks


def _of_owner_or_tag(kind: Literal["user", "tag"], name: str) -> str:
    """Return why a search by an owner or a tag may have no results."""
    if not exists(kind, name):
        return f"is there a {kind} '{name}'? 'limnos list {kind}s' lists them"
    if kind == "tag":
        return f"the tag '{name}' exists, on no object that you may see"
    return f"the user '{name}' exists, and owns no object that you may see"


def _with_known_filters(words: Sequence[str]) -> list[str] | None:
    """Return the words of a search with our filters for those of other tools: `type:table` is `kind:table`,
    `table:days` is `kind:table days`, `column:temp` is `temp`. None if a filter has no other one.
    """
    corrected_words: list[str] = []
    for word in words:
        match = _FILTER.fullmatch(word)
        if match is None or match[1].lower() in FILTERS:
            corrected_words.append(word)
            continue
        name, value = match[1].lower(), match[2]
        if name in _OTHER_FILTERS:
            ours = _OTHER_FILTERS[name]
            corrected_words.append(f"{ours}:{value}" if ours else value)
        elif name in KIND_WORDS:
            corrected_words += [f"kind:{KIND_WORDS[name]}", value]
        else:
            return None
    return corrected_words


def _remark(*, more: bool, bounded: bool, behind: int) -> str:
    if bounded:
        return "only the first 5,000 candidates were checked: give more words, or restrict the search with in:NAMESPACE"
    if behind:
        return f"{behind} changes are not indexed yet"
    return "there are more results: give more words, or a larger --limit" if more else ""
