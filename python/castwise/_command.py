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
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["eval"] and any(word == "--dask" or word.startswith("--dask=") for word in given):
        return _on_workers(given[1:])
    return _core.command(["castwise", *given])


def _on_workers(arguments: Sequence[str]) -> int:
    """``castwise eval … --dask ADDRESS``, which is Python's alone."""
    try:
        from .dask._models import main as spread
    except ImportError as e:
        sys.stderr.write(f"error: --dask needs Dask: pip install 'dask[array]' distributed ({e})\n")
        return 2
    return spread(arguments)
