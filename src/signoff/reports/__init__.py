"""What commands tell, as data: read from a store here, or by the server for commands elsewhere."""
