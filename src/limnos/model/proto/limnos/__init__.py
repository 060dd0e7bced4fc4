"""The definitions' own package name, kept so that a message's full name is `limnos.v1.<Message>`."""
