# SPDX-License-Identifier: Apache-2.0
"""The settings of a server: the model of all sections, several of the sections, and checks across sections.

Must not know the origins of values, which `loading` knows: building `Settings` never reads the environment or a file.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, InstanceOf, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.functional_validators import AfterValidator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from limnos.config.access import AccessSection, OidcSection
from limnos.config.audit import AuditSection
from limnos.config.engine import EngineSection, SqlppSection
from limnos.config.jobs import JobsSection
from limnos.config.maintenance import MaintenanceSection
from limnos.config.planning import PlanningSection
from limnos.config.room_settings import RoomsSection, added_sections, unknown_rooms
from limnos.config.secrets import SecretText, holds_secret, open_passwords
from limnos.config.section import SettingsSection
from limnos.config.server import ConsoleSection, ServerSection, TlsSection
from limnos.config.storage import SourcesSection, StorageSection
from limnos.config.values import Words, is_loopback, require_zero_or_an_hour, split_listen
from limnos.model.errors import LimnosError
from limnos.model.secrets import Secret
from limnos.names.logical import check_separator
from limnos.names.path import check_catalog_name, check_part

VIEW_BYTES_MIN = 16 << 20
"""The minimum size of the view: a smaller one would spend its time reloading facts that it has just evicted."""
SCHEMES = ("sqlite", "postgresql")
"""URL schemes of databases that a server can use."""


class ConfigError(LimnosError):
    """Raised for settings that cannot be used: unknown key, wrong value, unreadable file. The message has the
    correction.
    """

    code = "config"


def _url(secret: Secret) -> Secret:
    url = secret.reveal()
    if url.startswith("postgres://"):  # libpq also accepts this spelling
        url = f"postgresql://{url.removeprefix('postgres://')}"
    scheme, mark, _ = url.partition(":")
    if not mark or not url.startswith(tuple(f"{each}:" for each in SCHEMES)):
        problem_text = (
            f"the scheme '{scheme}' is not supported" if url.startswith(f"{scheme}://") else "it is not a database URL"
        )
        raise ValueError(f"{problem_text}; write postgresql://user@host/name or sqlite:///file")
    try:
        urlsplit(url).port  # noqa: B018 - reading it checks it
    except ValueError:
        raise ValueError(
            "it is not a URL: write a password's : / ? # [ ] @ and % as %3A %2F %3F %23 %5B %5D %40 %25, and the port"
            " as a number"
        ) from None
    return Secret(url)


def _view_bytes(count: int) -> int:
    if count < VIEW_BYTES_MIN:
        raise ValueError(
            f"{count} bytes are too few: each request would evict the entries of the next one;"
            f" give at least {VIEW_BYTES_MIN} (16 MiB)"
        )
    return count


ViewBytes = Annotated[int, AfterValidator(_view_bytes)]


class DatabaseSection(SettingsSection):
    """The database in which the server stores its metadata."""

    url: Annotated[SecretText, AfterValidator(_url)] | None = None
    """postgresql:// or sqlite:// URL of the store. Unset: an SQLite file under `server.data`."""
    pool_max: PositiveInt = 8
    """The maximum number of database connections of this process for writes, and the same number for reads."""
    silence_s: PositiveFloat = 1.5
    """The seconds without an answer from PostgreSQL after which the server checks on a new connection whether it still
    works. A new connection must open in the same time, or in two seconds if that is longer.
    """


class NamesSection(SettingsSection):
    """The separator by which nested namespaces are written in protocols that have one string for a namespace."""

    separator: str = ":"
    """One character between the parts of a nested namespace."""
    separator_policy: Literal["restricted", "unrestricted"] = "restricted"
    """`restricted` allows only : ; $ as the separator; `unrestricted` allows nearly any character."""

    @model_validator(mode="after")
    def _separator_fits(self) -> NamesSection:
        check_separator(self.separator, policy=self.separator_policy)
        return self


def _catalog_or_none(name: str) -> str:
    return check_catalog_name(name) if name else name


