"""Import an agent by its path: `package.module:agent`."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, cast

from pydantic_ai import Agent

from signoff.config.import_path import importable, keep_importable
from signoff.errors import WrongUse
from signoff.gate.gated_agents import signoff_of


def load_agent(path: str, directory: str = "") -> Agent[Any, Any]:
    """Import the agent, also from `directory`, by default the working directory.

    Raises `WrongUse` that says which part of the path is wrong.
    """
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise WrongUse(f"{path!r} is not the location of an agent: write package.module:agent")
    here = os.path.abspath(directory)
    with importable(here):
        module = _module(module_name, path)
    keep_importable(here)
    found = getattr(module, attribute, None)
    if found is None:
        hint = _hidden_by_package(module, here) or _others(module_name, attribute)
        raise WrongUse(f"{path!r}: {module_name} has no {attribute!r}.{hint}")
    if not isinstance(found, Agent):
        raise WrongUse(f"{path!r} is a {type(found).__name__}, not a pydantic_ai.Agent")
    return found  # pyright: ignore[reportUnknownVariableType]


def why_no_plain_agent(found: object) -> tuple[str, str] | None:
    """Return why an object cannot be run under a project's policy and in its store, and what to do; None if it can."""
    if not isinstance(found, Agent):
        return f"is a {type(found).__name__}, not an agent", "name a pydantic_ai.Agent"
    if signoff_of(cast("Agent[Any, Any]", found)) is not None:
        fix = "remove it: an agent that is started from a channel uses the project's policy and store"
        return "has its own Signoff capability, with its own store", fix
    return None


def _module(name: str, path: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise WrongUse(
                f"{path!r}: there is no module {error.name!r} here or among the installed packages.\n"
                "  Run the command from the directory that holds it, or install the package."
            ) from error
        raise WrongUse(f"{path!r}: {name} needs a module that is not installed: {error.name!r}") from error
    except Exception as error:
        raise WrongUse(f"{path!r}: importing {name} failed with {type(error).__name__}: {error}") from error


def _hidden_by_package(module: ModuleType, here: str) -> str:
    """What to say if an installed module has the name of one in this directory."""
    name, at = module.__name__.partition(".")[0], os.path.realpath(module.__file__ or "")
    own = os.path.join(os.path.realpath(here), name)
    if (
        not module.__file__
        or not (os.path.exists(f"{own}.py") or os.path.isdir(own))
        or at.startswith((f"{own}.", own + os.sep))
    ):
        return ""
    return f" Python finds that name in {at}, which is installed. Give your own {name!r} another name."


def _others(module_name: str, attribute: str) -> str:
    agents = sorted(name for name, value in vars(sys.modules[module_name]).items() if isinstance(value, Agent))
    if not agents:
        return " No agent is defined there."
    close = get_close_matches(attribute, agents, n=1)
    return f" Did you mean {close[0]!r}?" if close else f" Agents there: {', '.join(agents)}."
