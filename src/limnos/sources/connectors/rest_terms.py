# SPDX-License-Identifier: Apache-2.0
"""Terms of catalogs whose requests are forwarded to another Iceberg REST catalog: the paths of requests, and the
property for vended credentials.
"""

from __future__ import annotations

from typing import Final

NAMESPACES: Final = "/namespaces"
NAMESPACE: Final = f"{NAMESPACES}/{{namespace}}"
TABLES: Final = f"{NAMESPACE}/tables"
TABLE: Final = f"{TABLES}/{{table}}"
VIEWS: Final = f"{NAMESPACE}/views"
VIEW: Final = f"{VIEWS}/{{view}}"
VENDED: Final = "vended-credentials"
NEVER, TO_WRITERS, TO_READERS = "never", "to-writers", "to-readers"
"""The settings for passing on the credentials that a source vends.

Vended credentials allow everything that the source allows this server, regardless of the caller's rights here.
"""
