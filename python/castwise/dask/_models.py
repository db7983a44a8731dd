"""``castwise eval … --dask ADDRESS``: the tensors of model files, computed by workers that see the same files.

Guarantees: everything is typed before a worker begins; the output is written by the command on this machine, so it is whole or
absent, and has the tensors of a run without ``--dask``, bit for bit; shards may hold others of them. Does not: send tensors over
the network, or keep parts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Iterator, Sequence

from .. import _core
from .._core import __version__
from ._block import other_version

#: What a usage error exits with, as in the command.
USAGE = 2

#: What only the report of a dry run has.
DRY = ("dry_run", "existing", "copied", "named")

#: The tensors that each name gives, with their bytes; several if the expression has several results.
Written = dict[str, dict[str, int]]

#: Parts for each worker: the last ones to finish keep the others waiting less.
PARTS = 4


class Failed(Exception):
    """A run of the command that failed, with its exit status and what it printed."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, text)
        self.status, self.text = status, text


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise Failed(USAGE, f"error: {message}\n")


def _parser() -> _Parser:
    """The options that decide where results go; all others are the command's."""
    parser = _Parser(add_help=False, allow_abbrev=False, prog="castwise eval")
    parser.add_argument("--dask")
    # Its options are among the others already.
    parser.add_argument("--config")
    parser.add_argument("--manifest", action="store_true")
    parser.add_argument("--fix", nargs="?", const="lossy")
    parser.add_argument("-o", "--output")
    parser.add_argument("-i", "--input", action="append", default=[])
    parser.add_argument("-f", "--force", action="store_true")
    parser.add_argument("--max-shard-size")
    parser.add_argument("--no-copy-rest", action="store_true")
    parser.add_argument("--select")
    parser.add_argument("--skip")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-q", "--quiet", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--explain", action="store_true")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Runs ``castwise eval`` with the arguments after ``eval``, one of which is ``--dask``, and returns the exit status."""
    try:
        with _ending_on_signals():
            asked, rest = _parser().parse_known_args(_with_file(arguments))
            return _run(asked, rest)
    except Failed as failed:
        sys.stderr.write(failed.text)
        return failed.status
    except OSError as e:
        sys.stderr.write(f"error: {e}\n")
        return 1


@contextlib.contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Signals that end a process raise SystemExit, so that the folder of parts is removed. Those that are ignored stay so."""

    def end(number: int, _frame: Any) -> None:
        raise SystemExit(128 + number)

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # Other threads can't handle signals.
    here = threading.current_thread() is threading.main_thread()
    before = {s: signal.signal(s, end) for s in signals if here and signal.getsignal(s) == signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _with_file(arguments: Sequence[str]) -> list[str]:
    """The arguments, with the options of the file that ``--config`` names."""
    try:
        return _core.command_arguments(["castwise", "eval", *arguments])[2:]
    except ValueError as e:
        status, text = e.args
        raise Failed(status, f"{text}\n") from None


def _run(asked: argparse.Namespace, rest: list[str]) -> int:
    try:
        import distributed
    except ImportError:
        raise Failed(USAGE, "error: --dask needs Dask: pip install distributed\n") from None
    began = time.monotonic()
    _check(asked)
    inputs = [word for given in asked.input for word in ("-i", given)]
    where = _options(asked, "output", "force", "max_shard_size", "no_copy_rest")
    typed = [*rest, *inputs, *_options(asked, "select", "skip"), *where]
    if asked.dry_run or asked.explain:
        # What is typed, and would be run, is the same with workers and without: nothing is sent to them.
        sys.stdout.write(_command([*typed, *_options(asked, "explain", "json", "quiet"), "--dry-run"], say=True))
        if asked.dry_run:
            return 0
    plan = json.loads(_command([*typed, *_options(asked, "quiet"), "--dry-run", "--json"], say=not asked.explain))
    if not plan["named"]:
        raise Failed(USAGE, "error: --dask needs a file of several tensors: .safetensors, .index.json, .npz or a folder\n")
    written = _written(plan)
    output = os.path.abspath(asked.output)
    # A part that a lost worker left behind may still arrive.
    with tempfile.TemporaryDirectory(
        prefix=".castwise-dask-", dir=os.path.dirname(output), ignore_cleanup_errors=True
    ) as folder:
        try:
            reports, parts, workers = _spread(distributed, asked, [*rest, *inputs], written, folder)
        except Failed:
            raise
        except Exception as e:
            # Of the scheduler, the network, or what a worker has installed.
            raise Failed(1, f"error: --dask {asked.dask}: {_cause(e)}\n") from e
        _index(folder, parts, written)
        source = os.path.join(folder, "model.safetensors.index.json")
        if not asked.output.endswith((".safetensors", ".json")):
            _copy_rest(folder, plan["copied"])
            source = folder + os.sep
        # The command writes the output as it always does: atomically, with its shards and its configuration.
        done = _command(["x", "-i", f"x={source}", *where, *_options(asked, "quiet", "json")], say=True)
    if asked.json:
        total = time.monotonic() - began
        sys.stdout.write(json.dumps(_report(plan, reports, json.loads(done), workers, total), indent=2) + "\n")
    return 0


def _check(asked: argparse.Namespace) -> None:
    """Refuses what parts can't do, before any file is read."""
    if not asked.output or asked.output == "-" or asked.output.endswith((".npy", ".npz")):
        raise Failed(USAGE, "error: --dask writes .safetensors, .index.json or the folder of a model: -o merged/\n")
    if asked.manifest:
        raise Failed(USAGE, "error: --manifest does not work with --dask: leave out one of them\n")
    if asked.fix:
        text = "write the casts that `castwise explain --fix` prints into the expression"
        raise Failed(USAGE, f"error: --fix does not work with --dask: {text}\n")
    if any(given.partition("=")[2] == "-" for given in asked.input):
        raise Failed(USAGE, "error: --dask can't send standard input to workers: give a file\n")


def _spread(
    distributed: Any, asked: argparse.Namespace, arguments: Sequence[str], written: Written, folder: str
) -> tuple[list[Any], list[list[str]], int]:
    """Has the workers write the parts into the folder. Returns the parts' reports, the tensors of each, and how many workers
    there were."""
    with distributed.Client(asked.dask, set_as_default=False) as client, client.as_current():
        if not client.nthreads():
            sys.stderr.write(f"warning: {asked.dask} has no workers yet: waiting for one\n")
            client.wait_for_workers(1)
        workers = len(client.nthreads())
        parts = _parts({name: sum(tensors.values()) for name, tensors in written.items()}, PARTS * workers)
        cwd = os.getcwd()
        tasks = [
            client.submit(
                _part, __version__, arguments, names, os.path.join(folder, _file(i)), cwd, asked.json, pure=False
            )
            for i, names in enumerate(parts)
        ]
        reports: list[Any] = []
        for task in distributed.as_completed(tasks):
            status, text = task.result()
            if status:
                client.cancel(tasks)
                raise Failed(status, text)
            reports.append(json.loads(text) if asked.json else None)
        return reports, parts, workers


def _cause(e: BaseException) -> str:
    """What an error began with, in one line."""
    while e.__cause__ is not None:
        e = e.__cause__
    text = f"{type(e).__name__}: {' '.join(str(e).split())}"
    need = f"; install castwise {__version__} where the scheduler and the workers run"
    return text + need if isinstance(e, ModuleNotFoundError) else text


def _report(plan: Any, parts: Sequence[Any], written: Any, workers: int, total: float) -> Any:
    """The report of a run: what was typed, bytes and times of all parts together, and the largest memory of a process."""
    report = {key: value for key, value in plan.items() if key not in DRY} | {"dry_run": False}
    read, wrote = sum(part["bytes"]["read"] for part in parts), written["bytes"]["written"]
    seconds = {key: sum(part["seconds"][key] for part in parts) for key in ("type", "compile", "read", "compute", "write")}
    peaks = [part["peak_memory"] for part in parts if part["peak_memory"] is not None]
    return report | {
        "bytes": {"read": read, "written": wrote},
        "seconds": seconds | {"total": total},
        "bytes_per_second": int((read + wrote) / max(total, 1e-9)),
        "peak_memory": max(peaks, default=None),
        "workers": workers,
        "parts": len(parts),
    }


def _options(asked: argparse.Namespace, *names: str) -> list[str]:
    """Options as they were given."""
    found: list[str] = []
    for name in names:
        value, option = getattr(asked, name), "--" + name.replace("_", "-")
        if value is True:
            found.append(option)
        elif value:
            found.append(f"{option}={value}")
    return found


def _command(arguments: Sequence[str], cwd: str | None = None, say: bool = False) -> str:
    """Runs the command and returns what it printed; notes and warnings are printed if it is asked to ``say`` them."""
    with subprocess.Popen(
        [sys.executable, "-m", "castwise", "eval", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    ) as child:
        try:
            out, err = child.communicate()
        except BaseException:
            # It removes its temporary files.
            child.terminate()
            raise
    if child.returncode:
        raise Failed(child.returncode if child.returncode > 0 else 1, err)
    if say:
        sys.stderr.write(err)
    return out


def _part(
    version: str, arguments: Sequence[str], names: Sequence[str], path: str, cwd: str, report: bool = False
) -> tuple[int, str]:
    """In a worker: computes tensors into a file. A worker that takes over from a lost one writes the same bytes. The text is the
    report, if one is asked for, or the error."""
    if refusal := other_version(version):
        return 1, f"error: {refusal}\n"
    only = "^(?:" + "|".join(map(_escaped, names)) + ")$"
    threads = [] if any(a.startswith("--threads") for a in arguments) else ["--threads=1"]
    more = ["--json"] if report else []
    try:
        said = _command([*arguments, *threads, *more, f"--select={only}", f"--output={path}", "--force", "--quiet"], cwd)
    except Failed as failed:
        return failed.status, failed.text
    except OSError as e:
        return 1, f"error: {e}\n"
    return 0, said


def _file(part: int) -> str:
    return f"part-{part:05}.safetensors"


def _escaped(name: str) -> str:
    return re.sub(r"[\\.+*?()|\[\]{}^$#&\-~]", lambda found: "\\" + found[0], name)


def _bytes(dtype: str, shape: Sequence[int]) -> int:
    bits = re.search(r"\d+", dtype.replace("f8", "8"))
    return math.prod(shape) * max(1, int(bits[0]) // 8 if bits else 1)


def _written(plan: Any) -> Written:
    """The tensors that a dry run says would be written."""
    found: Written = {}
    for tensor in plan["tensors"]:
        results = tensor.get("results") or [tensor]
        prefix = f"{tensor['name']}." if "results" in tensor else ""
        found[tensor["name"]] = {prefix + one["name"]: _bytes(one["dtype"], one["shape"]) for one in results}
    if not found:
        raise Failed(1, "error: there are no tensors to compute\n")
    return found


def _parts(sizes: dict[str, int], count: int) -> list[list[str]]:
    """Names in their order, in parts of about the same bytes; a pattern of many names is slow to compile."""
    most = max(1, sum(sizes.values()) // count)
    parts: list[list[str]] = [[]]
    held = 0
    for name, size in sizes.items():
        if parts[-1] and (held + size > most or len(parts[-1]) >= 256):
            parts.append([])
            held = 0
        parts[-1].append(name)
        held += size
    return parts


def _index(folder: str, parts: Sequence[Sequence[str]], written: Written) -> None:
    """The index of the parts, in the order of the names."""
    of = {tensor: _file(i) for i, names in enumerate(parts) for name in names for tensor in written[name]}
    total = sum(size for tensors in written.values() for size in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": of}
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump(index, f)


def _copy_rest(folder: str, copied: Any) -> None:
    """Copies the files that are no weights, which a dry run said. The command copies them on, and adapts the configuration."""
    for name in copied["files"] if copied else ():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copyfile(os.path.join(copied["from"], name), os.path.join(folder, name))
