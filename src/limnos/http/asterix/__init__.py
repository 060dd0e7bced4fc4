"""SQL++ over HTTP: AsterixDB's query service and what its clients look for beside it, over the same tree."""
