"""Makes orders.db, with three orders in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

with closing(sqlite3.connect("orders.db")) as database, database:
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total INTEGER, state TEXT)")
    database.executemany(
        "INSERT INTO orders (customer, total, state) VALUES (?, ?, ?)",
        [("ana", 120, "paid"), ("ben", 80, "open"), ("eve", 15, "open")],
    )
