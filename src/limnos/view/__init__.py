"""The exact in-memory view of the store at a revision: facts, what is known of each zone, and the gate before them.

May import `store`, `telemetry`, `model` and `names`. Knows no policy and no wire format. The protocol it keeps has ten
rules (docs/explain/consistency.md); "rule n" in comments means those.
"""
