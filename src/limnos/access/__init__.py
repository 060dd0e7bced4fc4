"""Who may: authentication, policy, decisions, explain, list filters.

May import `view`, `telemetry`, `config`, `model` and `names`. Knows no SQL and no wire format beyond the
Authorization header; policy is pure functions over values.
"""
