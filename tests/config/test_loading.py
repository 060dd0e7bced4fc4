# SPDX-License-Identifier: Apache-2.0
"""Sources of settings: their precedence, the origin of each value, and refusals with advice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from limnos.config import ConfigError, Settings, load
from limnos.config.report import rows
from limnos.config.settings import keys
from limnos.config.storage import StorageSection
from limnos.config.values import is_loopback, spark_settings, split_listen
from limnos.model.secrets import Secret


def toml(folder: Path, text: str) -> Path:
    """Write a settings file. Returns its path."""
    file = folder / "limnos.toml"
    file.write_text(text, encoding="utf-8")
    return file


def refusal(**layers: object) -> str:
    """Load invalid layers of settings. Returns the message of the refusal."""
    arguments: dict[str, object] = {"flags": {}, "file": None, "environ": {}} | layers
    with pytest.raises(ConfigError) as caught:
        load(**arguments)  # type: ignore[arg-type]
    return caught.value.message


def test_defaults_are_in_effect_without_layers() -> None:
    """Without any layer every setting has its default, with the default as origin."""
    loaded = load(flags={}, file=None, environ={})

    assert loaded.settings == Settings()
    assert loaded.settings.server.data == "./limnos-data"
    assert loaded.settings.server.body_bytes_max == 33_554_432
    assert loaded.settings.access.authentication is None
    assert set(loaded.origins) == set(keys())
    assert set(loaded.origins.values()) == {"default"}


def test_flag_beats_environment_beats_file(tmp_path: Path) -> None:
    """If every layer sets a key, the flag has precedence, then the environment, then the file."""
    file = toml(tmp_path, '[server]\ndata = "file"\nadmin = "file"\nmetalake = "file"\n')
    environ = {"LIMNOS__SERVER__DATA": "environment", "LIMNOS__SERVER__ADMIN": "environment"}

    loaded = load(flags={"server.data": "flag", "server.admin": None}, file=file, environ=environ)

    server = loaded.settings.server
    assert (server.data, server.admin, server.metalake) == ("flag", "environment", "file")
    assert loaded.origins["server.data"] == "flag --data"
    assert loaded.origins["server.admin"] == "environment LIMNOS__SERVER__ADMIN"
    assert loaded.origins["server.metalake"] == f"file {file}"
    assert loaded.origins["server.catalog"] == "default"


def test_toml_types_are_read_as_such(tmp_path: Path) -> None:
    """TOML numbers, booleans, texts and lists are read as such."""
    file = toml(
        tmp_path,
        """
        [server]
        listen = "127.0.0.1:0"
        request_timeout_s = 2.5
        [access]
        enabled = false
        service_admins = ["ana", "ben"]
        [iceberg]
        verify_metadata_file = "always"
        """,
    )

    settings = load(flags={}, file=file, environ={}).settings

    assert settings.server.listen == "127.0.0.1:0"
    assert settings.server.request_timeout_s == 2.5
    assert settings.access.enabled is False
    assert settings.access.service_admins == ("ana", "ben")
    assert settings.iceberg.verify_metadata_file == "always"


def test_environment_texts_become_values() -> None:
    """Texts in environment variables are converted to numbers, booleans and lists."""
    environ = {
        "LIMNOS__ACCESS__ENABLED": "off",
        "LIMNOS__ACCESS__SERVICE_ADMINS": "ana, ben,",
        "LIMNOS__VIEW__BYTES_MAX": "33554432",
        "LIMNOS__LOG__LEVEL": "debug",
        "limnos__store__change_retention_s": "60",
    }

    settings = load(flags={}, file=None, environ=environ).settings

    assert settings.access.enabled is False
    assert settings.access.service_admins == ("ana", "ben")
    assert settings.view.bytes_max == 33554432
    assert settings.log.level == "debug"
    assert settings.store.change_retention_s == 60


def test_empty_variable_counts_as_unset() -> None:
    """An empty variable, as compose files produce it, counts as unset."""
    loaded = load(flags={}, file=None, environ={"LIMNOS__DATABASE__URL": ""})

    assert loaded.settings.database.url is None
    assert loaded.origins["database.url"] == "default"


def test_command_line_variables_are_not_settings() -> None:
    """Variables of the command line itself, with one underscore, are not settings."""
    loaded = load(flags={}, file=None, environ={"LIMNOS_URI": "http://h", "LIMNOS_TOKEN": "t", "PATH": "/bin"})

    assert loaded.settings == Settings()


def test_settings_never_read_the_process_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the mapping given to `load` is used, not the environment of the process."""
    monkeypatch.setenv("SERVER", '{"data": "elsewhere"}')
    monkeypatch.setenv("LIMNOS__SERVER__DATA", "elsewhere")

    assert Settings().server.data == "./limnos-data"
    assert load(flags={}, file=None, environ={}).settings.server.data == "./limnos-data"


