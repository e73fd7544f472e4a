"""The SQL tools, and connections that hold even where the parser is wrong."""
