"""`turngate inbox`: what waits for a person."""

import pytest

from tests.services.cli.samples import ESCAPES, asking, encoded
from tests.services.cli.shell import Background, inside
from tests.waiting import wait_until_sync


@pytest.fixture
def inbox(nats_server, namespace, tmp_path):
    """Runs `turngate` in a system of its own, so that the inbox holds what the test put there."""
    env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}
    with Background(tmp_path, "serve", "validation", env=env) as service:
        service.wait_ready()
        yield lambda *arguments, stdin=b"": inside(*arguments, env=env, stdin=stdin)


def test_the_inbox_lists_cards_until_they_are_answered(inbox):
    assert inbox("inbox").out == "nothing waits for a person\n"

    for name in ("s1", "s2", "s3"):
        inbox("turn", "submit", name, "1", stdin=encoded(asking(f"{name} {ESCAPES}")))
    wait_until_sync(lambda: len(inbox("inbox", "--json").json()["entries"]) == 3, why="three cards")

    shown = inbox("inbox").out
    assert [line.split()[3] for line in shown.splitlines()[1:]] == ["s1", "s2", "s3"]
    assert all(line.isprintable() for line in shown.splitlines())

    inbox("turn", "answer", "s2", "1", "3")
    wait_until_sync(lambda: len(inbox("inbox", "--json").json()["entries"]) == 2, why="the answered card leaves")


def test_the_inbox_comes_in_pages(inbox):
    for name in ("s1", "s2", "s3"):
        inbox("turn", "submit", name, "1", stdin=encoded(asking()))
    wait_until_sync(lambda: len(inbox("inbox", "--json").json()["entries"]) == 3, why="three cards")

    page = inbox("inbox", "--limit", "2", "--json").json()
    rest = inbox("inbox", "--limit", "2", "--cursor", str(page["cursor"]), "--json").json()
    every = inbox("inbox", "--limit", "1", "--all", "--json").json_lines()

    assert [entry["session"] for entry in page["entries"]] == ["s1", "s2"]
    assert page["more"]
    assert [entry["session"] for entry in rest["entries"]] == ["s3"]
    assert [entry["session"] for page in every for entry in page["entries"]] == ["s1", "s2", "s3"]
    assert f"--cursor {page['cursor']}" in inbox("inbox", "--limit", "2").out
    assert inbox("inbox", "--kind", "question").out == "nothing waits for a person\n"


def test_all_pages_and_a_cursor_exclude_each_other():
    assert inside("inbox", "--all", "--cursor", "3").code == 2
