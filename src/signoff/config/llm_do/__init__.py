"""Projects of llm-do read, and written as ours: what `signoff import llm-do` does. Nothing of theirs is run."""
