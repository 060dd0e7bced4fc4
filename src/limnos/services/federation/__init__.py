"""Federation: connector catalogs, whose sources are other systems, with connectors, their objects, and placeholder
nodes for these.

May import `request` and `storage`.
"""
