"""How a request works: what a node shares, the scene that a reader sees, permits and waiting. May import the rooms below `services`."""
