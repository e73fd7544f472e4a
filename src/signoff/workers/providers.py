"""What a model's provider needs before use: a package, which an extra installs, and an API key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True, slots=True)
class Provider:
    """What models of one provider need."""

    extra: str
    """The extra of signoff, named as PydanticAI names it."""
    module: str
    """The module that it installs."""
    keys: tuple[str, ...] = ()
    """Environment variables that may hold the key. Empty if the provider has its own ways to find one."""


_OPENAI = "openai"
PROVIDERS = {
    "anthropic": Provider("anthropic", "anthropic", ("ANTHROPIC_API_KEY",)),
    "bedrock": Provider("bedrock", "boto3"),
    "cohere": Provider("cohere", "cohere", ("CO_API_KEY",)),
    "deepseek": Provider("openai", _OPENAI, ("DEEPSEEK_API_KEY",)),
    "google": Provider("google", "google.genai", ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
    "groq": Provider("groq", "groq", ("GROQ_API_KEY",)),
    "huggingface": Provider("huggingface", "huggingface_hub", ("HF_TOKEN",)),
    "mistral": Provider("mistral", "mistralai", ("MISTRAL_API_KEY",)),
    "ollama": Provider("openai", _OPENAI),
    "openai": Provider("openai", _OPENAI, ("OPENAI_API_KEY",)),
    "openai-chat": Provider("openai", _OPENAI, ("OPENAI_API_KEY",)),
    "openai-responses": Provider("openai", _OPENAI, ("OPENAI_API_KEY",)),
    "openrouter": Provider("openrouter", _OPENAI, ("OPENROUTER_API_KEY",)),
    "xai": Provider("xai", "xai_sdk", ("XAI_API_KEY",)),
}
"""By the prefix before the `:` of a model's name. Others work as far as PydanticAI knows them."""


def missing_for(model: str) -> str:
    """Return what a model lacks, and how to get it; empty if nothing is known to be missing. Sends no request."""
    provider = PROVIDERS.get(model.partition(":")[0])
    if provider is None:
        return ""
    steps: list[str] = []
    if not _is_installed(provider.module):
        steps.append(f"install its package: pip install 'signoff[{provider.extra}]'")
    if provider.keys and not any(os.environ.get(key) for key in provider.keys):
        steps.append(f"set {' or '.join(provider.keys)} to its key")
    return "; ".join(steps)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # its parent package is missing, or broken
        return False
