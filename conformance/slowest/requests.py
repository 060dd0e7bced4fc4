# SPDX-License-Identifier: Apache-2.0
"""The initial requests of each protocol, and their random changes to requests of at most BODY_BYTES_MAX.

May import the documents of `openapi/` and the bodies of the coverage test. Must not know the cost of a request.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from tests.http.test_coverage import BODIES, NAMES

if TYPE_CHECKING:
    from random import Random

FOLDER: Final = Path(__file__).parents[2] / "openapi"
BODY_BYTES_MAX: Final = 2048
PROTOCOLS: Final = tuple(sorted(file.stem for file in FOLDER.glob("*.json")))
LEFT_OUT: Final = re.compile(r"/(jobs/runs|tasks|backup|watch)|signout|/connector")
"""Routes that start processes or wait by design."""


@dataclass(frozen=True)
class SentRequest:
    """A request: its line, its body, and whether that is JSON, a form or a statement."""

    method: str
    path: str
    body: object = None
    form: str = "json"

    @property
    def content(self) -> bytes:
        """The body's bytes."""
        if self.form == "statement":
            return urlencode({"statement": self.body}).encode()
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()

    @property
    def size(self) -> int:
        """The size that the search limits: that of the statement itself, not of its encoding in a form."""
        return len(str(self.body)) if self.form == "statement" else len(self.content)


STATEMENTS: Final = (
    "select value 1",
    "select value array_sort(array_flatten(array_repeat(array_repeat(1,3000),3000),1))",
    "select value [array_length(array_sort(array_range(0,999999)))]",
    "select value array_repeat(repeat('x',16000000),9)",
    "select value true or false or true",
    "declare function f(x){x+x}; declare function g(x){f(x)+f(x)}; select value g(1)",
    "select x, y from range(1,300) x, range(1,300) y where x = y group by x, y order by x desc limit 3",
    "select sum(x) over (partition by x % 3 order by x range between 3 preceding and current row) from range(1,400) x",
    "select value edit_distance(repeat('ab',300), repeat('ba',300))",
    "select value regexp_contains(repeat('a',3000), '(a*)*b')",
    "select distinct value x.DatasetName from Metadata.`Dataset` x where x.DataverseName like '%a%'",
    "with a as [1,1], b as [a,a], c as [b,b], d as [c,c] select value [d,d,d] = [d,d,d]",
    "from [{'a':1}] r let x = r.a, y = x + 1 group by x as k group as g having count(*) > 0 select k, g, array_agg(y)",
    "select value case 1 when 2 then 3 when 4 then 5 else 6 end",
    "explain select value x from range(1,9) x",
    "create dataverse p.d if not exists",
    "select value to_string({'a':[1,2,{'b':date('2020-01-01')}]}) || 'x'",
    "select value some x in range(1,50) satisfies every y in range(1,50) satisfies x < y",
    "select value object_concat({'a':1},{'b':2})",
    "select value 'aaaa' like '%a%a%b'",
)
WORDS: Final = (
    "[",
    "]",
    "(",
    ")",
    ",",
    " or true",
    " and x",
    "array_sort(",
    "array_range(0,999)",
    "repeat('x',999)",
    "{'a':1}",
    "group by x",
    "order by x",
    "distinct ",
    "not ",
    "case when 1 then 2 end",
    "from range(1,999) y, range(1,999) z",
    "let a=[1,1],",
    "select value ",
    "array_flatten(",
    "array_repeat(",
    ".a",
    "[0]",
    "[*]",
    "'%a%a%'",
    " like ",
    "edit_distance(",
    "split(",
    "union all select value 1",
    "over (order by x)",
    "with b as (select value 1) ",
    "-",
    "1e300",
    "/*",
    "--\n",
    "`",
    '"',
    "$1",
    "?",
    "in [1,2,3]",
    "is known",
    "date('2020-01-01')",
    "array_agg(x)",
    "count(*)",
    "group by cube(a,b,c)",
    "exists (",
    "* ",
    "a.b.c",
)
FILTER: Final = {"type": "eq", "term": "id", "value": 1}
EXTRA: Final[dict[str, tuple[SentRequest, ...]]] = {
    "iceberg": (
        *(
            SentRequest("POST", "/iceberg/v1/lake.main/namespaces/a/tables/t/plan", {"filter": each})
            for each in (
                {"type": "and", "left": FILTER, "right": {"type": "not", "child": FILTER}},
                {"type": "in", "term": "id", "values": [1, 2, 3]},
            )
        ),
        SentRequest("GET", "/iceberg/v1/lake.main/namespaces/a%1Fb%1Fc/tables/t"),
        SentRequest("GET", "/iceberg/v1/lake.main/namespaces?parent=a%1Fb&pageToken=x&pageSize=1"),
    ),
    "lance": (
        SentRequest(
            "POST",
            "/lance/v1/table/lance$a$t/query",
            {"vector": {"single_vector": [1.0]}, "k": 3, "filter": "id > 1 and id < 3"},
        ),
        SentRequest("POST", "/lance/v1/table/lance$a$t/count_rows", {"predicate": "id in (1, 2, 3)"}),
    ),
    "admin": (),
    "gravitino": (),
    "asterix": tuple(SentRequest("POST", "/query/service", each, "statement") for each in STATEMENTS),
}
PIECES: Final = (
    "a",
    "\x00",
    "ä" * 50,
    "\U0001f600" * 20,
    "%",
    "..",
    "/",
    "\\",
    "$",
    ":",
    ".",
    "`",
    '"',
    "\x1f",
    "(a*)*",
    "9" * 300,
)


