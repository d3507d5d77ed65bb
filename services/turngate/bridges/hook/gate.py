"""The gate at the end of an agent's turn: does it owe a report? And the conclusions of subagents that ended.

Whatever goes wrong here lets the agent stop and says so: an agent that can't be let go because a server is away would
spin for ever. The gate itself ends by itself too: after two reminders a turn is recorded as unreported.
"""

from pathlib import Path
from typing import NamedTuple

from turngate.bridges import conclusions, toollog
from turngate.bridges.delegated import tell
from turngate.bridges.files import SessionFiles
from turngate.bridges.hook.decode import HookEvent, Kind
from turngate.bridges.names import session_of_name
from turngate.bridges.turns import Turns
from turngate.runner import TurnClient
from turngate_protocol.conclusion.tools import ConclusionProblems, conclusion_of
from turngate_protocol.report.session import EndingOutcome


class Decision(NamedTuple):
    """What a hook tells its agent: why it must go on, or nothing; and what a person may read."""

    go_on: str = ""
    note: str = ""


async def decide(client: TurnClient, event: HookEvent, session: str, directory: Path, work_dir: Path) -> Decision:
    """Apply the gate to a stop, and tell what subagents concluded.

    Args:
        client: the runner's client.
        event: a stop, or a subagent's.
        session: the session that it is about.
        directory: that of the session's files.
        work_dir: where the agent works, resolved.

    Raises:
        TurngateError: the gate could not be asked.
        OSError: the session's files can't be used.
    """
    if event.kind is Kind.SUBAGENT_STOP:
        return Decision(note=await _conclude(client, session, directory, work_dir, event.agent))
    ended = await Turns(client, session, SessionFiles(directory), by="hook").end()
    # What a subagent's own hook could not tell, because the server was away then.
    for agent in conclusions.agents(directory):
        await _conclude(client, session, directory, work_dir, agent)
    if ended.outcome is EndingOutcome.REMINDER:
        return Decision(go_on=ended.text)
    if ended.outcome is EndingOutcome.UNREPORTED:
        return Decision(note=f"turn {ended.turn} of session {session} ended without the report that it owes")
    return Decision()


async def _conclude(client: TurnClient, session: str, directory: Path, work_dir: Path, agent: str) -> str:
    waiting = conclusions.of_agent(directory, agent)
    if waiting is None:
        return ""
    try:
        conclusion = conclusion_of(waiting["arguments"])
    except ConclusionProblems as error:
        conclusions.drop(directory, waiting)
        return str(error)
    with toollog.locked(directory):
        uses = [use for use in toollog.read(directory)[0] if agent and use.agent == agent]
    task = session_of_name(agent or f"subagent-{waiting['digest'][:16]}")
    told = await tell(client, session, task, conclusion, directory=work_dir, uses=uses)
    conclusions.drop(directory, waiting)
    return f"task {task}: {told}"