class IcebergSection(SettingsSection):
    """Iceberg REST: checks of metadata and data files, idempotency keys, and metrics reports."""

    verify_metadata_file: Literal["local", "always", "never"] = "local"
    """Check whether a table's metadata file still exists: for file: locations, always, never."""
    idempotency_lifetime_s: NonNegativeInt = 1800
    """The time in seconds during which a request with an `Idempotency-Key` may be repeated; 0: keys are ignored."""
    report_retention_s: NonNegativeInt = 604_800
    """The retention time of clients' reports about scans and commits, in seconds, at most a thousand per table; 0: none
    are stored.
    """
    report_sample: float = Field(default=1.0, ge=0.0, le=1.0)
    """The fraction of such reports that is stored."""
    keep_pinned: bool = True
    """Refuse (409) commits that remove snapshots which are needed by a running or held pipeline run, or by a scan plan
    that has not expired.
    """
    keep_pinned_s: PositiveInt = 604_800
    """The time in seconds for which a pipeline run keeps the snapshots that it reads, from its start, and those that a
    step wrote, from the step's report. A held run keeps them no longer.
    """
    check_added_files: bool = False
    """Check before a commit that the files which it adds exist, and refuse it (400) if one is missing or is outside of
    the table's location and data paths.
    """
    check_added_files_max: PositiveInt = 1_000
    """The maximum number of files checked per request; further files are not checked, which the log and
    `limnos_commit_files_total` show.
    """
    check_added_files_s: PositiveFloat = 10.0
    """The maximum time for that check per request, in seconds; files not checked by then are accepted."""
    clock_ahead_s: float = Field(default=30.0, ge=0.0, le=60.0)
    """The maximum seconds by which the time of a new snapshot or view version may be ahead of the store's clock;
    commits with a later time get 400. Iceberg's Java library refuses every later commit that is more than a minute
    behind the last one.
    """


class LanceSection(SettingsSection):
    """The Lance REST protocol, and the worker processes for Lance tables."""

    catalog: Annotated[str, AfterValidator(_catalog_or_none)] = "lance"
    """Catalog for Lance tables that is created on an empty store; empty: none is created."""
    root_schema: Annotated[str, AfterValidator(check_part)] = "default"
    """Schema of Gravitino's names for tables directly in a catalog, which only Lance catalogs can have."""
    workers_max: PositiveInt = 4
    """The maximum number of processes that work on Lance tables; started on demand, ended after an idle minute. One
    table, and one caller, may use half of them, and one is reserved for short requests.
    """
    worker_bytes_max: PositiveInt = 2_147_483_648
    """The maximum memory of such a process, in bytes: a process that exceeds it is ended, and its request refused."""
    batch_bytes_max: PositiveInt = 536_870_912
    """The maximum size of a batch of rows, in bytes after decoding; a process has about three times as much memory for
    it.
    """
    body_bytes_max: NonNegativeInt = 0
    """The maximum bytes of rows in one request; 0: limited only by the request's time."""
    data_timeout_s: PositiveFloat = 600.0
    """The maximum time for one request that reads or writes rows, in seconds."""
    debris_age_s: Annotated[int, AfterValidator(require_zero_or_an_hour)] = 604_800
    """The age in seconds at which files of Lance tables are deleted if no version refers to them: files of killed
    writers, and files that were moved aside. Longer than any write takes, at least 3600; 0: none are deleted.
    """


class ViewSection(SettingsSection):
    """The in-memory view of the store."""

    bytes_max: ViewBytes = 268_435_456
    """Memory for cached facts, in bytes; at least 16777216 (16 MiB)."""
    cold_reads_max: PositiveInt = 64
    """The maximum number of concurrent reads of the store; further ones get 503."""


class StoreSection(SettingsSection):
    """The retention times of changes, dropped objects and runs in the store."""

    change_retention_s: PositiveInt = 604_800
    """The retention time of changes for other nodes and readers of the change feed, in seconds."""
    trash_retention_s: NonNegativeInt = 604_800
    """The time in seconds for which a dropped namespace, table or view can be restored if its files were not purged; 0:
    it cannot be restored.
    """
    run_retention_s: PositiveInt = 7_776_000
    """The retention time of ended pipeline runs, in seconds; records about the tables' present state are kept."""


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
            f"'{text}' is not the URL of a receiver; write http:// or https:// with a host and, if need be, a path"
        )
    return text


