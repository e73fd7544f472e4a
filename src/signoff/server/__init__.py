"""The web inbox and the HTTP API, as a Starlette application. What runs agents is handed in from above."""
