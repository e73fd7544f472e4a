"""`agents:` in the project file: agents of Python programs whose runs signoff can resume without the program."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.policy.format import Format, MappingFormat, matching
from signoff.policy.placed_value import ConfigValue

_PATH = matching(
    r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*",
    "where it is found, as package.module:agent",
    "{} is not a location",
    "write package.module:agent",
    name="pythonPath",
)
_WHAT = "a mapping such as {shop: app.agents:agent}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEntry:
    """An agent that a program of the user's runs."""

    name: str
    """The name of the agent: `Agent(name=…)`."""
    agent: str
    """Its import path: `package.module:agent`."""
    deps: str = ""
    """Import path of the function that makes the deps of its runs; empty: they have none."""
    spot: ConfigValue


AGENT = MappingFormat(
    {
        "agent": _PATH.about("The import path of the agent: package.module:agent."),
        "deps": _PATH.about(
            "A function that returns the deps of a run; it is given the name of the person the run is for."
        ),
    },
    short="agent",
    required={"agent": ("the agent's location is missing", "write agent: package.module:agent")},
    what="where it is found, as package.module:agent, or a mapping with `agent` and `deps`",
)


def read_agents(spot: ConfigValue) -> dict[str, AgentEntry]:
    """Read every agent, in the order of the file."""
    found = spot.entries(what=_WHAT) if spot.value is not None else {}
    return {name: _entry(name, one) for name, one in found.items()}


def _entry(name: str, spot: ConfigValue) -> AgentEntry:
    if not name.strip():
        raise spot.wrong("an agent without a name", "write the name that the agent is given: Agent(…, name='shop')")
    return AgentEntry(name=name, spot=spot, **AGENT.read(spot))


AGENTS = Format(
    read_agents,
    {
        "description": "Agents of your programs, by name: signoff serve resumes their runs.",
        "type": ["object", "null"],
        "propertyNames": {"pattern": r"\S"},
        "additionalProperties": AGENT,
    },
)
