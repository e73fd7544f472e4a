"""The tests mirror `src/`; `attacks/` tries to break the laws, `meta/` watches the repository itself."""
