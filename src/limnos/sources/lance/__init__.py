"""Work on Lance tables with Lance's own library, in worker processes. A server process imports only `questions`."""
