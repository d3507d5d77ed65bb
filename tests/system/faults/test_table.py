"""The table of crash points is whole: whatever a service may publish has its way there, and each scenario is listed."""

from pathlib import Path

import pytest

from tests.system.faults.scenarios import __file__ as scenarios
from tests.system.faults.suite import FAULTS
from tests.system.faults.walk.table import WALKS, Walk, points, steps_of
from turngate.jetstream.crash import effect_of, planned
from turngate_contracts.service_permissions import SERVICES, of_service
from turngate_contracts.topology import Topology

NEVER = {
    "validation": {"put.esm-start"},
    "conclusion": {"put.esm-start"},
    "supervisor": {"put.esm-start"},
    "deadletter": {"tell.refused", "put.suspect"},
}
"""What services are permitted and never do."""

RETRIED = {"put", "save"}
"""What the dead-letter service puts back takes the same way whatever it is: one of each kind is walked."""


def test_every_service_is_walked():
    assert {walk.service for walk in WALKS} == set(SERVICES)


def test_every_scenario_is_in_the_suite():
    there = {path.stem for path in Path(scenarios).parent.glob("*.py")} - {"__init__"}

    assert there == set(FAULTS)


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.service)
def test_whatever_a_service_may_publish_is_walked(walk: Walk):
    permitted = of_service(Topology(), walk.service).publish
    effects = {effect_of(subject, b"", b"", {"_INBOX.>": "", "_R_.>": ""}) for subject in permitted} - {"", "answer."}
    # Any service may read from any other one; what only reads of what it asks is not told apart by its subject.
    left = {effect for effect in effects - walk.effects - NEVER[walk.service] if not effect.startswith("ask.")}
    if walk.service == "deadletter":
        left = {effect for effect in left if effect.partition(".")[0] not in RETRIED}

    assert left == set()


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.service)
def test_every_point_can_be_asked_for_and_is_walked_once(walk: Walk):
    names = [point for _, point in points(walk)]

    assert len(names) == len(set(names))
    assert all(planned({"TURNGATE_CRASH_AT": name}).effect in walk.effects for name in names)


def test_what_is_never_answered_is_never_confirmed():
    assert list(steps_of("ack.validation")) == ["before", "sent"]
    assert list(steps_of("save.turns")) == ["before", "sent", "confirmed"]
