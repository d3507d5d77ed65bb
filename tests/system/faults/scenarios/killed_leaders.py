"""A cluster of three servers loses the leader of a stream five times under load."""

from tests.system.cluster import running_cluster
from tests.system.faults.findings import Findings
from tests.system.faults.rig import NAMESPACE, Rig, Scale
from tests.system.leaders import lose_leaders


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Kill leaders in a cluster of its own; the accounts are settled there."""
    async with running_cluster(rig.directory, {"sync_interval: always": ""}) as cluster:
        ledger = await lose_leaders(cluster, NAMESPACE, rig.directory, scale.of(2, 5), seed)
    told = [entry for entry in ledger.reports.values() if entry.verdict is not None]
    return Findings(len(told) + len(ledger.endings) + len(ledger.answers) + len(ledger.expected_prompts))