def test_settings_are_frozen() -> None:
    """A loaded setting cannot be changed."""
    settings = Settings()

    with pytest.raises(ValidationError, match="frozen"):
        settings.server.data = "elsewhere"


@pytest.mark.parametrize(
    "environ,expected",
    [
        ({"LIMNOS__SERVER__DATE": "x"}, "did you mean 'server.data'?"),
        ({"LIMNOS__SRVER__BARE": "1"}, "did you mean 'server.bare'?"),
        ({"LIMNOS__POOL_MAX": "1"}, "did you mean 'database.pool_max'?"),
        ({"LIMNOS__SERVER__POOL_MAX": "1"}, "did you mean 'database.pool_max'?"),
        ({"LIMNOS__SERVER__DATA__DIR": "x"}, "did you mean 'server.data'?"),
        ({"LIMNOS__ZZZ__QQQ": "1"}, "'limnos server config' lists every setting"),
    ],
)
def test_unknown_variable_is_refused_with_nearest(environ: dict[str, str], expected: str) -> None:
    """An unknown variable is refused by name, with the most similar setting."""
    message = refusal(environ=environ)

    assert next(iter(environ)) in message
    assert expected in message


def test_all_unknown_keys_are_reported_together(tmp_path: Path) -> None:
    """All unknown keys of a file are named together, each with the file."""
    file = toml(tmp_path, "[server]\nlissen = 1\n[logs]\nlevel = 'info'\n")

    message = refusal(file=file)

    assert "unknown setting 'server.lissen'" in message
    assert "did you mean 'server.listen'?" in message
    assert "unknown setting 'logs.level'" in message
    assert message.count(str(file)) == 2


def test_unknown_keys_and_wrong_values_are_reported_together(tmp_path: Path) -> None:
    """A file with an unknown key and a wrong value is refused with both."""
    message = refusal(file=toml(tmp_path, "[server]\nlissen = 1\n[audit]\nreads = 'on'\n"))

    assert "unknown setting 'server.lissen'" in message
    assert "setting 'audit.reads'" in message


def test_data_directory_beside_the_current_one_is_resolved() -> None:
    """A data directory with `..` is stored without, because locations of tables have none; other texts stay."""
    loaded = load(flags={"server.data": "../own"}, file=None, environ={})

    assert loaded.settings.server.data == str(Path("../own").resolve())
    assert load(flags={"server.data": "./own"}, file=None, environ={}).settings.server.data == "./own"


def test_key_outside_a_section_is_refused(tmp_path: Path) -> None:
    """A key at the top level of a file is refused with the section to which it belongs."""
    message = refusal(file=toml(tmp_path, 'listen = "127.0.0.1:1"\n'))

    assert "'listen' is outside of a section" in message
    assert "did you mean 'server.listen'?" in message


def test_missing_file_is_reported(tmp_path: Path) -> None:
    """The error for a missing settings file names the flag."""
    assert "check --config" in refusal(file=tmp_path / "none.toml")


def test_directory_instead_of_file_is_reported(tmp_path: Path) -> None:
    """If the settings file is a directory, the error has its path."""
    assert f"'{tmp_path}' cannot be read" in refusal(file=tmp_path)


def test_invalid_toml_is_reported_with_its_line(tmp_path: Path) -> None:
    """The error for an invalid TOML file has the line that the parser reports."""
    assert "line 2" in refusal(file=toml(tmp_path, "[server]\ndata = = 1\n"))


