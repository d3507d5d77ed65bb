"""Messages at and over every limit, with headers: what fits is taken, what does not is refused, nobody is cut off."""

import json

from tests.fundamentals.reports import DONE
from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale
from tests.system.ledger import Ledger
from turngate.jetstream.connect import HEADER_RESERVE
from turngate.runner import TurnClient
from turngate_contracts.errors import PayloadTooLarge, Refusal, TurngateError
from turngate_contracts.headers import block
from turngate_protocol.report.session import Outcome

KIB = 1024
DETAILS = 32 * KIB
"""The largest details of a block, so that a larger report of one block is rejected."""
SIZES = (1, DETAILS, 64 * KIB, 512 * KIB, 767 * KIB, 768 * KIB, 769 * KIB, 1024 * KIB, 2048 * KIB)


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Reports of every size, and raw messages around the server's own limit."""
    await rig.start(count=1)
    (runner,) = await rig.runners.several(1)
    ledger = Ledger()
    problems: list[str] = []
    refused = 0
    for number, size in enumerate(SIZES):
        for kind, body in (("good", _report(size)), ("text", b"x" * size)):
            session = f"{kind}-{number}"
            try:
                verdict = await ledger.report(runner, session, 1, 1, body)
            except (PayloadTooLarge, Refusal):
                refused += 1
                del ledger.reports[session, 1, 1]
                continue
            wanted = Outcome.ACCEPTED if kind == "good" and size <= DETAILS else Outcome.REJECTED
            if verdict.outcome is not wanted:
                problems.append(f"a {kind} report of {size} bytes is {verdict.outcome}, not {wanted}")
    problems += await _around_the_servers_limit(runner)
    after = await ledger.report(runner, "after", 1, 1, _report(1))
    if after.outcome is not Outcome.ACCEPTED:
        problems.append(f"a small report after large ones is {after.outcome}")
    found = await rig.settle(ledger)
    notes = (f"{refused} of {2 * len(SIZES)} reports were too large to be sent",)
    return Findings.sum([found, Findings(problems=tuple(problems), notes=notes)])


async def _around_the_servers_limit(runner: TurnClient) -> list[str]:
    """Send bodies and headers whose sum is at the server's limit, and over it: only those over it are refused."""
    problems = []
    limit = runner.connection.body_limit + HEADER_RESERVE
    head = block({"Turngate-Test": "x" * 4_000})
    reconnects = runner.connection.stats["reconnects"]
    for over in (-1, 0, 1, 100_000):
        body = b"x" * (limit - len(head) + over)
        try:
            runner.connection.send("nobody.listens", body, headers=head)
            taken = True
        except TurngateError:
            taken = False
        if taken != (over <= 0):
            problems.append(f"{limit + over} bytes, {over} over the limit, were {'taken' if taken else 'refused'}")
    await runner.connection.flush()
    if runner.connection.stats["reconnects"] != reconnects:
        problems.append("the server ended the connection")
    return problems


def _report(size: int) -> bytes:
    """A good report of about so many bytes as encoded."""
    empty = len(json.dumps(DONE))
    first, *others = DONE["blocks"]
    return json.dumps({**DONE, "blocks": [{**first, "details": "x" * max(1, size - empty - 16)}, *others]}).encode()
