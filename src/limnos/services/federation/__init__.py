"""Other systems that catalogs show: connectors, their schemas, tables, views and topics, nodes that stand for them. May import `request` and `storage`."""