class EventsSection(SettingsSection):
    """The URLs to which webhooks may send changes."""

    allowed_urls: Annotated[tuple[Annotated[str, AfterValidator(_event_url)], ...], Words] = ()
    """URLs below which webhooks may be, as `https://hooks.example.com/limnos`; unset: no webhooks can be created.
    Separated by commas.
    """
    timeout_s: PositiveFloat = 10.0
    """The maximum time for one delivery to a webhook, in seconds."""


class SearchSection(SettingsSection):
    """Full-text search: whether this node fills the search index."""

    words: bool = True
    """Whether this node may maintain the search index of words in names, columns and comments. Without such a node,
    searches find only whole names and prefixes of names.
    """


class LogSection(SettingsSection):
    """The log, which is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe level that is logged."""
    format: Literal["auto", "json", "console"] = "auto"
    """`auto` is `console` on a terminal and `json` elsewhere."""
    libraries: Annotated[tuple[str, ...], Words] = ()
    """Loggers of libraries that log from `log.level` on, separated by commas, such as `sqlalchemy.pool`. All others log
    warnings and errors only. Those of HTTP and cloud libraries never log `debug`, which would contain credentials.
    """


class TelemetrySection(SettingsSection):
    """The request log: one line for each request."""

    request_log: Literal["all", "refusals", "none"] = "all"
    """Which requests are logged, at level `info`: all, those with status 400 or higher, or none."""
    request_log_sample: float = Field(default=1.0, ge=0.0, le=1.0)
    """The fraction of successful requests that is logged."""


class SparkSection(SettingsSection):
    """The source and the cache of the jar files that Spark needs."""

    repository: str | None = None
    """Maven repository URL for jars. Unset: Maven Central."""
    cache: str | None = None
    """Directory of fetched jars. Unset: the user's cache directory."""


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
    rooms: RoomsSection = RoomsSection()
    added: dict[str, InstanceOf[SettingsSection]] = Field(default_factory=dict)
    """The sections of rooms that other packages bring, by name."""

    def section(self, name: str) -> SettingsSection:
        """Return a section by its name. Raises KeyError for an unknown one."""
        if name in type(self).model_fields and name != "added":
            section: SettingsSection = getattr(self, name)
            return section
        return self.added[name] if name in self.added else sections()[name]()

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
        if setting_names := list(dict.fromkeys(open_passwords(self))):
            raise ValueError(
                f"setting '{setting_names[0]}' contains a password inside a URL, and its value is shown in logs and"
                " reports: leave user and password out"
            )
        return self

    @model_validator(mode="after")
    def _names_rooms(self) -> Settings:
        if wrong := unknown_rooms(self.rooms.off):
            raise ValueError(f"setting 'rooms.off': {wrong}")
        return self

    @model_validator(mode="after")
    def _listens_safely(self) -> Settings:
        check_listens_safely(self)
        return self


def check_listens_safely(settings: Settings) -> None:
    """Raise ValueError if other machines reach the server, and it does not authenticate clients."""
    server, access = settings.server, settings.access
    if server.listen is None or server.insecure_listen or is_loopback(split_listen(server.listen)[0]):
        return
    if not access.enabled or access.authentication == "simple":
        raise ValueError(
            f"server.listen {server.listen} can be reached from other machines, but clients are not authenticated; set"
            " access.authentication to token (and access on), listen on 127.0.0.1, or add --insecure-listen"
        )


def sections() -> dict[str, type[SettingsSection]]:
    """Return every section's name and model, in the order of the documentation."""
    results: dict[str, type[SettingsSection]] = {}
    for name, field in Settings.model_fields.items():
        model = field.annotation
        if isinstance(model, type) and issubclass(model, SettingsSection):
            results[name] = model
    try:
        return results | added_sections(results)
    except Exception as error:
        raise ConfigError(f"a room of another package has settings that cannot be used: {error}") from error


def keys() -> tuple[str, ...]:
    """Return every setting as `section.key`, in the order of the documentation."""
    return tuple(f"{name}.{key}" for name, model in sections().items() for key in model.model_fields)


def is_secret(key: str) -> bool:
    """Return whether a setting, `section.key`, has a type that hides its value."""
    section, _, name = key.partition(".")
    model = sections().get(section)
    field = None if model is None else model.model_fields.get(name)
    return field is not None and holds_secret(field.annotation, field.metadata)
