"""The settings of a server: every section, key, default, and the checks of single values.

May import pydantic, `model` and `names`. Must not know where values come from (that is `loading`): building `Settings`
never reads the environment or a file.
"""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.functional_validators import AfterValidator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from limnos.config.access import AccessSection, OidcSection, User
from limnos.config.audit import AuditSection
from limnos.config.machine import memory_bytes
from limnos.config.maintenance import MaintenanceSection
from limnos.config.planning import PlanningSection
from limnos.config.secrets import SecretText, holds_secret, open_passwords
from limnos.config.section import SettingsSection
from limnos.config.storage import SourcesSection, StorageSection
from limnos.config.values import Root, Words, is_loopback, split_listen
from limnos.model.errors import LimnosError
from limnos.model.secrets import Secret
from limnos.names.logical import check_separator
from limnos.names.path import check_catalog_name, check_metalake_name, check_part

ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
HOST_NAME = re.compile(r"(?:\*\.)?[A-Za-z0-9_~:-]+(?:\.[A-Za-z0-9_~-]+)*\.?")
VIEW_BYTES_MIN = 16 << 20
"""A smaller view would spend its time reloading facts that it has just evicted."""
SPARK_CONFIGS = (
    "spark.app.name", "spark.default.parallelism", "spark.driver.cores", "spark.driver.maxResultSize", "spark.driver.memory",
    "spark.dynamicAllocation.*", "spark.executor.cores", "spark.executor.instances", "spark.executor.memory", "spark.sql.adaptive.*",
    "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions",
)  # fmt: skip
"""Spark properties that name neither code nor files."""
SCHEMES = ("sqlite", "postgresql")
"""URL schemes of databases that a server can use."""


class ConfigError(LimnosError):
    """Settings that cannot be used: unknown key, wrong value, unreadable file. The message says what to change."""

    code = "config"


def _listen(text: str) -> str:
    split_listen(text)
    return text


def _host_name(name: str) -> str:
    if name == "*" or HOST_NAME.fullmatch(name):
        return name
    raise ValueError(
        f"'{name}' is no host name: write it without scheme, port and brackets, for example lake.example.com"
    )


def _origin(text: str) -> str:
    if ORIGIN.fullmatch(text):
        return text
    raise ValueError(
        f"'{text}' is no origin: write scheme, host and port as browsers do, without a path and without *, for example "
        "https://console.example.com or http://127.0.0.1:3000"
    )


def _public_url(text: str) -> str:
    scheme, _, rest = text.rstrip("/").partition("://")
    authority, _, path = rest.partition("/")
    if not ORIGIN.fullmatch(f"{scheme}://{authority}") or not re.fullmatch(
        r"(?:[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*)?", path
    ):
        raise ValueError(
            f"'{text}' is no public address: write scheme, host and, if a proxy adds one, the path, for example "
            "https://data.example.com/lake"
        )
    return f"{scheme}://{authority.lower()}" + (f"/{path}" if path else "")


def _url(secret: Secret) -> Secret:
    url = secret.reveal()
    if url.startswith("postgres://"):  # libpq also accepts this spelling
        url = f"postgresql://{url.removeprefix('postgres://')}"
    scheme, mark, _ = url.partition(":")
    if not mark or not url.startswith(tuple(f"{each}:" for each in SCHEMES)):
        named = f"the scheme '{scheme}' is not supported" if url.startswith(f"{scheme}://") else "it is no database URL"
        raise ValueError(f"{named}; write postgresql://user@host/name or sqlite:///file")
    try:
        urlsplit(url).port  # noqa: B018 - reading it checks it
    except ValueError:
        raise ValueError(
            "it is no URL: write a password's : / ? # [ ] @ and % as %3A %2F %3F %23 %5B %5D %40 %25, and the port as a number"
        ) from None
    return Secret(url)


def _view_bytes(count: int) -> int:
    if count < VIEW_BYTES_MIN:
        raise ValueError(
            f"{count} bytes are too few: what one request needs would push out what the next one needs;"
            f" give at least {VIEW_BYTES_MIN} (16 MiB)"
        )
    return count


Listen = Annotated[str, AfterValidator(_listen)]
HostName = Annotated[str, AfterValidator(_host_name)]
Origin = Annotated[str, AfterValidator(_origin)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]
ViewBytes = Annotated[int, AfterValidator(_view_bytes)]


