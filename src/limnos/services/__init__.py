"""What the product does, one module per resource, protocol-neutral.

May import every room below; never `http`. Readers are plain functions over a `Scene`; a change is a decision that makes
a `Permit`, and a mutation that takes it.
"""
