"""The data source `limnos.lance`: `spark.read.format("limnos.lance").load("lance.ml.text.docs")`, and the same for writing.

May import PySpark, `model` and this room. Spark makes a source anew for each plan, in processes of its own, so each query asks the server again where
the table lies, and whether the caller may know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource

from limnos.model.errors import BadRequest
from limnos.spark.lance.server_access import SOURCE, ServerAccess, lance_options_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from limnos.spark.lance.reading import LanceReader
    from limnos.spark.lance.writing import LanceWriter


class LanceSource(DataSource):
    """Lance tables of a server. A session has a source of its own, which knows the server and who asks."""

    home: ClassVar[ServerAccess | None] = None

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return SOURCE

    def schema(self) -> StructType:
        """Return the columns of the table that is read."""
        from limnos.spark.lance.reading import columns_of, files_of  # noqa: PLC0415 - loads Lance's library

        asked = lance_options_of(self.options)
        return columns_of(files_of(self._home(), asked), asked)

    def reader(self, schema: StructType) -> LanceReader:
        """Return what reads the table's version of now, or the one that is asked for."""
        from limnos.spark.lance.reading import LanceReader, files_of  # noqa: PLC0415

        return LanceReader(files_of(self._home(), lance_options_of(self.options)), schema)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:  # noqa: FBT001 - PySpark's signature
        """Return what writes the table; refuses what cannot be written before any task runs."""
        from limnos.spark.lance.writing import LanceWriter  # noqa: PLC0415

        return LanceWriter(self._home(), lance_options_of(self.options), schema=schema, overwrite=overwrite)

    def _home(self) -> ServerAccess:
        if self.home is None:
            raise BadRequest("This source knows no server: make the session by limnos.spark.session")
        return self.home


def source_of(home: ServerAccess) -> type[LanceSource]:
    """Return a session's own source. Made here, it goes to other processes with what it knows."""

    class SessionSource(LanceSource):
        pass

    SessionSource.home = home
    return SessionSource
