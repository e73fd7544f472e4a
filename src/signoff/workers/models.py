"""Make a model from its name: any name PydanticAI knows, or `script:FILE`."""

from __future__ import annotations

import os

from pydantic_ai.models import Model, infer_model

from signoff.errors import WrongUse
from signoff.workers.providers import missing_for
from signoff.workers.scripted_model import ScriptedModel

SCRIPT = "script:"
NO_MODEL = (
    "{who} has no model. Name one in its file (`model: anthropic:claude-sonnet-5`), for all workers in signoff.yaml, "
    "with --model, or in SIGNOFF_MODEL.\n"
    "  Without a provider, a script will do: --model script:FILE (docs/guides/testing.md)"
)
"""Error message if no model is named; `who` lacks one."""


def script_in(name: str | None, directory: str) -> str | None:
    """Return a model's name; the path of a script is joined to `directory`, if that is given."""
    if name is None or not directory or not name.startswith(SCRIPT):
        return name
    return f"{SCRIPT}{os.path.join(directory, name.removeprefix(SCRIPT))}"


def model_named(name: str, directory: str | os.PathLike[str] | None = None) -> Model:
    """Return the model. Raises `WrongUse` if there is none of that name, or its provider is not set up.

    A script's file is looked up in `directory`, that of the file that names it. Default: the working directory.
    """
    if name.startswith(SCRIPT):
        file = name.removeprefix(SCRIPT)
        return ScriptedModel.from_file(os.path.join(directory, file) if directory is not None else file)
    try:
        return infer_model(name)
    except Exception as error:  # each provider fails in its own way if a package or a key is missing
        if missing := missing_for(name):
            raise WrongUse(f"the model {name!r} cannot be used yet.\n  To use it, {missing}") from error
        raise WrongUse(f"the model {name!r} cannot be used: {error}") from error
