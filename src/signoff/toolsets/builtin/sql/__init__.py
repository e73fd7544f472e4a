"""The SQL tools, with connections that enforce read-only access even where the parser is wrong."""
