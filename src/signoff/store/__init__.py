"""Stores for requests, runs, grants and the audit log. One adapter per file, each behind a port of `signoff.ports`."""