class ServerSection(SettingsSection):
    """Where the server listens and keeps its data, and its limits."""

    data: str = Field(
        default="./limnos-data",
        min_length=1,
        description="Directory of the embedded database, warehouse and admin token.",
    )
    listen: Listen | None = Field(
        default=None,
        description="HOST:PORT to serve on, only there. Unset: 127.0.0.1:8090, and 127.0.0.1:9001 and :9101 when free.",
    )
    insecure_listen: bool = Field(
        default=False, description="Allow listening beyond loopback although nobody has to prove who they are."
    )
    bare: bool = Field(default=False, description="Leave an empty store empty: make no metalake, no catalog.")
    admin: User = Field(
        default="admin", description="The first service admin, who owns what is made on an empty store."
    )
    metalake: Annotated[str, AfterValidator(check_metalake_name)] = Field(
        default="lake", description="Metalake made on an empty store, and used where a protocol names none."
    )
    catalog: Annotated[str, AfterValidator(check_catalog_name)] = Field(
        default="main", description="Catalog made on an empty store, and used where a protocol names none."
    )
    hosts: Annotated[tuple[HostName, ...], Words] = Field(
        default=(),
        description="Host names that requests may be addressed to, beside those of loopback and the listen address; "
        "`*.example.com` for all below one, `*` for any; separated by commas.",
    )
    origins: Annotated[tuple[Origin, ...], Words] = Field(
        default=(),
        description="Origins whose pages may call this server from a browser, beside its own: scheme, host and port, as "
        "`https://console.example.com`; separated by commas.",
    )
    public_url: PublicUrl | None = Field(
        default=None,
        description="The address at which browsers find this server behind a proxy, as `https://data.example.com/lake`: the "
        "prefix of the console's links, and the origin of its pages. Unset: the requests' own Host, without a prefix.",
    )
    head_timeout_s: PositiveFloat = Field(
        default=10.0, description="Longest time for the head of a request to arrive, in seconds."
    )
    body_timeout_s: PositiveFloat = Field(
        default=30.0,
        description="Longest time for the body of a request to arrive, in seconds, or for each mebibyte of a long one.",
    )
    body_bytes_max: PositiveInt = Field(
        default=33_554_432,
        description="Largest request body, in bytes: of commits and new tables; other routes take a megabyte or 64 KiB at most.",
    )
    request_timeout_s: PositiveFloat = Field(default=30.0, description="Longest time for one request, in seconds.")
    workers: Annotated[int, Field(ge=1, le=200)] = Field(
        default=1, description="Processes that serve, at one address and from one store: one for each core to use."
    )
    chore_processes_max: PositiveInt = Field(
        default=2,
        description="Most processes for heavy work on metadata; started when there is some, ended after a minute.",
    )
    lane: bool = Field(
        default=True, description="Answer ordinary requests straight from the connection, without ASGI in between."
    )
    kept_bytes_max: NonNegativeInt = Field(
        default=33_554_432,
        description="How much memory finished answers about tables may take that are kept whole and sent again while they "
        "hold, in bytes; 0 keeps none.",
    )
    drain_timeout_s: NonNegativeFloat = Field(
        default=5.0,
        description="Within how many seconds a stopping server is gone (1 at least); four fifths are for requests in flight.",
    )


class ConsoleSection(SettingsSection):
    """The console: pages for people."""

    enabled: bool = Field(default=True, description="Serve the console under `/console`.")
    idle_s: PositiveInt = Field(
        default=28_800,
        description="After how many seconds without a click a session of the console ends; over http an hour at most.",
    )
    session_s: PositiveInt = Field(
        default=86_400, description="The longest time a session of the console lasts, in seconds."
    )


class TlsSection(SettingsSection):
    """TLS on the server's own addresses: both settings, or neither."""

    certificate: str | None = Field(
        default=None,
        description="PEM file of the server's certificate, with those between it and its authority behind it. Unset: no TLS.",
    )
    key: str | None = Field(
        default=None,
        description="PEM file of the certificate's key, without a password. Both are read again when they change.",
    )

    @model_validator(mode="after")
    def _is_pair(self) -> TlsSection:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("tls.certificate and tls.key belong together: set both, or neither")
        return self


