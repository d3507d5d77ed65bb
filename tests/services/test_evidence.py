"""What this machine says about cited paths: only under the roots, and never held up by what a path turns out to be."""

import hashlib
import os
import socket
import threading
from pathlib import Path

import pytest

from turngate import evidence
from turngate.evidence import Evidence, RootUnusable, start_record
from turngate_contracts.errors import ErrorCode
from turngate_protocol.conclusion import RefState, StatAnswer

PRESENT, MISSING, UNCHECKABLE = RefState.PRESENT, RefState.MISSING, RefState.UNCHECKABLE


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "dir").mkdir(parents=True)
    (root / "file").write_text("hello")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    return root


def look(root: Path, path: str | Path, *, hashes: bool = False) -> StatAnswer:
    return Evidence([root]).look([str(path)], hashes=hashes)[0]


def state(root: Path, path: str | Path) -> RefState:
    return look(root, path).state


def test_a_file_is_present_with_its_size_and_time(root: Path):
    os.utime(root / "file", ns=(0, 1_700_000_000_123_999_999))
    assert look(root, root / "file") == StatAnswer(PRESENT, 5, 1_700_000_000_123)


def test_a_directory_is_present_without_a_size(root: Path):
    assert look(root, root / "dir").state is PRESENT
    assert look(root, root / "dir").size is None
    assert state(root, root) is PRESENT


def test_what_does_not_exist_under_a_root_is_missing(root: Path):
    assert state(root, root / "nothing") is MISSING
    assert state(root, root / "no/such/dir/file") is MISSING


def test_answers_come_in_the_order_of_the_questions(root: Path):
    paths = [str(root / name) for name in ("nothing", "file", "nothing", "dir")]
    assert [a.state for a in Evidence([root]).look(paths)] == [MISSING, PRESENT, MISSING, PRESENT]


@pytest.mark.parametrize(
    "path",
    ["outside/secret", "outside/nothing", "root-sibling", "root/../outside/secret", "root/dir/../file", "root/.."],
)
def test_what_is_outside_or_climbs_is_uncheckable_whether_it_exists_or_not(root: Path, path: str):
    assert state(root, f"{root.parent}/{path}") is UNCHECKABLE


@pytest.mark.parametrize(
    "path", ["", "file", "./file", "~/file", "/\0", "/etc/passwd", "/proc/self/environ", "/dev/zero"]
)
def test_relative_and_foreign_paths_are_uncheckable(root: Path, path: str):
    assert state(root, path) is UNCHECKABLE


def test_a_path_with_a_nul_or_half_a_character_is_uncheckable(root: Path):
    assert state(root, f"{root}/a\0b") is UNCHECKABLE
    assert state(root, f"{root}/\ud800") in (UNCHECKABLE, MISSING)


def test_a_path_longer_than_any_is_uncheckable(root: Path):
    assert state(root, f"{root}/{'x' * 5_000}") is UNCHECKABLE
    assert state(root, f"{root}/{'x/' * 5_000}") is UNCHECKABLE


def test_a_file_taken_for_a_directory_is_not_missing(root: Path):
    assert state(root, root / "file" / "below") is UNCHECKABLE


class TestLinks:
    def test_one_that_stays_inside_is_followed(self, root: Path):
        (root / "link").symlink_to(root / "file")
        assert look(root, root / "link").size == 5

    def test_one_that_leads_outside_is_uncheckable_whatever_is_there(self, root: Path):
        (root / "out").symlink_to(root.parent / "outside")
        assert state(root, root / "out") is UNCHECKABLE
        assert state(root, root / "out" / "secret") is UNCHECKABLE
        assert state(root, root / "out" / "nothing") is UNCHECKABLE

    def test_a_dangling_one_is_missing_inside_and_uncheckable_outside(self, root: Path):
        (root / "in").symlink_to(root / "gone")
        (root / "out").symlink_to(root.parent / "gone")
        assert state(root, root / "in") is MISSING
        assert state(root, root / "out") is UNCHECKABLE

    def test_a_circle_is_uncheckable(self, root: Path):
        (root / "a").symlink_to(root / "b")
        (root / "b").symlink_to(root / "a")
        assert state(root, root / "a") is UNCHECKABLE

    def test_a_root_may_be_one(self, root: Path):
        (root.parent / "alias").symlink_to(root)
        assert state(root.parent / "alias", root.parent / "alias" / "file") is PRESENT
        assert state(root.parent / "alias", root / "file") is PRESENT


