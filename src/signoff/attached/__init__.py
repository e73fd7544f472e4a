"""What toolsets say about their calls: the policies attached to them, and what methods of their own answer."""
