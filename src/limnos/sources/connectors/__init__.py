"""Connectors: one kind of outside system each, behind the capabilities of `capabilities`. Decision record 0078."""
