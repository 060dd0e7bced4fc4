# SPDX-License-Identifier: Apache-2.0
"""The data source `limnos.lance`: `spark.read.format("limnos.lance").load("lance.ml.text.docs")`, and for writing.

Spark creates a source for each plan, in separate processes. So each query requests the table's location from the server
again, which checks the caller's privileges.
"""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from limnos.model.errors import BadRequest
from limnos.spark.lance.reading import LanceReader
from limnos.spark.lance.server_access import SOURCE, ServerAccess, lance_options_of
from limnos.spark.lance.writing import LanceWriter


class LanceSource(DataSource):
    """Lance tables of a server. Each session has its own subclass with its server and credential."""

    home: ClassVar[ServerAccess | None] = None

    @classmethod
    def name(cls) -> str:
        """Return `limnos.lance`, the name for Spark's `format`."""
        return SOURCE

    def schema(self) -> StructType:
        """Return the Spark schema of the columns to read."""
        from limnos.spark.lance.reading import columns_of, files_of  # noqa: PLC0415 - loads Lance's library

        options = lance_options_of(self.options)
        return columns_of(files_of(self._home(), options), options)

    def reader(self, schema: StructType) -> LanceReader:
        """Return a reader of the table's latest version, or of the requested version."""
        from limnos.spark.lance.reading import LanceReader, files_of  # noqa: PLC0415

        options = lance_options_of(self.options)
        return LanceReader(files_of(self._home(), options), schema, fragments=options.fragments)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:  # noqa: FBT001 - PySpark's signature
        """Return a writer of the table. Raises BadRequest or PermissionDenied before any task runs, if the table does
        not accept the data or the caller may not write.
        """
        from limnos.spark.lance.writing import LanceWriter  # noqa: PLC0415

        return LanceWriter(self._home(), lance_options_of(self.options), schema=schema, overwrite=overwrite)

    def _home(self) -> ServerAccess:
        if self.home is None:
            raise BadRequest("This session has no server: create it with limnos.spark.session")
        return self.home


def source_of(home: ServerAccess) -> type[LanceSource]:
    """Return a subclass of LanceSource with a session's server and credential. It is defined in this function so that
    Spark pickles the class by value, with its attributes.
    """

    class SessionSource(LanceSource):
        pass

    SessionSource.home = home
    return SessionSource
