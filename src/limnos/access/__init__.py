"""Access: authentication, policy, decisions, explanations and list filters.

May import `view`, `telemetry`, `config`, `model` and `names`. Knows no SQL, and of wire formats only the Authorization
header. Policy is pure functions over values.
"""
