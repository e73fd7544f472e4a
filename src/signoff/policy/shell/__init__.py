"""Analyse shell commands: a strict parser, the only way to allow, and a full parser that can only tighten."""
