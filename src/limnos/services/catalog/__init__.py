"""Resources of the tree that every format has: metalakes, catalogs, namespaces, tables, views, models, filesets. May import `lookup` and what that may import."""
