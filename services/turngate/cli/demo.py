"""`turngate demo`: the hook of the fleet that `turngate.demo` plays; it is imported only when it is asked for."""

from importlib import import_module

from turngate.cli.commands import Parser


def add_arguments(parser: Parser) -> None:
    """Have the demo add its own arguments."""
    play = import_module("turngate.demo.play")
    play.add_arguments(parser)
    parser.runs(play.run)
