"""Conclusions as text for a person or as JSON for a script; the functions return the exit code.

Everything that a model wrote is made visible before a terminal gets it, and stands indented, so that it can't pass for
a line of ours.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from turngate.cli.commands import NOT_OK, OK
from turngate.cli.output import print_json
from turngate.terminal import Terminal
from turngate_protocol.conclusion import Conclusion, GateResult

if TYPE_CHECKING:
    from turngate_contracts.tasks import ConclusionFound, ConclusionsPage
    from turngate_protocol.conclusion.record import TaskConclusion

_LOOKS: Final = {"success": "green", "partial": "yellow", "failed": "red", "blocked": "red"}
_MAX_REFS: Final = 50
"""How many refs of a kind a person is shown; scripts get all."""


def parsed(name: str, conclusion: Conclusion | None, as_json: bool) -> int:
    """Show what a block says; exit code 1 when there is none."""
    if as_json:
        print_json({"file": name, "found": conclusion is not None, "conclusion": conclusion})
    elif conclusion is None:
        Terminal().line(f"{name}: no closing block")
    else:
        _conclusion(Terminal(), conclusion, name)
    return NOT_OK if conclusion is None else OK


def verified(name: str, conclusion: Conclusion, gate: GateResult, message: str, as_json: bool) -> int:
    """Show what the gate makes of a conclusion; exit code 1 when it may not be believed as a success."""
    if as_json:
        print_json({"file": name, "conclusion": conclusion, "gate": gate, "message": message})
    else:
        terminal = Terminal()
        _conclusion(terminal, conclusion, name, refs=False)
        _gate(terminal, gate)
    return OK if conclusion.status == "success" else NOT_OK


def found(told: "ConclusionFound", *, as_json: bool, message: bool = False) -> int:
    """Show what is known of a task; exit code 1 when it is not a success, or not judged yet."""
    state = told.state
    success = state.gate is not None and state.conclusion is not None and state.conclusion.status == "success"
    if as_json:
        print_json(told)
    elif message:
        Terminal().text(state.message or "the parent was not told yet")
    else:
        _task(Terminal(), state, told.revision)
    return OK if success else NOT_OK


def page(told: "ConclusionsPage", as_json: bool, *, first: bool) -> None:
    """Show a page of conclusions."""
    if as_json:
        print_json(told)
        return
    from turngate.cli.times import at

    terminal = Terminal()
    rows = [
        [
            at(entry.at),
            _look(terminal, entry.status or entry.phase.value),
            entry.session,
            entry.task,
            str(entry.missing or ""),
            str(entry.uncheckable or ""),
            str(entry.conflicts or ""),
            entry.project,
            entry.title.partition("\n")[0],
        ]
        for entry in told.entries
    ]
    if rows:
        head = ["changed", "status", "session", "task", "missing", "unchecked", "conflicts", "project", "summary"]
        terminal.table(head, rows, right={4, 5, 6})
    elif first:
        terminal.line("no conclusions")


def _task(terminal: Terminal, state: "TaskConclusion", revision: int) -> None:
    from turngate.cli.times import at

    facts = [f"session {state.session}", f"runner {state.runner}", f"pool {state.pool}", f"revision {revision}"]
    terminal.line(terminal.paint(f"task {state.task}", "bold"), f"  {', '.join(facts)}")
    record = state.record
    told = [f"{record.status} at {at(record.finished_at_ms or state.received_at)}"]
    told += [f"exit code {record.exit_code}"] if record.exit_code is not None else []
    told += [f"{record.tool_calls} tool calls"] if record.tool_calls is not None else []
    told += [f"engine {record.engine}"] if record.engine else []
    told += [f"project {record.project_name}"] if record.project_name else []
    terminal.line(f"  {', '.join(told)}; {state.output_bytes} bytes of output")
    if state.gate is None:
        terminal.line(terminal.paint("received", "yellow", "bold"), "  its evidence is being looked for")
    elif state.conclusion is None:
        terminal.line(terminal.paint("none", "yellow", "bold"), "  no conclusion was captured")
    else:
        _conclusion(terminal, state.conclusion, f"judged at {at(state.judged_at)}", refs=False)
        _gate(terminal, state.gate)
    _parent(terminal, state)
    for conflict in state.conflicts:
        what = f"{conflict.status}, {conflict.output_bytes} bytes of output"
        terminal.line(
            terminal.paint("conflict", "red"),
            f"  {conflict.runner} finished it again at {at(conflict.at)} with other content ({what})",
        )


def _parent(terminal: Terminal, state: "TaskConclusion") -> None:
    if state.refusal is not None:
        terminal.line(terminal.paint("not told", "red"), f"  {state.refusal.message}")
    elif state.phase.value == "settled":
        terminal.line(f"session {state.session} was told")


def _conclusion(terminal: Terminal, conclusion: Conclusion, about: str, *, refs: bool = True) -> None:
    facts = [about]
    facts += [f"confidence {conclusion.confidence:.2f}"] if conclusion.confidence > 0 else []
    facts += ["made up by Turngate: there was no block"] if conclusion.synthesized else []
    terminal.line(_look(terminal, conclusion.status or "no status"), f"  {', '.join(facts)}")
    _indented(terminal, conclusion.summary)
    if conclusion.follow_up:
        _indented(terminal, f"follow-up: {conclusion.follow_up}")
    if refs:
        _refs(terminal, "artifact", conclusion.artifacts)
        _refs(terminal, "memory", conclusion.memory_refs)
    for warning in conclusion.warnings:
        terminal.line(terminal.paint("  warning", "yellow"), f"  {warning}")


def _gate(terminal: Terminal, gate: GateResult) -> None:
    if not gate.inspected:
        terminal.line(terminal.paint("  not inspected: only a success is", "dim"))
        return
    kinds: list[tuple[str, str, Sequence[str]]] = [
        ("missing", "red", (*gate.missing_artifacts, *gate.missing_memory_refs)),
        ("unproven", "red", gate.unproven_artifacts),
        ("verified", "green", (*gate.verified_artifacts, *gate.verified_memory_refs)),
        ("unchecked", "yellow", (*gate.uncheckable_artifacts, *gate.uncheckable_memory_refs)),
    ]
    for word, look, refs in kinds:
        _refs(terminal, word, refs, look)


def _refs(terminal: Terminal, word: str, refs: Sequence[str], look: str = "dim") -> None:
    for ref in refs[:_MAX_REFS]:
        terminal.line("  ", terminal.paint(word, look), f"  {ref}")
    if len(refs) > _MAX_REFS:
        terminal.line("  ", terminal.paint(word, look), f"  and {len(refs) - _MAX_REFS} more")


def _indented(terminal: Terminal, text: str) -> None:
    if text:
        terminal.text("\n".join(f"  {line}" for line in text.split("\n")))


def _look(terminal: Terminal, word: str) -> Any:
    return terminal.paint(word, _LOOKS.get(word, "yellow"), "bold")
