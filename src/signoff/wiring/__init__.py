"""The only place that assembles parts: from what a command was given to an agent that runs under a policy."""
