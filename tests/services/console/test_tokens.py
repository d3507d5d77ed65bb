"""What says who may, piece by piece: host names, the file of tokens, the secret, sessions, and counted attempts."""

import stat
from pathlib import Path

import pytest

from turngate.console.guard import name_of
from turngate.console.limits import IN_ALL, PER_ADDRESS, REMEMBERED, WINDOW_S, Attempts
from turngate.console.sessions import Sessions, load_secret
from turngate.console.tokens import Role, TokenFile, TokenFileError


def test_a_host_is_its_name_without_its_port() -> None:
    assert name_of("Example.COM:8420") == "example.com"
    assert name_of("[::1]:8420") == "::1"
    assert name_of("[::1") is None
    assert name_of("a:b") is None
    assert name_of("") is None


def test_the_file_keeps_no_token_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "new" / "tokens.json")

    token = file.add("ann", Role.VIEWER, 1)

    assert token not in file.path.read_text()
    assert len(token) > 40
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    found = file.match(token)
    assert found is not None
    assert (found.name, found.role) == ("ann", Role.VIEWER)
    assert file.match(f"{token}x") is None
    assert file.match("\ud800") is None


def test_a_file_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    file.add("ann", Role.VIEWER, 1)
    file.path.chmod(0o644)

    with pytest.raises(TokenFileError, match="chmod 600"):
        file.tokens()


def test_a_file_of_something_else_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text("[]")
    path.chmod(0o600)

    with pytest.raises(TokenFileError, match="move it away"):
        TokenFile(path).tokens()


def test_a_name_has_one_token(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    file.add("ann", Role.VIEWER, 1)

    with pytest.raises(TokenFileError, match="ann has one"):
        file.add("ann", Role.OPERATOR, 2)


def test_a_change_by_another_process_is_seen_at_once(tmp_path: Path) -> None:
    ours, theirs = TokenFile(tmp_path / "tokens.json"), TokenFile(tmp_path / "tokens.json")
    ours.add("ann", Role.VIEWER, 1)

    added = theirs.add("bob", Role.VIEWER, 2)

    assert ours.match(added) is not None
    theirs.remove("bob")
    assert ours.match(added) is None


def test_the_secret_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret"

    made = load_secret(path)

    assert load_secret(path) == made
    assert len(made) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["secret"]


def test_a_session_s_form_token_is_its_own() -> None:
    sessions = Sessions(b"x" * 32)
    one, other = sessions.read(sessions.write(sessions.open())), sessions.read(sessions.write(sessions.open()))

    assert sessions.is_csrf(one, sessions.csrf(one))
    assert not sessions.is_csrf(other, sessions.csrf(one))
    assert not sessions.is_csrf(one, "é")


def test_strangers_who_try_many_tokens_keep_nobody_out_who_had_a_right_one() -> None:
    attempts = Attempts(lambda: 100.0)
    attempts.succeeded("office")
    for number in range(IN_ALL):
        attempts.failed(f"stranger-{number}")

    assert attempts.wait_s("another") == WINDOW_S + 1
    assert attempts.wait_s("office") == 0
    for _ in range(PER_ADDRESS):
        attempts.failed("office")
    assert attempts.wait_s("office") == WINDOW_S + 1, "its own wrong tokens count"


def test_attempts_are_forgotten_after_a_while_and_bounded_in_number() -> None:
    now = 1000.0
    attempts = Attempts(lambda: now)
    for _ in range(PER_ADDRESS):
        attempts.failed("a")

    assert attempts.wait_s("a") == WINDOW_S + 1
    assert attempts.wait_s("b") == 0
    now += WINDOW_S + 1
    assert attempts.wait_s("a") == 0
    for number in range(REMEMBERED + 10):
        attempts.failed(str(number))
    assert len(attempts._failures) == REMEMBERED
    assert attempts.wait_s("new") > 0, f"more than {IN_ALL} in all"
