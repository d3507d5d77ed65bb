"""A backup and its restore are ended at their steps; begun anew, each bucket is what it was, and the services go on."""

from typing import Final

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale
from tests.system.nothing_lost import assert_one_verdict_each
from turngate.jetstream.crash import CRASHED, VARIABLE
from turngate.jetstream.store import Store

BUCKETS: Final = ("turns", "questions", "conclusions", "objectives")
BACKUP: Final = ("stream.snapshot.before", "stream.snapshot.sent:3", "stream.snapshot.confirmed:5")
RESTORE: Final = tuple(
    f"{effect}.{step}{nth}"
    for effect, nth in (
        ("stream.delete", ""),
        ("stream.delete", ":7"),
        ("stream.restore", ""),
        ("stream.restore", ":6"),
        ("stream.update", ""),
        ("stream.create", ""),
        ("consumer.durable.create", ""),
    )
    for step in ("before", "sent", "confirmed")
)
SHORT: Final = ("stream.delete.sent:7", "stream.restore.sent:6", "stream.update.confirmed")


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Play some turns, back them up, and restore over what is there."""
    (service,) = await rig.start()
    async with await rig.load(seed, in_flight=8) as load:
        await load.reached(scale.of(20, 100))
    await rig.observer.quiet()
    await rig.end(service)
    problems = []
    backup = rig.directory / "backup"
    for point in BACKUP if scale is Scale.FULL else BACKUP[1:2]:
        problems += await _ends_at(point, "backup", "create", str(rig.directory / f"broken-{point}"), rig=rig)
    problems += await _ends_well("backup", "create", str(backup), rig=rig)
    before = await _histories(rig)
    for point in RESTORE if scale is Scale.FULL else SHORT:
        problems += await _ends_at(point, "restore", "--replace", str(backup), rig=rig)
        problems += await _ends_well("restore", "--replace", str(backup), rig=rig)
        if await _histories(rig) != before:
            problems.append(f"a restore after one that ended at {point} brought something else back")
    await rig.start()
    assert_one_verdict_each(load.ledger, await rig.observer.history(rig.observer.turns))
    problems += rig.crashes()
    return Findings(len(load.ledger.reports) + len(load.ledger.endings), problems=tuple(problems))


async def _histories(rig: Rig) -> dict[str, dict[str, list[bytes]]]:
    stores = {name: Store(rig.observer.requester, rig.observer.subjects, name, "") for name in BUCKETS}
    return {
        name: {key: [each.body for each in revisions] for key, revisions in (await rig.observer.history(store)).items()}
        for name, store in stores.items()
    }


async def _ends_at(point: str, *arguments: str, rig: Rig) -> list[str]:
    tool = await rig.tool(*arguments, **{VARIABLE: point})
    return (
        [] if tool.exit == CRASHED else [f"{arguments[0]} did not end at {point}, but with {tool.exit}: {tool.log()}"]
    )


async def _ends_well(*arguments: str, rig: Rig) -> list[str]:
    tool = await rig.tool(*arguments)
    return [] if tool.exit == 0 else [f"{arguments[0]} ended with {tool.exit}: {tool.log()}"]