def first_requests(protocol: str) -> list[SentRequest]:
    """Return each operation of the protocol's document with existing names and a meaningful body, and some hand-written
    ones.
    """
    document = json.loads((FOLDER / f"{protocol}.json").read_text(encoding="utf-8"))
    sent_requests = list(EXTRA.get(protocol, ()))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method not in ("get", "put", "post", "delete", "patch", "head") or LEFT_OUT.search(path):
                continue
            body = BODIES.get(operation["operationId"].removesuffix("-default-catalog"))
            named = re.sub(r"\{(\w+)\}", lambda match: quote(NAMES.get(match[1], "x"), safe="$"), path)
            sent_requests.append(
                SentRequest(method.upper(), named, {} if body is None and "requestBody" in operation else body)
            )
    return sent_requests


def changed(sent: SentRequest, other: SentRequest, random: Random) -> SentRequest:
    """Return a random change of a request; parts may be taken from `other`."""
    for _ in range(random.choice((1, 1, 2, 4))):
        if sent.form == "statement":
            sent = replace(sent, body=_text(str(sent.body), str(other.body), random))
        elif sent.body is None or isinstance(sent.body, bytes) or random.random() < 0.15:
            sent = replace(sent, path=_path(sent.path, random))
        else:
            sent = replace(sent, body=_value(sent.body, random, 0))
    return sent


def _text(text: str, other: str, random: Random) -> str:
    at, end = sorted((random.randint(0, len(text)), random.randint(0, len(text))))
    match random.randrange(6):
        case 0:
            return text[:at] + random.choice(WORDS) + text[at:]
        case 1:
            return text[:end] + text[at:end] * random.choice((1, 3, 20, 100)) + text[end:]
        case 2:
            return text[:at] + text[end:]
        case 3:
            begin = random.randint(0, len(other))
            return text[:at] + other[begin : begin + random.randint(1, 60)] + text[at:]
        case 4:
            return re.sub(
                r"\d+",
                lambda _: str(random.choice((0, 1, 2, 30, 400, 3000, 50_000, 999_999, 2**63 - 1))),
                text,
                count=random.choice((0, 1)),
            )
        case _:
            token = random.choice(re.findall(r"[^\s]+\s*", text) or [" "])
            return text.replace(token, token * random.choice((2, 10, 60, 300)), 1)


def _path(path: str, random: Random) -> str:
    base, _, query = path.partition("?")
    parts = base.split("/")
    at = random.randrange(1, len(parts))
    match random.randrange(4):
        case 0:
            parts[at] += quote(random.choice(PIECES), safe="")
        case 1:
            separator = random.choice(("%1F", ".", "$", ":", "%2E", "%3A"))
            parts[at] = separator.join([parts[at] or "a"] * random.choice((2, 10, 100, 400)))
        case 2:
            name = random.choice(
                (
                    "pageSize",
                    "limit",
                    "pageToken",
                    "parent",
                    "details",
                    "list",
                    "delimiter",
                    "recursive",
                    "x",
                    "at",
                    "from",
                    "cursor",
                    "type",
                    "q",
                )
            )
            value = random.choice(
                ("1", "0", "-1", "9" * 19, "a" * 200, "true", "[" * 300, "%1F".join("a" * 200), "x" * 1500)
            )
            query = f"{query}&{name}={value}".lstrip("&")
        case _:
            query = "&".join(f"{name}{number}=1" for number in range(150) for name in ("a",))
    return "/".join(parts)[:2000] + (f"?{query}"[:2000] if query else "")


def _value(value: object, random: Random, depth: int) -> object:
    """A JSON value with one of its parts changed."""
    if isinstance(value, dict) and value and random.random() < 0.75:
        key = random.choice(list(value))
        return {**value, key: _value(value[key], random, depth + 1)}
    if isinstance(value, list) and value and random.random() < 0.6:
        at = random.randrange(len(value))
        return [*value[:at], _value(value[at], random, depth + 1), *value[at + 1 :]]
    match random.randrange(9):
        case 0 if isinstance(value, list) and value:
            return value * random.choice((2, 10, 100))
        case 1:
            return [value]
        case 2 if isinstance(value, dict):
            return {
                **value,
                **{
                    f"{key}{number}": each
                    for key, each in list(value.items())[:3]
                    for number in range(random.choice((1, 20, 60)))
                },
            }
        case 3:
            return random.choice(PIECES) * random.choice((1, 20, 400))
        case 4:
            return 10 ** random.choice((0, 9, 18, 19, 300, 1500))
        case 5:
            nested: object = value
            for _ in range(random.choice((3, 30, 200))):
                nested = {"type": "not", "child": nested} if random.random() < 0.5 else [nested]
            return nested
        case 6 if isinstance(value, str):
            return random.choice((".", "/", "\x1f", "$", "%", "(", " and ", " or ")).join(
                [value or "a"] * random.choice((2, 20, 200))
            )
        case 7:
            return {f"k{number}": str(number) for number in range(random.choice((1, 20, 120)))}
        case _:
            return random.choice((None, True, -1, 0.1, 1e300, "", "a", [], {}))
