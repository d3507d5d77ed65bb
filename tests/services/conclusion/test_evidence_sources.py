"""Where evidence comes from beside the runner's files: start records, memory validators and project registries."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.running import System
from tests.services.conclusion.conftest import Start
from tests.services.conclusion.tasks import concluded, finished, judged, success
from turngate.conclusion.projects import ProjectFile, ProjectsUnreadable, project_bucket_key
from turngate.evidence import start_record
from turngate_contracts import codec
from turngate_contracts.tasks import CheckMemoryRefs, MemoryRefsChecked
from turngate_protocol.conclusion import Project


class TestStrictChecking:
    async def test_a_file_that_did_not_change_is_unproven(self, start: Start, root: Path):
        async with start(evidence="changed", stat_timeout_ms=15_000) as system:
            runner = await system.client()
            await runner.serve_stat([root])
            os.utime(root / "made.txt", (1_000, 1_000))
            noted = start_record()
            (root / "new.txt").write_text("new")

            await runner.finish_task("parent", finished("t1", success("made.txt", "new.txt"), root), start=noted)

            conclusion, gate = judged(await concluded(runner))
            assert conclusion.status == "partial"
            assert gate.unproven_artifacts == ("made.txt",)
            assert gate.verified_artifacts == ("new.txt",)
            assert any("did not change" in warning for warning in conclusion.warnings)

    async def test_a_file_that_was_only_touched_is_unproven_by_its_hash(self, start: Start, root: Path):
        async with start(evidence="changed", stat_timeout_ms=15_000) as system:
            runner = await system.client()
            await runner.serve_stat([root])
            (root / "other.txt").write_text("before")
            noted = start_record([root / "made.txt", root / "other.txt"], hashes=True)
            (root / "made.txt").touch()
            (root / "other.txt").write_text("after!")

            await runner.finish_task("parent", finished("t1", success("made.txt", "other.txt"), root), start=noted)

            _, gate = judged(await concluded(runner))
            assert gate.unproven_artifacts == ("made.txt",)
            assert gate.verified_artifacts == ("other.txt",)

    async def test_without_a_start_record_it_says_that_it_judged_nothing(self, start: Start, root: Path):
        async with start(evidence="changed", stat_timeout_ms=15_000) as system:
            runner = await system.client()
            await runner.serve_stat([root])

            await runner.finish_task("parent", finished("t1", success("made.txt"), root))

            conclusion, _ = judged(await concluded(runner))
            assert conclusion.status == "success"
            assert "no record of the start" in conclusion.warnings[0]

    async def test_age_does_not_count_by_default(self, system: System, root: Path):
        runner = await system.client()
        await runner.serve_stat([root])
        os.utime(root / "made.txt", (1_000, 1_000))

        await runner.finish_task("parent", finished("t1", success("made.txt"), root), start=start_record())

        assert judged(await concluded(runner))[0].status == "success"


class TestMemoryRefs:
    async def test_without_a_validator_they_are_not_checked(self, system: System):
        runner = await system.client()
        await runner.finish_task("parent", finished("t1", success(memory_refs=("kb/a",))))

        conclusion, gate = judged(await concluded(runner))
        assert conclusion.status == "success"
        assert (gate.uncheckable_memory_refs, gate.unanswered) == (("kb/a",), 0)

    async def test_a_bucket_knows_its_keys_and_nothing_else(self, start: Start, namespace: str):
        async with start(memory_bucket=f"{namespace}-memory") as system:
            await _make_bucket(system, f"{namespace}-memory")
            await _put(system, f"{namespace}-memory", "kb/a", b"remembered")
            await _put(system, f"{namespace}-memory", "kb.b", b"remembered")
            await _put(system, f"{namespace}-memory", "kb/gone", b"", deleted=True)
            cited = ("kb/a", "kb.b", "kb/gone", "kb/none", "*", ">", "kb.*", ".", "a b", "x" * 1_001, "kb/a")
            runner = await system.client()

            await runner.finish_task("parent", finished("t1", success(memory_refs=cited)))

            conclusion, gate = judged(await concluded(runner))
            assert conclusion.status == "partial"
            assert gate.verified_memory_refs == ("kb/a", "kb.b", "kb/a")
            assert gate.missing_memory_refs == ("kb/gone", "kb/none", "*", ">", "kb.*", ".", "a b")
            assert gate.uncheckable_memory_refs == ("x" * 1_001,)

    async def test_a_bucket_that_is_not_there_proves_nothing(self, start: Start, namespace: str):
        async with start(memory_bucket=f"{namespace}-none") as system:
            runner = await system.client()
            await runner.finish_task("parent", finished("t1", success(memory_refs=("kb/a", "kb/b"))))

            conclusion, gate = judged(await concluded(runner))
            assert conclusion.status == "success"
            assert (gate.uncheckable_memory_refs, gate.unanswered) == (("kb/a", "kb/b"), 2)
            assert "no answer about 2" in conclusion.warnings[0]

    async def test_a_service_says_which_exist_and_may_leave_some_open(self, start: Start, namespace: str):
        async with start(memory_subject=f"{namespace}.memory.check") as system:
            await _answer_checks(system, lambda refs: MemoryRefsChecked(known=refs[:1], unknown=(refs[1], "other")))
            runner = await system.client()

            await runner.finish_task("parent", finished("t1", success(memory_refs=("a", "b", "c"))))

            _, gate = judged(await concluded(runner))
            assert gate.verified_memory_refs == ("a",)
            assert gate.missing_memory_refs == ("b",)
            assert gate.uncheckable_memory_refs == ("c",)

    async def test_many_refs_are_asked_about_in_batches(self, start: Start, namespace: str):
        async with start(memory_subject=f"{namespace}.memory.check", stat_timeout_ms=15_000) as system:
            sizes: list[int] = []

            def answer(refs: tuple[str, ...]) -> MemoryRefsChecked:
                sizes.append(len(refs))
                return MemoryRefsChecked(known=refs)

            await _answer_checks(system, answer)
            runner = await system.client()

            await runner.finish_task(
                "parent", finished("t1", success(memory_refs=tuple(f"r{n}" for n in range(2_500))))
            )

            _, gate = judged(await concluded(runner))
            assert len(gate.verified_memory_refs) == 2_500
            assert sizes == [1_000, 1_000, 500]

    @pytest.mark.parametrize("answer", [None, b"rubbish", b"\xff", b'{"known": 7}'])
    async def test_a_service_that_is_silent_or_talks_rubbish_proves_nothing(
        self, start: Start, namespace: str, answer: bytes | None
    ):
        async with start(memory_subject=f"{namespace}.memory.check", stat_timeout_ms=400) as system:

            def on_check(_subject: bytes, reply: bytes, _body: bytes, _head: bytes) -> None:
                if answer is not None:
                    system.connection.send(reply.decode(), answer)

            await system.connection.listen(f"{namespace}.memory.check", on_check)
            runner = await system.client()
            await runner.finish_task("parent", finished("t1", success(memory_refs=("a",))))

            conclusion, gate = judged(await concluded(runner))
            assert conclusion.status == "success"
            assert gate.unanswered == 1


class TestProjects:
    async def test_a_file_names_them(self, start: Start, tmp_path: Path):
        file = tmp_path / "projects.yaml"
        file.write_text("/srv/web/: {id: web-7, name: Web shop}\n/srv/api: off\n")
        async with start(projects_file=str(file)) as system:
            runner = await system.client()
            for number, path in enumerate(("/srv/web", "/srv/./api/", "/srv/none")):
                await runner.finish_task("parent", finished(f"t{number}", "done", project_path=path, project_id="mine"))

            states = [await concluded(runner, f"t{number}") for number in range(3)]

            assert [(s.record.project_id, s.record.project_name) for s in states] == [
                ("web-7", "Web shop"),
                ("mine", "off"),
                ("mine", "none"),
            ]
            assert " project=Web shop " in states[0].message

    async def test_a_bucket_names_them(self, start: Start, namespace: str):
        async with start(projects_bucket=f"{namespace}-projects") as system:
            await _make_bucket(system, f"{namespace}-projects")
            entry = json.dumps({"id": "web-7", "name": "Web shop"}).encode()
            await _put(system, f"{namespace}-projects", project_bucket_key("/srv/web"), entry)
            await _put(system, f"{namespace}-projects", project_bucket_key("/srv/bad"), b"[]")
            runner = await system.client()
            for number, path in enumerate(("/srv/web/", "/srv/bad", "/srv/none")):
                await runner.finish_task("parent", finished(f"t{number}", "done", project_path=path))

            states = [await concluded(runner, f"t{number}") for number in range(3)]

            assert [(s.record.project_id, s.record.project_name) for s in states] == [
                ("web-7", "Web shop"),
                ("", "bad"),
                ("", "none"),
            ]

    async def test_a_bucket_that_is_not_there_names_none(self, start: Start, namespace: str):
        async with start(projects_bucket=f"{namespace}-none") as system:
            runner = await system.client()
            await runner.finish_task("parent", finished("t1", "done", project_path="/srv/web"))
            assert (await concluded(runner)).record.project_name == "web"

    @pytest.mark.parametrize(
        "text",
        [
            "[]",
            "a: {",
            "\0",
            "relative: x",
            "/a: [1]",
            "/a: {id: [1]}",
            "/a: {url: x}",
            f"/a: {'x' * 257}",
            r'/a: "half a pair: \ud800"',
            r'/a: {name: "half a pair: \ud800"}',
            r'"/a\ud800": web',
            f"/a: {{id: {'x' * 257}}}",
            "7",
        ],
    )
    def test_a_file_that_is_none_is_told_with_its_name(self, tmp_path: Path, text: str):
        file = tmp_path / "projects.yaml"
        file.write_text(text)
        with pytest.raises(ProjectsUnreadable, match=r"projects\.yaml"):
            ProjectFile.read(file)

    def test_a_file_that_is_missing_or_not_utf_8_is_told_too(self, tmp_path: Path):
        with pytest.raises(ProjectsUnreadable):
            ProjectFile.read(tmp_path / "none.yaml")
        (tmp_path / "bad.yaml").write_bytes(b"/a: \xff")
        with pytest.raises(ProjectsUnreadable):
            ProjectFile.read(tmp_path / "bad.yaml")

    async def test_an_entry_may_have_an_id_only(self, tmp_path: Path):
        file = tmp_path / "projects.yaml"
        file.write_text("/a: {id: '007'}")
        assert await ProjectFile.read(file).find("/a") == Project("007")


async def _answer_checks(system: System, answer: Callable[[tuple[str, ...]], MemoryRefsChecked]) -> None:
    def on_check(_subject: bytes, reply: bytes, body: bytes, _head: bytes) -> None:
        request = codec.decode(body, CheckMemoryRefs, "a CheckMemoryRefs")
        system.connection.send(reply.decode(), codec.encode(answer(request.refs)))

    await system.connection.listen(f"{system.settings.namespace}.memory.check", on_check)


async def _make_bucket(system: System, bucket: str) -> None:
    config: dict[str, Any] = {
        "name": f"KV_{bucket}",
        "subjects": [f"$KV.{bucket}.>"],
        "allow_direct": True,
        "max_msgs_per_subject": 1,
    }
    await system.requester.api(f"STREAM.CREATE.KV_{bucket}", config)


async def _put(system: System, bucket: str, key: str, value: bytes, *, deleted: bool = False) -> None:
    head = b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n" if deleted else b""
    await system.requester.publish(f"$KV.{bucket}.{key}", value, head)
