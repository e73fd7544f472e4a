"""A database toolset that signoff finds by its entry point `orders_db`, or by the class path `orders_db:toolset`."""

from orders_db.toolset import DatabaseConfig, DatabaseToolset, toolset

__all__ = ["DatabaseConfig", "DatabaseToolset", "toolset"]
