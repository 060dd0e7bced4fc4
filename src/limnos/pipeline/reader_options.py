# SPDX-License-Identifier: Apache-2.0
"""Options of Spark's readers of CSV and JSON: those that a source may set, and the reasons against the others.

Must not know Spark. A test compares the names with those of Spark's own classes. Spark ignores the case of names, and
ignores unknown options, so a misspelt one would change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from limnos.pipeline.problems import nearest_word

_OURS: Final = "is set by `malformed` and `schema`: use those, and leave the option out"
_WRITES: Final = "is an option of Spark's writer and changes nothing for a source: leave it out"
_COMPRESSION: Final = (
    "changes nothing for a source, because the file name's ending selects the compression: leave it out"
)
_INCOMPLETE: Final = "would leave out rows without a finding: correct or move the files"

LISTING_OPTIONS: Final = ("recursiveFileLookup", "pathGlobFilter", "modifiedBefore", "modifiedAfter")
"""Options of Spark that select files. They do not affect the parsing of files."""
_STREAMING: Final = (
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "maxCachedFiles",
    "latestFirst",
    "maxFileAge",
    "fileNameOnly",
    "discardCachedInputRatio",
    "allowOverwrite",
)
_COMMON: Final = (
    "encoding",
    "charset",
    "lineSep",
    "multiLine",
    "samplingRatio",
    "locale",
    "timeZone",
    "dateFormat",
    "timestampFormat",
    "timestampNTZFormat",
    "enableDateTimeParsingFallback",
    *LISTING_OPTIONS,
)
HONOURED: Final[Mapping[str, tuple[str, ...]]] = {
    "csv": (
        *_COMMON,
        "header",
        "sep",
        "delimiter",
        "quote",
        "escape",
        "charToEscapeQuoteEscaping",
        "comment",
        "ignoreLeadingWhiteSpace",
        "ignoreTrailingWhiteSpace",
        "nullValue",
        "emptyValue",
        "nanValue",
        "positiveInf",
        "negativeInf",
        "preferDate",
        "inferSchema",
        "maxColumns",
        "maxCharsPerColumn",
        "inputBufferSize",
        "unescapedQuoteHandling",
        "columnPruning",
    ),
    "json": (
        *_COMMON,
        "primitivesAsString",
        "prefersDecimal",
        "inferTimestamp",
        "dropFieldIfAllNull",
        "allowComments",
        "allowUnquotedFieldNames",
        "allowSingleQuotes",
        "allowNumericLeadingZeros",
        "allowNonNumericNumbers",
        "allowBackslashEscapingAnyCharacter",
        "allowUnquotedControlChars",
        "useUnsafeRow",
    ),
}
"""The options that a source may set, by format. They have the effect that they have in Spark."""
_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("mode", "columnNameOfCorruptRecord", "badRecordsPath", "schema", "enforceSchema", "mergeSchema"), _OURS
    ),
    "basePath": "is set from the pattern of `files`: leave it out",
    "path": "is `files`: leave it out",
    "paths": "is `files`: leave it out",
    **dict.fromkeys(("compression", "codec"), _COMPRESSION),
    **dict.fromkeys(("ignoreCorruptFiles", "ignoreMissingFiles"), _INCOMPLETE),
    "cleanSource": "would remove files before the run is published: leave it out",
    "sourceArchiveDir": "would move files before the run is published: leave it out",
}
REFUSED: Final[Mapping[str, Mapping[str, str]]] = {
    "csv": {
        **_REFUSED,
        **dict.fromkeys(("quoteAll", "escapeQuotes", "extension"), _WRITES),
        "singleVariantColumn": "would make one column of each row: declare the columns in `schema`",
    },
    "json": {
        **_REFUSED,
        **dict.fromkeys(("ignoreNullFields", "pretty", "writeNonAsciiCharacterAsCodePoint"), _WRITES),
        "singleVariantColumn": (
            "would make one column of each object: declare the columns in `schema`, for example `a variant`"
        ),
    },
}
"""The options that a source may not set, with the reasons."""


CONNECTOR_OPTIONS: Final = ("minPartitions", "maxRecordsPerPartition", "groupIdPrefix")
"""Options of Spark's connector for Kafka that a source may set."""
_OF_FILES: Final = (*LISTING_OPTIONS, "encoding", "charset", "lineSep", "multiLine", "samplingRatio")
VALUE_OPTIONS: Final = tuple(each for each in HONOURED["json"] if each not in _OF_FILES)
"""Options of Spark's reader of JSON that a topic's values may have."""
_OWN_KEYS: Final[Mapping[str, str]] = {
    "kafka.bootstrap.servers": "brokers",
    "kafka.security.protocol": "security",
    "kafka.sasl.mechanism": "mechanism",
    "kafka.sasl.jaas.config": "user` and `password_env",
    "kafka.ssl.truststore.location": "ca_file",
    "kafka.ssl.truststore.type": "ca_file",
    "subscribe": "kafka",
    "subscribePattern": "kafka",
    "assign": "kafka",
    "startingOffsets": "from",
    "startingTimestamp": "from",
    "startingOffsetsByTimestamp": "from",
    "maxOffsetsPerTrigger": "records",
    "failOnDataLoss": "lost",
    "includeHeaders": "columns",
    "kafkaConsumer.pollTimeoutMs": "timeout",
    "kafka.request.timeout.ms": "timeout",
    "kafka.default.api.timeout.ms": "timeout",
}
"""Options of Spark's connector that are keys of a source, with the keys."""
_ENDS: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_CLIENT_OPTIONS: Final = (
    "kafka.client.dns.lookup",
    "kafka.client.rack",
    "kafka.connections.max.idle.ms",
    "kafka.fetch.max.bytes",
    "kafka.fetch.max.wait.ms",
    "kafka.fetch.min.bytes",
    "kafka.max.partition.fetch.bytes",
    "kafka.max.poll.records",
    "kafka.receive.buffer.bytes",
    "kafka.reconnect.backoff.max.ms",
    "kafka.reconnect.backoff.ms",
    "kafka.retry.backoff.ms",
    "kafka.ssl.cipher.suites",
    "kafka.ssl.enabled.protocols",
    "kafka.ssl.endpoint.identification.algorithm",
    "kafka.ssl.protocol",
)
"""Settings of Kafka's consumer that a source may set. Others load code, read files or change what is read."""


