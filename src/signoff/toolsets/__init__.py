"""Tools that come with signoff, and the catalog of named toolsets."""
