"""A model from its name: any name PydanticAI knows, or `script:FILE`."""

from __future__ import annotations

from pydantic_ai.models import Model, infer_model

from signoff.errors import WrongUse
from signoff.workers.script import ScriptedModel

SCRIPT = "script:"


def model_named(name: str) -> Model:
    """The model; raises `WrongUse` where there is none of that name, or its provider is not set up."""
    if name.startswith(SCRIPT):
        return ScriptedModel.from_file(name.removeprefix(SCRIPT))
    try:
        return infer_model(name)
    except Exception as error:  # each provider fails in its own way when a package or a key is missing
        raise WrongUse(f"the model {name!r} cannot be used: {error}") from error
