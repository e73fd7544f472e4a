"""What a shell command does, found by parsing: the strict road to allow, and the full parse that can only tighten."""
