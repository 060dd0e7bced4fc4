"""Access control across protocols, nodes and stores: the effect of each change on the next request, and its cost."""
