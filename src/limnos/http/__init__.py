"""Wire in, wire out: one ASGI application, and a package for each protocol.

May import every room below but not `spark` and `cli`. A protocol decodes a request into a service call and encodes the
result; no rule lives here. Protocols never import one another: what they share is in this package's own modules.
"""
