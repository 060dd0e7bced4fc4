"""One module for each schema revision, in order."""
