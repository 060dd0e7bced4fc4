# SPDX-License-Identifier: Apache-2.0
"""HTTP: decodes requests into service calls and encodes results; one ASGI application, and a package for each protocol.

It has no business rules. Protocols never import one another: shared code is in this package's own modules.
"""