class DatabaseSection(SettingsSection):
    """Which store the server uses."""

    url: Annotated[SecretText, AfterValidator(_url)] | None = Field(
        default=None,
        description="postgresql:// or sqlite:// URL of the store. Unset: an SQLite file under `server.data`.",
    )
    pool_max: PositiveInt = Field(
        default=8, description="Most database connections of this process for writes, and as many again for reads."
    )
    silence_s: PositiveFloat = Field(
        default=1.5,
        description="PostgreSQL may be silent for so many seconds before it is asked whether it still works, on a fresh connection.",
    )


class NamesSection(SettingsSection):
    """How nested namespaces are spelled where a protocol has one string for them."""

    separator: str = Field(default=":", description="One character between the parts of a nested namespace.")
    separator_policy: Literal["restricted", "unrestricted"] = Field(
        default="restricted",
        description="`restricted` allows only : ; $ as separator; `unrestricted` nearly any character.",
    )

    @model_validator(mode="after")
    def _separator_fits(self) -> NamesSection:
        check_separator(self.separator, policy=self.separator_policy)
        return self


def _catalog_or_none(name: str) -> str:
    return check_catalog_name(name) if name else name


class IcebergSection(SettingsSection):
    """Iceberg REST."""

    verify_metadata_file: Literal["local", "always", "never"] = Field(
        default="local",
        description="Look whether a table's metadata file still exists: for file: locations, always, never.",
    )
    idempotency_lifetime_s: NonNegativeInt = Field(
        default=1800,
        description="How long a request with an `Idempotency-Key` may be repeated, in seconds; 0: keys are not looked at.",
    )
    report_retention_s: NonNegativeInt = Field(
        default=604_800,
        description="How long reports of clients about scans and commits are kept, in seconds, a thousand per table at most; "
        "0: not at all.",
    )
    report_sample: float = Field(default=1.0, ge=0.0, le=1.0, description="Which part of such reports is kept.")
    keep_pinned: bool = Field(
        default=True,
        description="Refuse (409) commits that remove snapshots which a pipeline run that runs or is held, or a scan plan that has not expired, needs.",
    )
    check_added_files: bool = Field(
        default=False,
        description="Look for the files that a commit adds before it is made, and refuse (400) a commit that names one which is missing or lies outside of the "
        "table's location and data paths.",
    )
    check_added_files_max: PositiveInt = Field(
        default=1_000,
        description="How many files of one request are looked for; the rest is taken as it is, which the log and `limnos_commit_files_total` tell.",
    )
    check_added_files_s: PositiveFloat = Field(
        default=10.0,
        description="How long one request waits for that, in seconds; what was not looked for by then is taken as it is.",
    )
    clock_ahead_s: float = Field(
        default=30.0,
        ge=0.0,
        le=60.0,
        description="How far the time of a new snapshot or view version may be ahead of the store's clock, in seconds; a commit with a later one is 400. "
        "Iceberg's Java library refuses every later commit that is more than a minute behind the last one.",
    )


_HOUR_S: Final = 3600


def _never_or_an_hour(seconds: int) -> int:
    if seconds != 0 and seconds < _HOUR_S:
        raise ValueError(f"write 0, or {_HOUR_S} at least")
    return seconds


class LanceSection(SettingsSection):
    """Lance REST."""

    catalog: Annotated[str, AfterValidator(_catalog_or_none)] = Field(
        default="lance", description="Catalog for Lance tables made on an empty store; empty: none is made."
    )
    root_schema: Annotated[str, AfterValidator(check_part)] = Field(
        default="default",
        description="Schema in which Gravitino's names have the tables that lie directly in a catalog, as only Lance's may.",
    )
    workers_max: PositiveInt = Field(
        default=4,
        description="Most processes that work on Lance tables; started when there is something to do, ended after a minute. "
        "One table, and one caller, may have half of them, and one is left for short questions.",
    )
    worker_bytes_max: PositiveInt = Field(
        default=2_147_483_648,
        description="How much memory such a process may have, in bytes: one that has more is ended, and its request refused.",
    )
    batch_bytes_max: PositiveInt = Field(
        default=536_870_912,
        description="Largest batch of rows that is taken, in bytes when it is decoded; a process has about three times as much for it.",
    )
    body_bytes_max: NonNegativeInt = Field(
        default=0, description="Most bytes of rows in one request; 0: as many as come within the time."
    )
    data_timeout_s: PositiveFloat = Field(
        default=600.0, description="Longest time for one request that reads or writes rows, in seconds."
    )
    debris_age_s: Annotated[int, AfterValidator(_never_or_an_hour)] = Field(
        default=604_800,
        description="How old files of Lance tables are that go when no version knows them, in seconds: what killed writers left, and what was "
        "moved aside. Longer than any writer takes, 3600 at least; 0: none goes.",
    )


