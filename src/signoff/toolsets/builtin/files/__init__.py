"""The file tools, and how they stay below one directory."""
