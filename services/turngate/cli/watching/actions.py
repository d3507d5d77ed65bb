"""Carrying out what a key decided: one request each, with an operation id, so that trying again is no second one.

What comes back, good or bad, becomes a sentence on the screen. A refusal leaves the thing open and shows why; whoever
was first is named.
"""

import asyncio
import contextlib
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

from turngate.cli.watching import desk as d
from turngate.cli.watching.keyboard import Screen
from turngate.runner import TurnClient
from turngate.runner.calls import operation_id
from turngate_contracts.errors import Refusal, TurngateError
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.report import Report, decode


class _NotSent(Exception):
    """A text that somebody wrote in an editor was not taken; it says why, and where the text is."""


class Actions:
    """What a person does, over one client."""

    def __init__(self, client: TurnClient, desk: d.Desk, screen: Screen) -> None:
        self._client = client
        self._desk = desk
        self._screen = screen

    async def do(self, action: d.Action) -> None:
        """Carry out an action and say how it went; never raises for what the server says."""
        desk = self._desk
        try:
            match action:
                case d.Open(entry):
                    await self._open(entry)
                case d.PickOption():
                    await self._pick(action)
                case d.DismissCard(session, turn):
                    await self._client.dismiss(session, turn)
                    self._done(f"turn {turn} of {session} is closed without an answer")
                case d.Reply(session, request, answers, chat):
                    await self._client.questions.resolve(session, request, answers=answers, chat=chat)
                    self._done(f"{session} has your answer")
                case d.CancelQuestion(session, request):
                    await self._client.questions.reject(session, request)
                    self._done(f"the question of {session} is given up")
                case d.Steer(session, what, text):
                    await self._steer(session, what, text)
        except Refusal as error:
            desk.say(error.message, bad=True)
        except _NotSent as error:
            desk.say(str(error), bad=True)
        except TurngateError as error:
            desk.say(f"{error.message}; nothing may have been done, press the key again", bad=True)

    async def look(self) -> None:
        """See whether what is open still waits; say so where it does not."""
        opened = self._desk.opened
        if opened is None or opened.over:
            return
        with contextlib.suppress(TurngateError):
            if isinstance(opened, d.Driven):
                found = await self._client.objectives.get(opened.entry.session)
                opened.state, opened.activity = found.state, found.activity
            elif isinstance(opened, d.Card):
                opened.over = await self._card_over(opened)
            else:
                opened.over = await self._question_over(opened)

    def _done(self, note: str) -> None:
        self._desk.close()
        self._desk.say(note)

    async def _open(self, entry: InboxEntry) -> None:
        desk, session = self._desk, entry.session
        if entry.kind == "card":
            current = (await self._client.get(session)).state.current
            report = decode(bytes(current.report))
            if isinstance(report, Report):
                desk.show(d.Card(entry, current.turn, report, current.choices))
                return
        elif entry.kind == "question":
            pending = (await self._client.questions.get(session)).pending
            if pending is not None:
                desk.show(d.Asked(entry, pending.request))
                return
        elif entry.kind == "objective":
            found = await self._client.objectives.get(session)
            desk.show(d.Driven(entry, found.state, found.activity))
            return
        desk.say(f"{session} no longer waits for that", bad=True)

    async def _pick(self, action: d.PickOption) -> None:
        session, turn = action.session, action.turn
        recorded = await self._client.answer(session, turn, action.number, text=action.text)
        answer = recorded.answer
        self._done(f"{session}: {answer.label}")
        if answer.effect != "collect":
            return
        text = await asyncio.to_thread(self._compose, answer.editor_text)
        if text.strip():
            prompt = f"person-{operation_id()}"
            with _kept(text):
                await self._client.send_prompt(session, prompt, text, kind="person")
            self._desk.say(f"{session}: {answer.label}; your text is sent")
        else:
            self._desk.say(f"{session}: {answer.label}; the text was left empty, so nothing is sent", bad=True)

    def _compose(self, text: str) -> str:
        """Have a person edit a text in the editor of their choice; empty when the editor fails."""
        import subprocess

        editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        with tempfile.TemporaryDirectory(prefix="turngate-") as directory:
            path = Path(directory) / "answer.md"
            path.write_text(text, encoding="utf-8")
            self._screen.give_back()
            try:
                done = subprocess.run([*editor, str(path)], check=False)  # noqa: S603  the person's own editor
                return path.read_text(encoding="utf-8", errors="replace") if done.returncode == 0 else ""
            except OSError:
                return text
            finally:
                self._screen.take()

    async def _steer(self, session: str, what: str, text: str) -> None:
        objectives = self._client.objectives
        match what:
            case "pause":
                await objectives.pause(session)
            case "resume":
                await objectives.resume(session)
            case "run":
                await objectives.run(session)
            case "guide":
                await objectives.guide(session, text)
            case "edit":
                before = (await objectives.get(session)).state.objective
                if before is None:
                    self._desk.say(f"{session} has no objective any more", bad=True)
                    return
                edited = await asyncio.to_thread(self._compose, before.text)
                if not edited.strip() or edited.rstrip("\n") == before.text.rstrip("\n"):
                    self._desk.say(f"{session} keeps its text")
                    return
                with _kept(edited):
                    await objectives.edit(session, edited.rstrip("\n"))
        said = {
            "pause": "paused",
            "resume": "goes on",
            "run": "runs",
            "guide": "has your guidance",
            "edit": "has your text",
        }
        self._desk.say(f"{session} {said[what]}")
        await self.look()

    async def _card_over(self, card: d.Card) -> str:
        current = (await self._client.get(card.entry.session)).state.current
        if current.turn != card.turn:
            return f"turn {current.turn} has begun; this card is of turn {card.turn}"
        if current.answer is not None:
            return f"{current.answer.actor} answered this card: {current.answer.label}"
        if current.dismissal is not None:
            return f"{current.dismissal.actor} closed this card without an answer"
        return ""

    async def _question_over(self, asked: d.Asked) -> str:
        found = await self._client.questions.get(asked.entry.session, asked.request.id)
        if found.pending is not None and found.pending.request.id == asked.request.id:
            return ""
        if found.outcome is None:
            return "this question no longer waits"
        return f"this question was decided by {found.outcome.by or 'its policy'} ({found.outcome.kind.value})"


@contextlib.contextmanager
def _kept(text: str) -> Iterator[None]:
    """Keep a text in a file where sending it fails: nobody writes it twice."""
    try:
        yield
    except TurngateError as error:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="turngate-", suffix=".md", delete=False) as file:
            file.write(text)
        raise _NotSent(f"your text may not have been taken and is kept in {file.name}: {error.message}") from None
