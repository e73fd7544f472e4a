"""Programs that were written for 0.1."""

from __future__ import annotations

import pytest

from signoff import delivery
from signoff.broker import post
from signoff.core import notice


def test_what_runs_channels_is_found_where_it_was() -> None:
    with pytest.warns(DeprecationWarning, match=r"signoff\.broker\.post\.Post is signoff\.delivery\.Reconciler now"):
        assert post.Post is delivery.Reconciler
    with pytest.warns(DeprecationWarning, match=r"signoff\.delivery\.Route now"):
        assert post.Route is delivery.Route
    assert notice.Said is notice.RunResult
    with pytest.raises(AttributeError, match="has no attribute 'Courier'"):
        _ = post.Courier
