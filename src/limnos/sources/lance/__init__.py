"""Lance tables as their own library reads them. Nothing here is imported by a serving process but the shapes of questions and answers."""
