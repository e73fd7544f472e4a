"""The PydanticAI integration: the capability, the deferred flow, suspended runs."""
