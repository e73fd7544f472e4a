"""Programs that were written for 0.1."""

from __future__ import annotations

import pytest

from signoff import delivery, ports
from signoff.broker import post
from signoff.channels import asking, headless_approver
from signoff.channels.approver import ApproverChannel
from signoff.channels.outcome import result_text
from signoff.core import notice
from signoff.testing import Office


def test_what_runs_channels_is_found_where_it_was() -> None:
    with pytest.warns(DeprecationWarning, match=r"signoff\.broker\.post\.Post is signoff\.delivery\.Reconciler now"):
        make = post.Post
    office = Office()
    made = make(office.broker, [delivery.Route(ApproverChannel(headless_approver()))], desk=office.desk)
    assert isinstance(made, delivery.Reconciler)
    with pytest.warns(DeprecationWarning, match=r"signoff\.delivery\.Route now"):
        assert post.Route is delivery.Route
    assert notice.Said is notice.RunResult
    with pytest.raises(AttributeError, match="has no attribute 'Courier'"):
        _ = post.Courier


def test_approvers_as_channels_are_found_where_they_were() -> None:
    with pytest.warns(DeprecationWarning, match=r"use signoff\.channels\.approver\.ApproverChannel"):
        assert asking.UIChannel is ApproverChannel
    with pytest.warns(DeprecationWarning, match=r"use signoff\.channels\.result_text"):
        assert asking.said_text is result_text
    assert ports.Desk is ports.Inbox
    with pytest.raises(AttributeError, match="has no attribute 'Courier'"):
        _ = asking.Courier
