"""The command ``castwise``, whose code is in ``castwise._core``."""

from __future__ import annotations

import sys
from typing import Sequence

from . import _core


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status, as the binary does.

    A signal such as Ctrl-C ends the process, and its temporary files are removed.

    Args:
        arguments: What stands after the command's name; by default the process's arguments.

    >>> main(["table", "add", "--rules", "nonsense"])
    2
    """
    return _core.command(["castwise", *(sys.argv[1:] if arguments is None else arguments)])
