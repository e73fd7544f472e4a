"""The PydanticAI integration: the capability, the deferred flow, suspended runs."""

import sys

if "temporalio" in sys.modules:  # most who import this package need neither Temporal nor an event loop
    from signoff.gate.workflow_loop import refuse_import_in_sandbox

    refuse_import_in_sandbox()
