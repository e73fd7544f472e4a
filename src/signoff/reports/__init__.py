"""Output of commands as data: read from a local store, or by the server for remote commands."""
