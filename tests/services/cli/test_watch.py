"""`turngate watch` on a real terminal, and where a program reads."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import uuid
from collections.abc import Iterator

import pytest

from tests.services.cli.samples import ESCAPES, asking, encoded
from tests.services.cli.shell import COMMAND, Background, environment, inside
from tests.waiting import wait_until_sync
from turngate.jetstream.embedded import EmbeddedServer

Env = dict[str, str]


@pytest.fixture(scope="module")
def desk(nats_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Env]:
    """A system of these tests' own, whose inbox holds only what they put there."""
    env = {
        "TURNGATE_NATS_URL": nats_server.url,
        "TURNGATE_NAMESPACE": f"w{uuid.uuid4().hex[:8]}",
        "TURNGATE_DURABILITY": "relaxed",
        "TURNGATE_IDENTITY": "tester",
    }
    directory = tmp_path_factory.mktemp("watched")
    with (
        Background(directory / "v", "serve", "validation", env=env) as validation,
        Background(directory / "s", "serve", "supervisor", env=env) as supervisor,
    ):
        validation.wait_ready()
        supervisor.wait_ready()
        yield env


class Watching:
    """`turngate watch` on a terminal of 80 by 30, whose screen a test reads and whose keys it presses."""

    def __init__(self, env: Env) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
        self._drawn = b""
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.process = subprocess.Popen(
            [*COMMAND, "watch"], env=environment(env), stdin=theirs, stdout=theirs, stderr=theirs, cwd="/"
        )
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def screen(self) -> str:
        """What is on the screen now: the last whole frame, without looks."""
        frames = self._drawn.decode(errors="replace").split("\x1b[H")
        whole = [frame for frame in frames if frame.endswith("\x1b[J") or "\x1b[J" in frame]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", whole[-1]) if whole else ""

    def wait_for(self, text: str) -> None:
        wait_until_sync(lambda: text in self.screen, 30, f"no {text!r} on the screen: {(self.screen or self._drawn)!r}")

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def end(self) -> int:
        code = self.process.wait(30)
        assert termios.tcgetattr(self._theirs) == self.before, "the terminal is not as it was"
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        os.close(self._theirs)
        os.close(self._ours)

    def _read(self) -> None:
        try:
            while chunk := os.read(self._ours, 65536):
                self._drawn += chunk
        except OSError:  # the test has closed it
            return


@pytest.fixture
def watching(desk: Env) -> Iterator[Watching]:
    it = Watching(desk)
    yield it
    it.close()


@pytest.fixture
def session() -> str:
    return f"s{uuid.uuid4().hex[:12]}"


def submit(env: Env, session: str, headline: str = "Two migrations are ready", turn: int = 1) -> None:
    done = inside("turn", "submit", session, str(turn), env=env, stdin=encoded(asking(headline)))
    assert done.code == 0, done.err


def answer_of(env: Env, session: str) -> dict[str, str]:
    found: dict[str, str] = inside("turn", "show", session, "--json", env=env).json()["state"]["current"]["answer"]
    return found


def opened(watching: Watching, session: str) -> None:
    """Choose a session's entry, which is the newest and so the last, and open it."""
    watching.wait_for(session)
    watching.press("j" * 20 + "\r")
    watching.wait_for("q back")


def test_a_card_appears_by_itself_and_a_digit_answers_it(desk, watching, session):
    watching.wait_for("turngate watch")
    submit(desk, session)
    opened(watching, session)
    watching.wait_for("Which migration first?")
    watching.press("1")

    watching.wait_for(f"{session}: Run 31 first")
    assert answer_of(desk, session)["actor"] == "tester"
    watching.press("q")
    assert watching.end() == 0


def test_whoever_comes_second_learns_who_was_first(desk, watching, session):
    submit(desk, session)
    opened(watching, session)
    assert inside("turn", "answer", session, "1", "3", "--identity", "bob", env=desk).code == 0

    watching.wait_for("bob answered this card: Stop here")
    watching.press("1")
    watching.wait_for("q goes back")
    assert answer_of(desk, session)["actor"] == "bob"


def test_a_newer_turn_takes_the_card_away_and_says_so(desk, watching, session):
    submit(desk, session)
    opened(watching, session)
    submit(desk, session, turn=2)

    watching.wait_for("turn 2 has begun")


def test_what_an_editor_makes_of_a_collected_answer_becomes_the_prompt(desk, tmp_path, session):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "Run both, 31 first." > "$1"\n')
    editor.chmod(0o755)
    watching = Watching(desk | {"VISUAL": str(editor)})
    submit(desk, session)
    opened(watching, session)
    watching.press("2")
    watching.wait_for("your text is sent")
    watching.close()

    wait_until_sync(lambda: "Run both, 31 first." in inside("events", "tail", "--once", "--json", env=desk).out)