def topic_option_problem(name: str, *, json: bool) -> str | None:
    """Return why a source that is a topic may not have an option; None if it may. `json`: its values are JSON."""
    own_keys = {one.lower(): key for one, key in _OWN_KEYS.items()}
    if name.lower() in own_keys:
        return f"the option {name} has its own key in a source: use `{own_keys[name.lower()]}`."
    if name.lower() in {one.lower() for one in _ENDS}:
        return f"the option {name} is set by the run, which pins the end when it starts: leave it out."
    option_names = (*CONNECTOR_OPTIONS, *_CLIENT_OPTIONS, *(VALUE_OPTIONS if json else ()))
    if name in option_names:
        return None
    near_name, every_name = nearest_word(name, option_names), ", ".join(option_names)
    return f"there is no option {name} of a topic{near_name}; possible are {every_name}."


def option_problem(format_: str, name: str, *, stream: bool = False) -> str | None:
    """Return why a source of a format may not have an option; None if it may, or if the options of the format are not
    known here.

    `stream`: the source is a stream, which has further options.
    """
    refused = {one.lower(): reason for one, reason in REFUSED.get(format_, _REFUSED).items()}
    if name.lower() in refused:
        return f"the option {name} {refused[name.lower()]}."
    option_names = HONOURED.get(format_)
    if option_names is None:
        return None
    option_names = (*option_names, *_STREAMING) if stream else option_names
    if name.lower() in {one.lower() for one in option_names}:
        return None
    return (
        f"there is no option {name} of {format_.upper()} files{nearest_word(name, option_names)}; see Spark's reader."
    )
