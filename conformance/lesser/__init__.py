"""Does any table of refusals notice when one use of an action asks for less? Each use is lowered, and the tables are asked again."""
