"""What toolsets say about their calls: the policies attached to them, and the answers of their own methods."""
