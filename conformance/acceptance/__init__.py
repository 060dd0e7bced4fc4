"""Access control across protocols, nodes and stores: what each change means to the very next request, and what that costs in statements."""
