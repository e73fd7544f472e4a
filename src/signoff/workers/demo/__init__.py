"""The agent of `signoff demo`: real files, a real shell, a scripted model, and a readable policy."""