class SqlppSection(SettingsSection):
    """SQL++, at `/query/service`."""

    enabled: bool = Field(default=True, description="Serve SQL++; `off` leaves it out.")
    catalog: Annotated[str, AfterValidator(check_part)] = Field(
        default="main", description="Catalog of the server's metalake in which dataverses lie, as its namespaces."
    )
    workers_max: PositiveInt = Field(
        default=2,
        description="Most processes that work out queries over constants and metadata; started when there is such a one. No user's take the last one.",
    )
    file_roots: Annotated[tuple[Root, ...], Words] = Field(
        default=(),
        description="Directories below which LOAD and external datasets may read files; unset: none. Separated by commas.",
    )
    timeout_s: PositiveFloat = Field(
        default=300.0, description="Longest time for one request's statements, in seconds; a request may ask for less."
    )
    results_max: PositiveInt = Field(
        default=32,
        description="Most results that are made or kept for one user to be fetched later (`mode` deferred or async).",
    )
    results_bytes_max: PositiveInt = Field(
        default=1 << 27, description="Most bytes of such results that are kept for one user, in the store."
    )
    results_keep_s: PositiveInt = Field(
        default=3600, description="How long such a result can be fetched, in seconds after it was made."
    )

    compact_files: NonNegativeInt = Field(
        default=64,
        description="A dataset that has so many files more than its size asks for is compacted after the statement that made them; 0: none is.",
    )
    snapshots_keep_s: int = Field(
        default=86_400,
        ge=600,
        description="How long a dataset's former states can be read by other engines, in seconds, 600 at least: older ones go when it is compacted. "
        "Its branches and tags stay.",
    )
    debris_age_s: Annotated[int, AfterValidator(_never_or_an_hour)] = Field(
        default=259_200,
        description="How old files of a dataset are that go when it is compacted and no state of it knows them, in seconds: what killed statements "
        "left. Longer than any statement takes, 3600 at least; 0: none goes.",
    )


HEAP_MIB_MIN = 450
"""Spark refuses to start with a smaller heap: it reserves 300 MiB and needs half as much again."""
HEAP_DEFAULT = "1g"


def _heap(text: str) -> str:
    """Parse a heap size that Spark can start with and that this machine has.

    The default is not checked against the machine.
    """
    if text == HEAP_DEFAULT:
        return text
    size = int(text[:-1]) << (10 if text[-1] == "g" else 0)
    has = memory_bytes() >> 20
    if not HEAP_MIB_MIN <= size <= has:
        raise ValueError(
            f"'{text}' is not between {HEAP_MIB_MIN}m, which Spark needs, and {has}m, which this machine has"
        )
    return text


class EngineSection(SettingsSection):
    """The engine of SQL++: a process with Spark, started when a statement reads or changes data."""

    master: str = Field(
        default="local",
        description="Spark master that statements run on: `local` is this machine, else a URL as `spark://host:7077`.",
    )
    memory: Annotated[str, Field(pattern="^[1-9][0-9]{0,6}[mg]$"), AfterValidator(_heap)] = Field(
        default=HEAP_DEFAULT,
        description="Memory of the engine's Java heap, as `512m` or `4g`: 450m at least, and no more than this machine has.",
    )
    slots: NonNegativeInt = Field(
        default=0,
        description="Tasks of Spark at once, of which no statement takes the last; 0: one more than there are processors, at least 3.",
    )
    statements_max: PositiveInt = Field(
        default=8,
        description="Statements that the engine works on at once; others wait. No user's take the last place.",
    )
    idle_s: PositiveFloat = Field(
        default=600.0, description="How long the engine stays when nothing is asked of it, in seconds."
    )


def _place(text: str) -> str:
    if not re.fullmatch("/[^,#]*", text):
        raise ValueError(f"'{text}' is no absolute path without ',' and '#'; write for example /srv/jobs")
    return posixpath.normpath(text)


DirectoryPaths = Annotated[tuple[Annotated[str, AfterValidator(_place)], ...], Words]


