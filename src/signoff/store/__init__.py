"""Where requests and grants are kept. One adapter a file, each behind a port of `signoff.ports`."""
