"""Static types: what AsterixDB's compiler knows about the type of each expression of a plan, without its values.

May import plans, the tree and `values.model`. Must not know rows, datasets' files or an engine.
"""