class JobsSection(SettingsSection):
    """Jobs of Gravitino's templates, which the server runs by itself in processes of their own."""

    executor: Literal["off", "local"] = Field(
        default="off",
        description="`local` runs jobs on this machine, confined to `jobs.allowed` and what follows; `off` runs none.",
    )
    allowed: DirectoryPaths = Field(
        default=(),
        description="Files, and directories with all below them, that jobs may run or be given (programs, scripts, jars, files, archives), "
        "separated by commas. Unset: none, so that no job can run.",
    )
    readable: DirectoryPaths = Field(
        default=(),
        description="Directories that jobs may read beside `jobs.allowed` and the system's own, separated by commas.",
    )
    writable: DirectoryPaths = Field(
        default=(), description="Directories that jobs may write to beside the one of their own, separated by commas."
    )
    environment: Annotated[tuple[str, ...], Words] = Field(
        default=(),
        description="Names of environment variables that templates may set, `*` for any rest as in `LOAD_*`, separated by commas. Some make "
        "programs run what they name (`PATH`, `LD_PRELOAD`, `BASH_ENV`): leave those out.",
    )
    spark_configs: Annotated[tuple[str, ...], Words] = Field(
        default=SPARK_CONFIGS,
        description="Properties of Spark that templates may set, as names or with `*`, separated by commas. Some make Spark run what they name.",
    )
    spark_submit: Annotated[str, AfterValidator(_place)] | None = Field(
        default=None,
        description="The program `spark-submit`, for templates of Spark. Unset: that of the PySpark that is installed here.",
    )
    user: str | None = Field(
        default=None,
        min_length=1,
        description="User of this machine that jobs run as, which takes a server that was started by root. Unset: the server's own.",
    )
    confined: bool = Field(
        default=True,
        description="Where the kernel cannot confine a job (Landlock, Linux 5.13 or later) and `jobs.user` is unset, refuse it; `off` runs it with all "
        "rights of the server's user to files, for programs that are trusted.",
    )
    running_max: PositiveInt = Field(default=2, description="Jobs that each serving process runs at once; others wait.")
    waiting_max: PositiveInt = Field(
        default=100, description="Jobs of one user in a metalake that wait or run; for one more the answer is 503."
    )
    timeout_s: PositiveFloat = Field(
        default=3600.0, description="Longest time for a job, in seconds; then it is ended and has failed."
    )
    memory_bytes_max: Annotated[
        PositiveInt | None, Field(description="Memory of each process of a job. Unset: no limit.")
    ] = None
    cpu_s_max: Annotated[
        PositiveInt | None, Field(description="Processor seconds of each process. Unset: no limit.")
    ] = None
    file_bytes_max: Annotated[
        PositiveInt | None, Field(description="Size of each file that it writes. Unset: no limit.")
    ] = None
    network: bool = Field(default=True, description="`off` leaves jobs no network; where that cannot be, none begins.")
    output_bytes_max: PositiveInt = Field(
        default=65_536,
        le=1 << 20,
        description="How many bytes are kept of the end of what a job writes to each of its streams.",
    )


class ViewSection(SettingsSection):
    """The in-memory view of the store."""

    bytes_max: ViewBytes = Field(
        default=268_435_456, description="Memory for cached facts, in bytes; at least 16777216 (16 MiB)."
    )
    cold_reads_max: PositiveInt = Field(default=64, description="Reads of the store at once; more are answered 503.")


class StoreSection(SettingsSection):
    """What the store keeps."""

    change_retention_s: PositiveInt = Field(
        default=604_800, description="How long changes are kept for other nodes and readers of the feed, in seconds."
    )
    trash_retention_s: NonNegativeInt = Field(
        default=604_800,
        description="How long a namespace, table or view that was dropped without its files can be brought back, in seconds; "
        "0: it is gone at once.",
    )
    run_retention_s: PositiveInt = Field(
        default=7_776_000,
        description="How long runs of pipelines are kept after they ended, in seconds; what tells of the tables' present state stays.",
    )


def _event_url(text: str) -> str:
    parts = urlsplit(text)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
    ):
        raise ValueError(
            f"'{text}' is no address to send to; write http:// or https:// with a host and, if need be, a path"
        )
    return text


