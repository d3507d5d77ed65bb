"""A working day to look at: sessions, questions, objectives and tasks as they would stand there on a busy afternoon."""

import json
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.browser.stage import Stage, listed, question
from tests.esm_answers import review, worker
from tests.services.conclusion.tasks import concluded, finished, success
from tests.services.console.views.past import HOUR, Past, archive
from tests.supervised import Hand
from turngate.jetstream.store import Event
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_protocol.question import AnswerAfter, Lineage, ToolCall
from turngate_protocol.question.model import Answer

CARD: dict[str, Any] = {
    "task_status": "needs_action",
    "headline": "Migration 31 is ready; on production it locks the orders table for about a minute",
    "blocks": [
        {
            "type": "change",
            "id": "migration",
            "summary": "Adds orders.archived_at and a partial index on it",
            "related_files": ["migrations/0031_orders_archived_at.sql", "orders/models.py"],
            "details": "The index is built concurrently.\n\n"
            + "\n".join(f"    step {number}: checked" for number in range(1, 30)),
        },
        {
            "type": "verification",
            "id": "dry-run",
            "summary": "A dry run on last night's copy passed in 48 s",
            "status": "passed",
            "evidence": "make migrate-dry-run: 6,214,008 rows, 0 errors",
        },
        {
            "type": "verification",
            "id": "load-test",
            "summary": "The load test was not run: the staging cluster is taken",
            "status": "not_run",
            "limitation": "No staging cluster before Monday",
        },
        {
            "type": "warning",
            "id": "lock",
            "summary": "Orders can't be placed while the table is locked",
            "severity": "high",
            "impact": "About 40 orders a minute would fail at this time of day",
        },
        {
            "type": "decision",
            "id": "when",
            "summary": "When shall the migration run on production?",
            "options": [
                {
                    "id": "now",
                    "label": "Run it now",
                    "effect": "dispatch",
                    "consequence": "Orders can't be placed for about a minute",
                    "instruction": "Run migration 31 on production, check the row counts before and after,\n"
                    "and post both in #orders.",
                },
                {
                    "id": "leave",
                    "label": "Leave it for Sunday morning",
                    "effect": "dispatch",
                    "description": "Traffic is lowest between 5 and 6",
                    "instruction": "Schedule migration 31 for Sunday 05:30 and tell the on-call engineer.",
                    "preview": "Sun 05:30  migrate 0031   (on call: bea)\nSun 05:40  check counts",
                },
                {"id": "word-it", "label": "Tell the team first", "effect": "collect"},
                {"id": "drop", "label": "Don't run it at all", "effect": "resolve"},
            ],
            "recommendation": "leave",
            "recommendation_reason": "Nobody notices a locked table on Sunday morning.",
            "response_type": "single",
        },
    ],
}

NEXT: dict[str, Any] = {
    "task_status": "needs_action",
    "headline": "The flaky importer test is found: it reads the clock twice",
    "blocks": [
        {
            "type": "next_step",
            "id": "fix-it",
            "summary": "Freeze the clock in the importer's tests?",
            "options": [
                {"id": "fix", "label": "Freeze it", "effect": "dispatch", "instruction": "Freeze the clock."},
                {"id": "leave", "label": "Leave it", "effect": "resolve"},
            ],
            "recommendation": "fix",
            "recommendation_reason": "It fails twice a week.",
            "response_type": "single",
        }
    ],
}

DONE: dict[str, Any] = {
    "task_status": "completed",
    "headline": "The login form trims the e-mail address before it is looked up",
    "blocks": [
        {"type": "change", "id": "trim", "summary": "White space around the address is removed"},
        {"type": "verification", "id": "tests", "summary": "All 214 tests pass", "status": "passed"},
    ],
}

STORE: dict[str, Any] = {
    "header": "Session store",
    "question": "Where shall the sessions be kept?",
    "options": [
        {
            "label": "Postgres",
            "description": "They survive a restart; one more table",
            "preview": "CREATE TABLE sessions (\n    id uuid PRIMARY KEY,\n    data jsonb NOT NULL\n);",
        },
        {"label": "Redis", "description": "Fast, and one more thing to run"},
        {"label": "Memory", "description": "Fast, and gone at exit"},
    ],
}
EVENTS: dict[str, Any] = {
    "header": "Events",
    "question": "Which events shall be kept in the audit log?",
    "multiple": True,
    "options": [
        {"label": "Log-ins", "description": "Who, from where, when"},
        {"label": "Failed log-ins", "description": "The same, and how often"},
        {"label": "Password changes", "description": "Never the passwords"},
    ],
}


