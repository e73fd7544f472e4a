"""Where requests and remembered decisions are kept. One adapter a file, each behind a port of `signoff.ports`."""
