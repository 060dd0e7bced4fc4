"""SQL++ over HTTP: AsterixDB's query service and the routes that its clients need beside it, over the same tree."""
