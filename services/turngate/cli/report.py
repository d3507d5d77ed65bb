"""`turngate report`: checking, drawing and describing reports, without a server."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.cli.commands import NOT_OK, OK, Parser
from turngate.cli.config import add_settings, load
from turngate.cli.inputs import STDIN, read_bytes

if TYPE_CHECKING:
    from turngate.terminal import Terminal
    from turngate_contracts.messages import ReportChecked


def add_arguments(parser: Parser) -> None:
    """Add `check`, `render` and `schema`."""
    parser.explain(
        "Work with end-of-turn reports: JSON of a status, a headline and typed blocks. Needs no server.",
        """
        turngate report schema                     what a model should be told
        turngate report check report.json          would it be accepted?
        turngate report render report.json         as a person sees it
        """,
    )
    _add_check(parser.add_command("check", "say whether reports would be accepted, and every problem"))
    _add_render(parser.add_command("render", "draw reports as cards"))
    _add_schema(parser.add_command("schema", "print the JSON Schema of a report"))


def _add_files(parser: Parser) -> None:
    parser.add_argument("files", nargs="*", default=[STDIN], metavar="FILE", help="reports; - or none: standard input")


def _add_check(parser: Parser) -> None:
    parser.explain(
        """
        Check reports as the gate would, recording nothing: every problem is named, with
        its place as a JSON Pointer. Exit code 1 when any of them would be rejected.
        """,
        """
        turngate report check report.json
        turngate report check --mutated report.json    the turn changed something
        my-agent | turngate report check --json
        """,
    )
    _add_files(parser)
    parser.add_argument(
        "--mutated", action="store_true", help="the turn changed something: success needs a verification"
    )
    parser.add_json("one line a report: {file, ok, problems, text, report, choices}")
    add_settings(parser, "max_blocks")
    parser.runs(_check)


def _add_render(parser: Parser) -> None:
    parser.explain(
        """
        Draw reports as cards, in colour on a terminal. A report need not be valid for
        that; what is no report at all is rejected with its problems.
        """,
        """
        turngate report render report.json
        turngate report render --expand go-test --hide-not-run report.json
        turngate report render --plain report.json     as text, everything expanded
        """,
    )
    _add_files(parser)
    parser.add_argument("--expand", action="append", default=[], metavar="ID", help="show the details of this block")
    parser.add_argument("--expand-all", action="store_true", help="show all details")
    parser.add_argument("--hide-not-run", action="store_true", help="fold away checks that were not run")
    parser.add_argument("--plain", action="store_true", help="plain text without a frame, everything expanded")
    parser.add_json("one line a report: {file, lines} with kind, text, block, block_id and option of each line")
    parser.runs(_render)


def _add_schema(parser: Parser) -> None:
    parser.explain(
        "Print the JSON Schema that a model's Report tool declares.",
        """
        turngate report schema > report.schema.json
        turngate report schema --max-blocks 8
        """,
    )
    add_settings(parser, "max_blocks")
    parser.runs(_schema)


def _check(args: argparse.Namespace) -> int:
    from turngate.terminal import Terminal

    max_blocks = load(args, os.environ, Path.cwd()).max_blocks
    terminal = Terminal()
    accepted = True
    for name in args.files:
        checked = check(read_bytes(name), mutated=args.mutated, max_blocks=max_blocks)
        accepted = accepted and checked.ok
        if args.json:
            _print_checked(name, checked)
        else:
            _show_checked(terminal, "standard input" if name == STDIN else name, checked)
    return OK if accepted else NOT_OK


def check(data: bytes, *, mutated: bool, max_blocks: int) -> "ReportChecked":
    """Return what the gate would say of a report, with the rules that are given."""
    from msgspec import Raw

    from turngate_contracts import codec
    from turngate_contracts.messages import ReportChecked
    from turngate_protocol.report import Report, Rules, buried_proposal_hint, choices, decode, normalise, validate
    from turngate_protocol.report.session import MAX_PROBLEMS
    from turngate_protocol.report.texts import rejection_text

    decoded = decode(data)
    hint = False
    if isinstance(decoded, Report):
        report = normalise(decoded)
        problems = validate(report, Rules(max_blocks, mutated))
        if not problems:
            return ReportChecked(True, report=Raw(codec.encode(report)), choices=tuple(choices(report)))
        hint = buried_proposal_hint(report)
    else:
        problems = decoded
    kept = tuple(problems[:MAX_PROBLEMS])
    return ReportChecked(False, kept, len(problems), hint, rejection_text(kept, len(problems), hint))


def _print_checked(name: str, checked: "ReportChecked") -> None:
    from turngate.cli.output import print_json
    from turngate_contracts.messages import ReportChecked

    class FileChecked(ReportChecked, frozen=True, omit_defaults=True):
        file: str = ""

    fields = {field: getattr(checked, field) for field in checked.__struct_fields__}
    print_json(FileChecked(**fields, file=_shown(name)))


def _shown(name: str) -> str:
    # The name of a file need not be UTF-8; JSON has to be.
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _show_checked(terminal: "Terminal", name: str, checked: "ReportChecked") -> None:
    if not checked.ok:
        terminal.line(terminal.paint("rejected", "red", "bold"), f"  {name}")
        terminal.text(checked.text)
        return
    from turngate_protocol.report import Report, decode

    report = decode(bytes(checked.report))
    facts = ""
    if isinstance(report, Report):
        blocks = len(report.blocks)
        status = report.task_status.replace("_", " ")
        facts = f": {status}, {blocks} {'block' if blocks == 1 else 'blocks'}"
    asks = f", asks with {len(checked.choices)} options" if checked.choices else ""
    terminal.line(terminal.paint("accepted", "green", "bold"), f"  {name}{facts}{asks}")


def _render(args: argparse.Namespace) -> int:
    from turngate.cli.output import print_json
    from turngate.terminal import Terminal
    from turngate_protocol.report import RenderOptions, Report, decode, normalise, plain_text, render

    terminal = Terminal()
    options = RenderOptions(frozenset(args.expand), args.expand_all, args.hide_not_run)
    code = OK
    for name in args.files:
        data = read_bytes(name)
        decoded = decode(data)
        if not isinstance(decoded, Report):
            code = NOT_OK
            checked = check(data, mutated=False, max_blocks=0)
            if args.json:
                _print_checked(name, checked)
            else:
                _show_checked(terminal, name, checked)
            continue
        report = normalise(decoded)
        if args.json:
            print_json({"file": _shown(name), "lines": render(report, options)})
        elif args.plain:
            terminal.text(plain_text(report))
        else:
            terminal.card(report, options, title=name if len(args.files) > 1 else "")
    return code


def _schema(args: argparse.Namespace) -> int:
    from turngate.cli.output import to_json
    from turngate_protocol.report import json_schema

    max_blocks = load(args, os.environ, Path.cwd()).max_blocks
    sys.stdout.write(f"{to_json(json_schema(max_blocks), indent=True)}\n")
    return OK