async def tell(stage: Stage, root: Path) -> None:
    """Let the day happen."""
    web, core = await stage.client("runner-web-1"), await stage.client("runner-core-2")
    await _turns(web)
    await _questions(core)
    await _objectives(stage)
    await _tasks(web, root)
    for session in ("orders-4812", "importer-77", "auth-90", "pricing-12"):
        await listed(web, session)


async def _turns(web: TurnClient) -> None:
    await web.submit_report("login-31", 1, DONE)
    await web.submit_report("orders-4812", 1, DONE, mutated=True)
    unchecked = {**CARD, "task_status": "completed", "blocks": CARD["blocks"][:1]}
    await web.submit_report("orders-4812", 2, unchecked, mutated=True)
    await web.submit_report("orders-4812", 2, {"task_status": "fine", "headline": ""}, attempt=2, mutated=True)
    await web.submit_report("orders-4812", 2, CARD, attempt=3, mutated=True)
    await web.send_prompt("orders-4812", "task-311", "Task 311 (index the archive) has finished: look at its result.")
    await web.submit_report("importer-77", 1, NEXT)
    await web.submit_report("docs-5", 1, NEXT)
    await web.answer("docs-5", 1, number=1, text="Only in the importer, please.")


async def _questions(core: TurnClient) -> None:
    lineage = Lineage("release-31", "t-311")
    await core.ask(question(STORE, EVENTS), "auth-90", lineage=lineage)
    call = ToolCall("ask_user_text", "call-2", json.dumps({"question": "What shall the release be called?"}))
    await core.ask(call, "release-31", policy=AnswerAfter(7_200_000, chat="the next one"))
    asked = await core.ask(question(STORE, call="call-3"), "store-8")
    assert asked.pending is not None
    await core.questions.resolve("store-8", asked.pending.request, answers=[Answer(("Postgres",))])


async def _objectives(stage: Stage) -> None:
    person, hand = await stage.supervised.person("ann"), await stage.supervised.runner("runner-core-2")
    await _relive(stage, archive("archive-3", time.time_ns() // 1_000_000 - 12 * HOUR))
    await person.create("pricing-12", "Move the price rules out of the checkout into a service of their own.")
    for _ in range(3):
        blocked = worker("blocked_candidate", "no access", blockers=["there is no key for the price database"])
        await _run(hand, "pricing-12", blocked, 4_000)
    await stage.supervised.until_status("pricing-12", "blocked")
    await person.create("docs-5", "Describe every setting in the manual.")
    await person.pause("docs-5")
    await person.create("search-2", "Make the search find words in the plural.")
    await _run(hand, "search-2", worker("complete_candidate", "Plurals are found"), 30_000)
    await _run(hand, "search-2", review(), 10_000)
    await _run(hand, "search-2", review(), 12_000)
    await stage.supervised.until_status("search-2", "complete")


async def _relive(stage: Stage, past: Past) -> None:
    """Put an objective with a past into its bucket, so that nobody has to wait for it."""
    store = stage.supervised.supervisor.lane.lanes.store
    revision = 0
    for state in past.states:
        assert state.cause is not None
        value = codec.encode(replace(state, op=f"past-{state.revision}"))
        event = Event(f"objective.{state.cause.type}", state.cause.at)
        revision = await store.save(state.session_id, value, revision, event)


async def _run(hand: Hand, session: str, response: str, tokens: int) -> None:
    await hand.report(await hand.claim(session), response, tokens=tokens, duration_ms=tokens * 7)


async def _tasks(web: TurnClient, root: Path) -> None:
    (root / "index.py").write_text("made by the task")
    (root / "check.py").write_text("made by the task")
    serving = await web.serve_stat([root])
    said = success("index.py", "check.py:12", "report.md", summary="All 2,114 files of the archive are indexed.")
    await web.finish_task("orders-4812", finished("t-311", said, root, tool_calls=31, model="opus"))
    good = success("index.py", summary="The index is built again every night.")
    await web.finish_task("release-31", finished("t-312", good, root))
    await concluded(web, "t-311", "orders-4812")
    await concluded(web, "t-312", "release-31")
    await serving.stop()
