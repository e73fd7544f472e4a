"""The shell tool, and how commands are run: as their words, or in a shell where a person approved them."""
