"""Where signoff meets PydanticAI: the capability, the deferred flow, suspended runs."""
