"""`solocron demo`: five replicas share the work, one is killed, one is frozen."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    from solocron import demo

    demo.add_arguments(parser)
    parser._option_string_actions["--store"].default = SUPPRESS  # `--store` may also stand before the command


def execute(args: Namespace) -> int:
    from solocron.demo import main

    return int(main(args))
