"""What people and programs are shown: one dataclass a noun. Commands print it, the API serves it, pages draw it."""
