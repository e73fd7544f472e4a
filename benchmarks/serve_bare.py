"""The plainest server that keeps an answer: a Starlette route with one write to SQLite. PORT and FILE are given."""

from __future__ import annotations

import sqlite3
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


def main() -> None:
    port, file = int(sys.argv[1]), sys.argv[2]
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE answers (id INTEGER PRIMARY KEY, request TEXT, body TEXT)")

    async def answer(request: Request) -> Response:
        body = await request.body()
        row = (request.path_params["request"], body.decode())
        connection.execute("INSERT INTO answers (request, body) VALUES (?, ?)", row)
        return JSONResponse({"state": "approved"})

    async def ready(request: Request) -> Response:
        return JSONResponse({})

    app = Starlette(
        routes=[Route("/requests/{request}/votes", answer, methods=["POST"]), Route("/readyz", ready, methods=["GET"])]
    )
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