@pytest.mark.parametrize(
    "name,value,expected",
    [
        ("SERVER__BODY_BYTES_MAX", "lots", "'server.body_bytes_max' (environment LIMNOS__SERVER__BODY_BYTES_MAX)"),
        ("SERVER__BODY_BYTES_MAX", "0", "greater than 0"),
        ("SERVER__LISTEN", "8090", "is not HOST:PORT"),
        ("SERVER__LISTEN", "::1:8090", "put an IPv6 address in brackets"),
        ("SERVER__LISTEN", "127.0.0.1:70000", "port from 0 to 65535"),
        ("SERVER__METALAKE", "a.b", "'a.b'"),
        ("SERVER__CATALOG", "system", "reserved"),
        ("SERVER__ADMIN", "a:b", "not a user name"),
        ("ACCESS__SERVICE_ADMINS", "ana,b:c", "not a user name"),
        ("ACCESS__ENABLED", "perhaps", "boolean"),
        ("ACCESS__AUTHENTICATION", "none", "'simple' or 'token'"),
        ("DATABASE__URL", "mysql://h/d", "'mysql' is not supported"),
        ("NAMES__SEPARATOR", ".", "not allowed"),
        ("NAMES__SEPARATOR", "::", "not allowed"),
        ("NAMES__SEPARATOR", "-", "not allowed"),
        ("VIEW__BYTES_MAX", "2000", "2000 bytes are too few: each request"),
        ("ENGINE__MEMORY", "400m", "'400m' is not between 450m, which Spark needs, and"),
        ("ENGINE__MEMORY", "449m", "'449m' is not between 450m, which Spark needs, and"),
        ("ENGINE__MEMORY", "200000g", "m, which this machine has"),
        ("ENGINE__MEMORY", "lots", "'engine.memory'"),
        ("LOG__LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
    ],
)
def test_wrong_value_is_refused(name: str, value: str, expected: str) -> None:
    """An invalid value is refused with a description of the valid ones."""
    assert expected in refusal(environ={f"LIMNOS__{name}": value})


@pytest.mark.parametrize("value,fits", [("450m", True), ("600m", True), ("601m", False), ("1g", True), ("2g", False)])
def test_the_heap_of_an_engine_fits_the_machine(value: str, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's heap is between Spark's minimum and the machine's memory, inclusive. The default is valid on small
    machines, too.
    """
    monkeypatch.setattr("limnos.config.engine.memory_bytes", lambda: 600 << 20)

    if fits:
        loaded_settings = load(flags={}, file=None, environ={"LIMNOS__ENGINE__MEMORY": value})
        assert loaded_settings.settings.engine.memory == value
    else:
        message = refusal(environ={"LIMNOS__ENGINE__MEMORY": value})
        assert (
            message
            == f"setting 'engine.memory' (environment LIMNOS__ENGINE__MEMORY): '{value}' is not between 450m, which"
            " Spark needs, and 600m, which this machine has"
        )


def test_password_of_a_wrong_url_is_not_repeated() -> None:
    """The message about an invalid database URL does not contain its password."""
    assert "hunter2" not in refusal(environ={"LIMNOS__DATABASE__URL": "mysql://u:hunter2@h/d"})


def test_unrestricted_policy_accepts_other_separators() -> None:
    """Under the policy `unrestricted`, a separator outside of the short list is accepted."""
    environ = {"LIMNOS__NAMES__SEPARATOR": "-", "LIMNOS__NAMES__SEPARATOR_POLICY": "unrestricted"}

    assert load(flags={}, file=None, environ=environ).settings.names.separator == "-"


@pytest.mark.parametrize(
    "more",
    [{"access.authentication": "simple"}, {"access.enabled": "off", "access.authentication": "token"}],
    ids=["simple", "off"],
)
def test_public_address_requires_authentication_or_insecure(more: dict[str, object]) -> None:
    """Listening beyond loopback is refused while callers need not authenticate, and the message has the remedy."""
    message = refusal(flags={"server.listen": "0.0.0.0:8090"} | more)

    assert "--insecure-listen" in message


@pytest.mark.parametrize(
    "flags",
    [
        {"server.listen": "0.0.0.0:8090", "server.insecure_listen": True},
        {"server.listen": "0.0.0.0:8090", "access.authentication": "token"},
        {"server.listen": "0.0.0.0:8090"},
        {"server.listen": "[::1]:0"},
        {"server.listen": "localhost:8090"},
    ],
)
def test_safe_address_is_accepted(flags: dict[str, object]) -> None:
    """The server can listen on loopback, or with token authentication, or with the flag that has `insecure` in its
    name.
    """
    assert load(flags=flags, file=None, environ={}).settings.server.listen == flags["server.listen"]


@pytest.mark.parametrize(
    "text,host,port",
    [("127.0.0.1:8090", "127.0.0.1", 8090), ("[::1]:0", "::1", 0), ("example.org:65535", "example.org", 65535)],
)
def test_listen_is_split_into_host_and_port(text: str, host: str, port: int) -> None:
    """HOST:PORT is split into its parts, without the brackets of IPv6."""
    assert split_listen(text) == (host, port)


@pytest.mark.parametrize(
    "host,expected",
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("LOCALHOST", True), ("0.0.0.0", False), ("h", False)],
)
def test_loopback_is_recognised(host: str, expected: bool) -> None:
    """Only addresses that no other machine can reach are loopback."""
    assert is_loopback(host) is expected


def test_postgres_scheme_is_accepted() -> None:
    """`postgres://` is accepted as `postgresql://`."""
    loaded_settings = load(flags={"database.url": "postgres://u@h/d"}, file=None, environ={})

    assert loaded_settings.settings.database.url == Secret("postgresql://u@h/d")


@pytest.mark.parametrize("wrong", ["tables", "s3://", "file:///", "/", "file:", "file:/"])
def test_warehouse_must_name_a_place(wrong: str) -> None:
    """A warehouse without scheme, bucket or directory is refused."""
    with pytest.raises(ConfigError, match=r"storage\.warehouse"):
        load(flags={"storage.warehouse": wrong}, file=None, environ={})


def test_storages_are_tables_below_their_section(tmp_path: Path) -> None:
    """`[storage.NAME]` tables stand beside the section's own settings. The environment has them as JSON."""
    file = tmp_path / "limnos.toml"
    file.write_text('[storage]\ntimeout_s = 7\n[storage.big]\nlocations = "s3://b"\n"s3.path-style-access" = true\n')
    storage = load(flags={}, file=file, environ={}).settings.storage
    assert storage.timeout_s == 7
    assert storage.named == {"big": {"locations": Secret("s3://b"), "s3.path-style-access": Secret("true")}}

    environment = {"LIMNOS__STORAGE__NAMED": '{"small": {"locations": "s3://s"}}'}
    assert load(flags={}, file=None, environ=environment).settings.storage.named == {
        "small": {"locations": Secret("s3://s")}
    }


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("NAMED", "hunter2", "it is not JSON"),
        ("NAMED", '["hunter2"]', "it is not a table of storages"),
        ("NAMED", '{"b": {"s3.secret-access-key": "hunter2"}}', "storage 'b' has no 'locations'"),
        ("NAMED", '{"b": {"locations": " ", "s3.secret-access-key": "hunter2"}}', "storage 'b' has no 'locations'"),
        ("NAMED", '{"b": ["hunter2"]}', "storage 'b' is not a table"),
        ("NAMED", '{"b c": {"locations": "hunter2"}}', "'b c' is not a name of a storage"),
        ("KEYS", "hunter2", "a key is 32 bytes in base64"),
    ],
)
def test_errors_and_representations_contain_no_secret(name: str, value: str, message: str) -> None:
    """Errors about keys and storages do not contain their values, nor do representations of valid ones."""
    with pytest.raises(ConfigError) as refused:
        load(flags={}, file=None, environ={f"LIMNOS__STORAGE__{name}": value})
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)

    key = "h" * 43 + "="
    environ = {
        "LIMNOS__STORAGE__KEYS": key,
        "LIMNOS__STORAGE__NAMED": '{"b": {"locations": "s3://b", "token": "hunter2"}}',
    }
    loaded = load(flags={}, file=None, environ=environ)
    shown_values = {row.key: row.value for row in rows(loaded)}
    assert (shown_values["storage.keys"], shown_values["storage.named"]) == ("*****", "b")
    assert "hunter2" not in repr(loaded)
    assert key not in repr(loaded)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://minio:9000/path",
        "http://minio:9000/a/",
        "http://minio:9000?x=1",
        "http://minio:9000\t",
        "http://min\tio:9000",
        "http://minio:9000 ",
        "http://minio:9000\n",
        "ftp://minio",
        "http://",
        "minio:9000",
    ],
)
def test_endpoint_with_more_than_host_and_port_is_refused(endpoint: str) -> None:
    """An allowed endpoint is a scheme, a host and perhaps a port: a path, a query, spaces and control characters are
    refused, not ignored.
    """
    with pytest.raises(ValueError, match=r"minio|http://|ftp"):
        StorageSection(allowed_endpoints=(endpoint,))
    assert StorageSection(allowed_endpoints=("http://minio:9000", "https://s3.example.com/")).allowed_endpoints