class EventsSection(SettingsSection):
    """Where changes may be sent."""

    allowed_urls: Annotated[tuple[Annotated[str, AfterValidator(_event_url)], ...], Words] = Field(
        default=(),
        description="Addresses below which webhooks may lie, as `https://hooks.example.com/limnos`; unset: none may be made. "
        "Separated by commas.",
    )
    timeout_s: PositiveFloat = Field(
        default=10.0, description="Longest time for one delivery to a webhook, in seconds."
    )


class SearchSection(SettingsSection):
    """Searches."""

    words: bool = Field(
        default=True,
        description="Whether this node may fill the index of words of names, columns and comments. Without a node that"
        " does, searches find whole names and their starts only.",
    )


class LogSection(SettingsSection):
    """Logs, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe level to log."
    )
    format: Literal["auto", "json", "console"] = Field(
        default="auto", description="`auto` is `console` on a terminal and `json` elsewhere."
    )


class TelemetrySection(SettingsSection):
    """What the server says about its requests."""

    request_log: Literal["all", "refusals", "none"] = Field(
        default="all",
        description="Which requests get a line in the log, at level `info`: all, those answered with 400 or more, none.",
    )
    request_log_sample: float = Field(
        default=1.0, ge=0.0, le=1.0, description="Which part of the requests that were not refused gets a line."
    )


class SparkSection(SettingsSection):
    """Where Spark's jars come from."""

    repository: str | None = Field(default=None, description="Maven repository URL for jars. Unset: Maven Central.")
    cache: str | None = Field(
        default=None, description="Directory of fetched jars. Unset: in the user's cache directory."
    )


class Settings(BaseSettings):
    """Every setting, checked and frozen. Build it with `loading.load`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)

    server: ServerSection = ServerSection()
    tls: TlsSection = TlsSection()
    console: ConsoleSection = ConsoleSection()
    database: DatabaseSection = DatabaseSection()
    access: AccessSection = AccessSection()
    oidc: OidcSection = OidcSection()
    names: NamesSection = NamesSection()
    storage: StorageSection = StorageSection()
    sources: SourcesSection = SourcesSection()
    iceberg: IcebergSection = IcebergSection()
    lance: LanceSection = LanceSection()
    sqlpp: SqlppSection = SqlppSection()
    engine: EngineSection = EngineSection()
    planning: PlanningSection = PlanningSection()
    maintenance: MaintenanceSection = MaintenanceSection()
    jobs: JobsSection = JobsSection()
    view: ViewSection = ViewSection()
    store: StoreSection = StoreSection()
    events: EventsSection = EventsSection()
    search: SearchSection = SearchSection()
    audit: AuditSection = AuditSection()
    log: LogSection = LogSection()
    telemetry: TelemetrySection = TelemetrySection()
    spark: SparkSection = SparkSection()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read values only from the constructor, because `loading` has already combined the layers."""
        return (init_settings,)

    @model_validator(mode="after")
    def _shows_no_password(self) -> Settings:
        if named := list(dict.fromkeys(open_passwords(self))):
            raise ValueError(
                f"setting '{named[0]}' holds a password inside a URL, and its value is shown in logs and reports: leave user and password out"
            )
        return self

    @model_validator(mode="after")
    def _listens_safely(self) -> Settings:
        if self.server.listen is None or self.server.insecure_listen:
            return self
        host, _ = split_listen(self.server.listen)
        proven = self.access.enabled and self.access.authentication == "token"
        if not proven and not is_loopback(host):
            raise ValueError(
                f"server.listen {self.server.listen} can be reached from other machines, but callers need not prove "
                "who they are; set access.authentication to token (and access on), listen on 127.0.0.1, "
                "or add --insecure-listen"
            )
        return self


def sections() -> dict[str, type[SettingsSection]]:
    """Return every section's name and model, in the order of the documentation."""
    results: dict[str, type[SettingsSection]] = {}
    for name, field in Settings.model_fields.items():
        model = field.annotation
        if isinstance(model, type) and issubclass(model, SettingsSection):
            results[name] = model
    return results


def keys() -> tuple[str, ...]:
    """Return every setting as `section.key`, in the order of the documentation."""
    return tuple(f"{name}.{key}" for name, model in sections().items() for key in model.model_fields)


def is_secret(key: str) -> bool:
    """Return whether a setting, `section.key`, has a type that hides its text."""
    section, _, name = key.partition(".")
    model = sections().get(section)
    field = None if model is None else model.model_fields.get(name)
    return field is not None and holds_secret(field.annotation, field.metadata)
