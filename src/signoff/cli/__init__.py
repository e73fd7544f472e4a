"""The `signoff` program: one file a command group, loaded only when it is called."""
