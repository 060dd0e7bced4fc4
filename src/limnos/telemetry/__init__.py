"""Logs, metrics and request ids of the process.

May import `model`, structlog, prometheus-client and msgspec. Must not know what is logged or counted: rooms above
define their own events and metrics.
"""
