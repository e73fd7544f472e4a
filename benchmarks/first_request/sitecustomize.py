"""Python loads this by itself in every program of `start`, as the directory is on its path.

It notes how long importing PydanticAI takes, and when a model is first asked, whatever the program is. All else it
leaves alone: it imports nothing that the program would not import.
"""

import os
import sys
import time
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

PACKAGE, MODEL = "pydantic_ai", "pydantic_ai.models.function"
NOTE = os.environ.get("BENCH_FIRST_REQUEST")
"""The file for what is noted: the moment, on the clock that all processes share, and the seconds of the import."""

seconds = {}


class Watcher(MetaPathFinder):
    """Stands beside the imports of the package and of the model."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in (PACKAGE, MODEL):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: loaded(module, load)
        return spec


def loaded(module, load):
    start = time.monotonic()
    load(module)
    seconds[module.__name__] = time.monotonic() - start
    if module.__name__ == MODEL:
        for name in ("request", "request_stream"):
            setattr(module.FunctionModel, name, noting(getattr(module.FunctionModel, name)))


def noting(method):
    def noted(*args, **options):
        if not os.path.exists(NOTE):  # the first one counts
            moment = time.monotonic()
            with open(NOTE, "x", encoding="utf-8") as file:
                file.write(f"{moment!r} {seconds[PACKAGE]!r}")
        return method(*args, **options)

    return noted


if NOTE:
    sys.meta_path.insert(0, Watcher())