def test_a_question_is_answered_part_by_part(desk, watching, session):
    arguments = {
        "questions": [
            {
                "header": "Store",
                "question": "Where?",
                "options": [{"label": "Disk", "description": "survives"}, {"label": "Memory", "description": "fast"}],
            }
        ]
    }
    asked = inside("question", "ask", session, env=desk, stdin=json.dumps(arguments).encode())
    assert asked.code == 0, asked.err
    opened(watching, session)
    watching.press("2\r")

    watching.wait_for("has your answer")
    outcome = inside("question", "show", session, "--json", env=desk).json()["outcome"]
    assert outcome["resolution"]["answers"] == [{"selections": ["Memory"]}]


def test_a_paused_objective_is_guided_and_resumed(desk, watching, session):
    assert inside("esm", "create", session, "Make it pass", env=desk).code == 0
    assert inside("esm", "pause", session, env=desk).code == 0
    opened(watching, session)
    watching.press("guse the cache\r")
    watching.wait_for("has your guidance")
    watching.press("p")

    watching.wait_for("goes on")
    state = inside("esm", "show", session, "--json", env=desk).json()["state"]
    assert [each["text"] for each in state["guidance"]] == ["use the cache"]
    assert "status" not in state["objective"], "active is the default"
    assert inside("esm", "clear", session, env=desk).code == 0


def test_an_objective_s_text_is_edited_in_an_editor(desk, tmp_path, session):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ncat "$1" >> "$0.saw"; echo "Make all of it pass" > "$1"\n')
    editor.chmod(0o755)
    assert inside("esm", "create", session, "Make it pass", env=desk).code == 0
    assert inside("esm", "pause", session, env=desk).code == 0
    watching = Watching(desk | {"VISUAL": str(editor)})
    opened(watching, session)
    watching.press("e")
    watching.wait_for("has your text")
    watching.close()

    assert (tmp_path / "editor.saw").read_text() == "Make it pass"
    state = inside("esm", "show", session, "--json", env=desk).json()["state"]
    assert state["objective"]["objective"] == "Make all of it pass"
    assert inside("esm", "clear", session, env=desk).code == 0


def test_an_edited_text_that_is_not_taken_is_kept(desk, tmp_path, session):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nhead -c 70000 /dev/zero | tr '\\0' x > \"$1\"\n")
    editor.chmod(0o755)
    assert inside("esm", "create", session, "Make it pass", env=desk).code == 0
    assert inside("esm", "pause", session, env=desk).code == 0
    watching = Watching(desk | {"VISUAL": str(editor), "TMPDIR": str(tmp_path)})
    opened(watching, session)
    watching.press("e")
    watching.wait_for("is kept in")
    watching.close()

    (kept,) = tmp_path.glob("turngate-*.md")
    assert kept.read_text() == "x" * 70_000
    assert inside("esm", "clear", session, env=desk).code == 0


def test_objectives_that_wait_for_a_runner_are_told_with_what_starts_one(desk, watching, session):
    pool = f"a-{session}"
    assert inside("esm", "create", session, "Make it pass", "--pool", pool, env=desk).code == 0

    watching.wait_for(f"objectives wait for a runner: turngate runner --pool {pool}")
    assert inside("esm", "clear", session, env=desk).code == 0


def test_hostile_text_does_nothing_to_the_terminal(desk, watching, session):
    submit(desk, session, headline=f"{ESCAPES} 100% <b>")
    opened(watching, session)

    watching.wait_for("\\x1b[31mred")


def test_a_signal_gives_the_terminal_back(desk, watching):
    watching.wait_for("turngate watch")
    watching.process.terminate()

    assert watching.end() == 0


def test_where_a_program_reads_each_change_is_a_line(desk, tmp_path, session):
    with Background(tmp_path, "watch", "--json", env=desk) as watch:
        wait_until_sync(lambda: inside("inbox", env=desk).code == 0)
        submit(desk, session)
        watch.wait_for(session)
        inside("turn", "answer", session, "1", "3", env=desk)
        watch.wait_for('"change":"gone"')
        assert watch.end(2) == 130

    told = [json.loads(line) for line in watch.out.splitlines()]
    assert [t["change"] for t in told if t["entry"]["session"] == session] == ["waits", "gone"]


def test_a_pipe_gets_plain_lines(desk, session):
    submit(desk, session, headline=ESCAPES)

    outcome = inside("watch", "--timeout", "0.5", env=desk)

    assert outcome.code == 0
    lines = [line for line in outcome.out.splitlines() if session in line]
    assert len(lines) == 1
    assert lines[0].startswith("+ ")
    assert lines[0].isprintable()


def test_no_server_is_said_before_the_screen_is_taken(tmp_path):
    outcome = inside("watch", env={"TURNGATE_NATS_URL": "nats://127.0.0.1:1", "TURNGATE_CONNECT_TIMEOUT_MS": "300"})

    assert outcome.code == 3
    assert outcome.out == ""
