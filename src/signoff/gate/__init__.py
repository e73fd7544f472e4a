"""The PydanticAI integration: the capability, the deferred flow, suspended runs."""

from signoff.gate.workflow_loop import refuse_import_in_sandbox

refuse_import_in_sandbox()
