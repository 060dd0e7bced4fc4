# SPDX-License-Identifier: Apache-2.0
"""A schema registry over HTTP, as Confluent's serves it: the schemas of a topic's values by their ids.

A value in its wire format is a zero byte, the schema's id in four bytes, and the value. Only the driver asks the
registry. Must not know Spark. The password is in a header only.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from limnos.pipeline.engine.sources.topics.brokers import secret

if TYPE_CHECKING:
    from limnos.pipeline.engine.sources.values import SourceFailed
    from limnos.pipeline.source_declarations import KafkaAccess

_ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
_VERSIONS_MAX: Final = 500


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send the password to another host."""

    def redirect_request(self, *arguments: object, **named: object) -> None:
        return None


class SchemaRegistry:
    """The registry of a source. Methods raise SourceFailed, within the source's timeout for each request."""

    def __init__(self, access: KafkaAccess, *, failed: Callable[[str], SourceFailed]) -> None:
        self._access = access
        self._failed = failed
        self._url = (access.registry or "").rstrip("/")
        self._password = secret(access.registry_password_env, failed)
        self._opener = urllib.request.build_opener(_NoRedirects)

    def schema_ids(self, topic: str) -> tuple[int, ...]:
        """Return the ids of the schemas of a topic's values, the newest last."""
        subject = quote(f"{topic}-value", safe="")
        versions = self._get(f"/subjects/{subject}/versions", missing=f"it has no subject {topic}-value")
        if not isinstance(versions, list) or not all(isinstance(each, int) for each in versions) or not versions:
            raise self._unexpected_answer()
        newest = sorted(versions)[-_VERSIONS_MAX:]
        ids = [self._version(subject, version) for version in newest]
        return tuple(dict.fromkeys(reversed(ids)))[::-1]

    def schema(self, number: int) -> str:
        """Return the schema with an id, as Avro's JSON."""
        answer = self._get(f"/schemas/ids/{number}", missing=f"it has no schema {number}")
        text = answer.get("schema") if isinstance(answer, dict) else None
        if not isinstance(text, str):
            raise self._unexpected_answer()
        kind = answer.get("schemaType", "AVRO") if isinstance(answer, dict) else None
        if kind != "AVRO" or (isinstance(answer, dict) and answer.get("references")):
            what = f"is of type {kind}" if kind != "AVRO" else "refers to other schemas"
            raise self._failed(f"schema {number} of the registry {self._display_url} {what}, which is not supported.")
        return text

    def _version(self, subject: str, version: int) -> int:
        answer = self._get(f"/subjects/{subject}/versions/{version}", missing=f"it has no version {version}")
        number = answer.get("id") if isinstance(answer, dict) else None
        if not isinstance(number, int) or not 0 <= number < 2**31:
            raise self._unexpected_answer()
        return number

    @property
    def _display_url(self) -> str:
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def _unexpected_answer(self) -> SourceFailed:
        return self._failed(f"the answer of {self._display_url} is not that of a schema registry: correct `registry`.")

    def _get(self, path: str, *, missing: str) -> object:
        request = urllib.request.Request(  # noqa: S310 - the declaration allows http and https only
            self._url + path, headers={"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        )
        if self._access.registry_user is not None:
            login = f"{self._access.registry_user}:{self._password or ''}".encode()
            request.add_header("Authorization", f"Basic {b64encode(login).decode()}")
        try:
            with self._opener.open(request, timeout=self._access.timeout_s) as answer:
                text = answer.read(_ANSWER_BYTES_MAX + 1)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise self._failed(f"the registry {self._display_url} does not know the schema: {missing}.") from None
            if error.code in (401, 403):
                raise self._failed(
                    f"the registry {self._display_url} refuses the credentials: check `registry_user` and"
                    " `registry_password_env`."
                ) from None
            raise self._failed(f"the registry {self._display_url} answers {error.code} {error.reason}.") from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise self._failed(
                f"the registry {self._display_url} does not answer within {self._access.timeout_s} seconds: {reason}"
            ) from None
        if len(text) > _ANSWER_BYTES_MAX:
            raise self._unexpected_answer()
        try:
            return json.loads(text)
        except ValueError:
            raise self._unexpected_answer() from None
