"""Toolsets that come with signoff: they know what their own calls do."""
