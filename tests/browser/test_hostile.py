"""Whatever models write is text: nothing of it runs, leads anywhere, or breaks a page."""

from typing import Any

from playwright.async_api import Page, expect

from tests.browser.stage import DESKTOP, PHONE, Stage, deal, question
from tests.fundamentals.reports import CARD
from turngate_protocol.question import ToolCall

MARKUP = (
    '</textarea></script><script>window.hurt=1</script><img src=x onerror="window.hurt=1"><svg onload=window.hurt=1>'
)
LINK = '<a href="javascript:window.hurt=1">javascript:window.hurt=1</a> {{7*7}} {% raw %}'
CONTROL = "\x1b[2J\x07 \u202egnp.exe\u202c \u2066x\u2069 \u200b"
RIGHT_TO_LEFT = "שלום עולם مرحبا بالعالم 123 (abc)"
WORD = "w" * 5_000
EMOJI = "👩‍👩‍👧‍👦 🏳️‍🌈 🧑🏽‍🚀" * 20
DETAILS = (MARKUP + LINK + RIGHT_TO_LEFT + "\n" + WORD + "\n") * 6
IMPORTED = "https://elsewhere.invalid/x.css"
STYLE = f"<style>@import '{IMPORTED}'; * {{ display: none }}</style><link rel=stylesheet href={IMPORTED}>"

REPORT: dict[str, Any] = {
    "task_status": "needs_action",
    "headline": (MARKUP + CONTROL)[:160],
    "blocks": [
        {"type": "warning", "id": "w", "summary": (STYLE + LINK)[:240], "severity": "high", "impact": WORD},
        {"type": "change", "id": "c", "summary": RIGHT_TO_LEFT, "details": DETAILS[: 32 * 1024 - 2_000],
         "related_files": [MARKUP, "javascript:alert(1)", WORD]},
        {"type": "finding", "id": "f", "summary": EMOJI[:200], "impact": CONTROL + EMOJI, "importance": "low",
         "blocks_current_task": False},
        {
            **CARD["blocks"][1],
            "summary": MARKUP[:200],
            "recommendation_reason": LINK,
            "options": [
                {"id": "now", "label": "<b onclick=alert(1)>Now</b>" + RIGHT_TO_LEFT[:20], "effect": "dispatch",
                 "instruction": (MARKUP + CONTROL + "x" * 600)[:900], "preview": (STYLE + WORD)[:4000]},
                {"id": "collect", "label": "</textarea><script>window.hurt=1</script>", "effect": "collect"},
                {"id": "leave", "label": "(recommended) [dispatch]", "effect": "resolve", "consequence": LINK[:200]},
            ],
        },
    ],
}  # fmt: skip

QUESTION: dict[str, Any] = {
    "header": "<i>" + RIGHT_TO_LEFT[:40],
    "question": (MARKUP + LINK + CONTROL.replace("\x07", "") + WORD)[:4_000],
    "options": [
        {"label": '"><script>window.hurt=1</script>', "description": STYLE, "preview": (MARKUP + WORD)[:16_000]},
        {"label": "' onfocus=alert(1) autofocus '", "description": EMOJI[:200]},
    ],
}


async def test_a_hostile_report_is_only_text(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session, report=REPORT)
    for viewport in (DESKTOP, PHONE):
        async with stage.visit(f"/sessions/{session}", viewport=viewport) as ann:
            await ann.press("0")
            await ann.until(".details", "</textarea></script><script>")
            await ann.until("h2", "\\x1b[2J")
            await _harmless(ann.page)
            await ann.go("/")
            await ann.until(".rows", session)
            await _harmless(ann.page)
            await ann.go("/sessions")
            await _harmless(ann.page)


async def test_it_stays_text_when_it_arrives_in_an_open_page_and_when_it_is_answered(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.live()
        await deal(runner, session, 2, REPORT)
        await ann.until("h2", "\\x1b[2J")
        await ann.press("2")
        field = ann.page.locator(".collect textarea")
        assert await field.input_value() == REPORT["blocks"][3]["options"][1]["label"]
        await field.fill(f"{MARKUP}{RIGHT_TO_LEFT}")
        await ann.page.get_by_role("button", name="Send this text").click()

        await ann.until(".note", "answered by ann")
        await _harmless(ann.page)


async def test_a_hostile_question_is_only_text_and_can_be_answered(stage: Stage, session: str):
    runner = await stage.client()
    call: ToolCall = question(QUESTION)
    asked = await runner.ask(call, session)
    assert asked.pending is not None, asked
    async with stage.visit(f"/questions/{session}", viewport=PHONE) as ann:
        await _harmless(ann.page)
        await ann.press("1", "Enter")
        await ann.until(".note", '"><script>window.hurt=1</script>')
        await _harmless(ann.page)


async def test_a_hostile_objective_is_only_text(stage: Stage, session: str):
    person = await stage.supervised.person("ann")
    await person.create(session, f"{MARKUP}{LINK}\n{RIGHT_TO_LEFT}\n{WORD}{CONTROL}")
    await person.guide(session, f"{STYLE}{WORD}")
    async with stage.visit(f"/objectives/{session}", viewport=PHONE) as ann:
        await ann.until(".objective-text", "</textarea></script>")
        await ann.press("e")
        assert MARKUP in await ann.page.locator("#edit-text").input_value()
        await _harmless(ann.page)
        await ann.go("/objectives")
        await _harmless(ann.page)


async def _harmless(page: Page) -> None:
    """Nothing ran, nothing leads away, and nothing is wider than the page."""
    assert await page.evaluate("window.hurt") is None
    links = await page.evaluate("[...document.querySelectorAll('a, form')].map(each => each.href ?? each.action)")
    origin = await page.evaluate("location.origin")
    assert all(str(link).startswith(origin) for link in links), links
    assert (
        await page.locator("script:not([src]), style, img, iframe, [onerror], [onload], [onclick], [style]").count()
        == 0
    )
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await expect(page.locator("#main")).to_be_visible()
