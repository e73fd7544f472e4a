"""The `signoff` program: one module per command group, imported only when it is called."""
