"""The toolsets that come with signoff. They know what their own calls do."""
