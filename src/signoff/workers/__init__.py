"""Agents and the models that drive them."""
