# SPDX-License-Identifier: Apache-2.0
"""A browser for tests of the console: cookies, forms, and pages parsed by the standard HTML parser."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

from tests.http.driver import DriverAnswer, DriverNode

HOST = "localhost:8090"
FORM = "application/x-www-form-urlencoded"
VOID = frozenset({"meta", "link", "input", "br", "img", "hr", "use", "path", "wbr"})


class PageReader(HTMLParser):
    """A strict HTML parser: every element must be closed in order. Collects tags, ids, URLs, forms and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.hrefs: list[str] = []
        self.actions: list[tuple[str, str]] = []
        self.controls: dict[str, set[str]] = {}
        """The names of the fields of forms that are sent by POST, by the form's URL."""
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self._is_broken = False
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        self.tags.append(tag)
        self._is_broken = tag == "wbr" and bool(self.words)
        attribute_values = {name: value or "" for name, value in attrs}
        self.attributes += attribute_values.items()
        if "id" in attribute_values:
            self.ids.append(attribute_values["id"])
        if "href" in attribute_values and tag == "a":
            self.hrefs.append(attribute_values["href"])
        for name in ("data-branch", "data-next", "data-live"):
            if name in attribute_values:
                self.hrefs.append(attribute_values[name])
        if tag == "form":
            self.actions.append((attribute_values.get("method", "get"), attribute_values.get("action", "")))
        elif "name" in attribute_values and "form" in self._open and self.actions[-1][0] == "post":
            self.controls.setdefault(self.actions[-1][1], set()).add(attribute_values["name"])
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        if tag in VOID:
            return
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        """Add text to the collected words."""
        if self._is_broken:
            self.words[-1] += data  # of the same word, where a line may break
            self._is_broken = False
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        """All texts, with single spaces."""
        return " ".join(" ".join(self.words).split())


@dataclass
class ConsoleVisitor:
    """One browser: it sends the cookies that it received, and the headers of browsers."""

    node: DriverNode
    host: str = HOST
    cookies: dict[str, str] = field(default_factory=dict)
    controls: dict[str, set[str]] = field(default_factory=dict)
    """The names of the fields of the forms on all pages that were read, by the form's URL."""

    def get(self, path: str, **headers: str) -> DriverAnswer:
        """GET a page. Redirects are not followed."""
        return self._sent("GET", path, None, headers)

    def read(self, path: str) -> PageReader:
        """GET a page, which must succeed, and parse it."""
        answer = self.get(path)
        assert answer.status == 200, f"{path}: {answer.status} {text_of(answer)[:2000]}"
        page = PageReader(text_of(answer))
        for action, names in page.controls.items():
            self.controls.setdefault(action, set()).update(names)
        return page

    def post(self, path: str, fields: dict[str, str], **headers: str) -> DriverAnswer:
        """POST a form as the console's own page does, unless `headers` say otherwise.

        If the server takes the form, and a page with it was read before, the page's form must have each of the fields.
        """
        own = headers or {"sec_fetch_site": "same-origin", "origin": f"http://{self.host}"}
        answer = self._sent("POST", path, urlencode(fields).encode(), own)
        if answer.status < 400 and path in self.controls:
            assert set(fields) <= self.controls[path], (
                f"{path}: no page has the field {set(fields) - self.controls[path]}"
            )
        return answer

    def sign_in(self, user: str = "admin") -> ConsoleVisitor:
        """Sign in with a name alone, which servers on loopback trust."""
        answer = self.post("/console/sign-in", {"user": user})
        assert answer.status == 303, text_of(answer)
        return self

    def _sent(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> DriverAnswer:
        sent = {"host": self.host, **headers}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body is not None:
            sent["content_type"] = FORM
        answer = self.node.ask(method, path, body, user=None, **sent)
        for cookie_line in answer.headers.get("set-cookie", "").splitlines():
            name, _, rest = cookie_line.partition("=")
            value = rest.partition(";")[0]
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return answer


def text_of(answer: DriverAnswer) -> str:
    """Return a page's text, decompressed if necessary."""
    body = answer.body
    return (gzip.decompress(body) if answer.headers.get("content-encoding") == "gzip" else body).decode()
