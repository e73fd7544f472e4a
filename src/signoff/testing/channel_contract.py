"""The contract that every channel must keep, as checks to run against one.

```python
contract = ChannelContract(open_case)  # an async context manager that yields a `ChannelCase`

@pytest.mark.parametrize("check", ChannelContract.checks, ids=str)
async def test_my_channel(check: Check) -> None:
    await contract.run(check)
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

from signoff.testing.case import ChannelCase
from signoff.testing.channel_bench import Bench, Check
from signoff.testing.channel_checks import CHECKS
from signoff.testing.office import Office

OpenCase = Callable[[], AbstractAsyncContextManager[ChannelCase]]


class ChannelContract:
    """Runs checks against a channel, each with a new case, a new broker and a newly started channel."""

    checks: ClassVar[Sequence[Check]] = CHECKS

    def __init__(self, open_case: OpenCase, *, office: Callable[[], Office] = Office) -> None:
        self._open_case = open_case
        self._office = office

    async def run(self, check: Check) -> str:
        """Run a check. Raises `AssertionError` if it fails. Returns the reason if it does not apply to this channel."""
        async with self._open_case() as case:
            if why := check.why_not(case):
                return why
            office = self._office()
            bench = Bench(case, office)
            try:
                await bench.start()
                try:
                    await check.run(bench)
                finally:
                    await bench.channel.stop()
            finally:
                office.close()
        return ""