def test_spark_settings_are_lists_of_keys_and_values(tmp_path: Path) -> None:
    """Settings of Spark for a cluster come from an environment variable, or from a list in a file, whose values may
    have commas.
    """
    file = toml(tmp_path, '[maintenance]\nexecutor_conf = ["spark.cores.max=2", "spark.jars=a.jar,b.jar"]\n')
    environ = {"LIMNOS__ENGINE__CONF": "spark.cores.max=1, spark.executor.memory=1g"}

    settings = load(flags={}, file=file, environ=environ).settings

    assert spark_settings(settings.engine.conf) == {"spark.cores.max": "1", "spark.executor.memory": "1g"}
    assert spark_settings(settings.maintenance.executor_conf) == {"spark.cores.max": "2", "spark.jars": "a.jar,b.jar"}


@pytest.mark.parametrize(
    "text, message",
    [
        ("spark.cores.max", "write KEY=VALUE"),
        ("cores.max=2", "write KEY=VALUE"),
        ("spark.hadoop.fs.s3a.secret.key=x", "is a secret"),
        ("spark.sql.catalog.main.header.Authorization=x", "is a secret"),
    ],
)
def test_other_spark_settings_are_refused(text: str, message: str) -> None:
    """A setting without a value or of another program is refused, and so is a secret, which commands would show."""
    assert message in refusal(flags={}, file=None, environ={"LIMNOS__ENGINE__CONF": text})
