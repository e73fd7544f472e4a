"""The file tools, confined to one directory."""