class TestSpecialFiles:
    def test_a_fifo_never_blocks(self, root: Path):
        os.mkfifo(root / "fifo")
        done = threading.Event()

        def ask() -> None:
            assert look(root, root / "fifo", hashes=True) == look(root, root / "fifo")
            done.set()

        threading.Thread(target=ask, daemon=True).start()
        assert done.wait(10)
        assert look(root, root / "fifo").state is PRESENT

    def test_a_socket_is_present_and_not_hashed(self, root: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(root)  # the path of a socket must be short
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket")
            assert look(root, root / "socket", hashes=True).hash is None
            assert state(root, root / "socket") is PRESENT

    def test_a_device_is_looked_at_and_not_opened(self):
        assert look(Path("/dev"), "/dev/null", hashes=True).hash is None
        assert state(Path("/dev"), "/dev/null") is PRESENT


class TestHashes:
    def test_content_is_hashed_when_it_is_asked_for(self, root: Path):
        expected = f"sha256:{hashlib.sha256(b'hello').hexdigest()}"
        assert look(root, root / "file", hashes=True).hash == expected
        assert look(root, root / "file").hash is None

    def test_an_empty_file_has_a_hash_too(self, root: Path):
        (root / "empty").touch()
        assert look(root, root / "empty", hashes=True).hash is not None

    def test_a_large_file_is_not_hashed(self, root: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(evidence, "MAX_HASHED_FILE_BYTES", 4)
        answer = look(root, root / "file", hashes=True)
        assert (answer.state, answer.size, answer.hash) == (PRESENT, 5, None)

    def test_one_call_hashes_so_much_and_no_more(self, root: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(evidence, "MAX_HASHED_BYTES", 12)
        answers = Evidence([root]).look([str(root / "file")] * 4, hashes=True)
        assert [a.hash is not None for a in answers] == [True, True, False, False]

    def test_a_file_that_can_not_be_read_is_present_without_a_hash(self, root: Path):
        (root / "file").chmod(0)
        answer = look(root, root / "file", hashes=True)
        assert answer.state is PRESENT
        assert answer.hash is None or os.geteuid() == 0


class TestRoots:
    @pytest.mark.parametrize("bad", ["relative", "", "/no/such/directory", "/dev/null", "/\0"])
    def test_what_is_no_directory_is_refused(self, bad: str):
        with pytest.raises(RootUnusable) as error:
            Evidence([bad])
        assert error.value.code is ErrorCode.INVALID

    def test_several_are_taken_and_the_same_one_once(self, root: Path):
        outside = root.parent / "outside"
        both = Evidence([root, outside, root])
        assert both.roots == (str(root.resolve()), str(outside.resolve()))
        assert both.look([str(outside / "secret")])[0].state is PRESENT

    def test_none_answers_nothing(self, root: Path):
        assert Evidence([]).look([str(root / "file")])[0].state is UNCHECKABLE

    def test_the_whole_machine_may_be_one(self, root: Path):
        assert Evidence(["/"]).look([str(root / "file")])[0].state is PRESENT

    def test_one_that_is_gone_makes_its_files_uncheckable_not_missing(self, root: Path):
        known = Evidence([root])
        root.rename(root.parent / "moved")
        assert known.look([str(root / "file")])[0].state is UNCHECKABLE


class TestStartRecord:
    def test_it_holds_the_files_that_were_named_and_a_time_before_any_change(self, root: Path):
        noted = start_record([root / "file", root / "nothing"])
        (root / "new").touch()

        assert noted.files[str(root / "file")].size == 5
        assert noted.files[str(root / "nothing")].state is MISSING
        created = look(root, root / "new").mtime_ms
        assert created is not None
        assert created >= noted.started_at_ms

    def test_it_may_hold_hashes(self, root: Path):
        assert start_record([root / "file"], hashes=True).files[str(root / "file")].hash is not None


def test_five_thousand_paths_take_little_time(root: Path):
    paths = [str(root / f"file-{n}") for n in range(5_000)]
    assert {a.state for a in Evidence([root]).look(paths)} == {MISSING}
