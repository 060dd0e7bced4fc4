"""What the process says about itself: logs, metrics, request ids.

May import `model`, structlog, prometheus-client and msgspec. Must not know what is logged or counted: rooms above name their own
events and metrics here.
"""
