"""``castwise eval … --dask ADDRESS``: the tensors of model files, computed by workers that see the same files.

Guarantees: everything is typed before a worker begins; the output is written by the command on this machine, so it is whole or
absent, and has the tensors of a run without ``--dask``, bit for bit; shards may hold others of them. Does not: send tensors over
the network, or keep parts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, Sequence

#: What a usage error exits with, as in the command.
USAGE = 2

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
        asked, rest = _parser().parse_known_args(list(arguments))
        return _run(asked, rest)
    except Failed as failed:
        sys.stderr.write(failed.text)
        return failed.status
    except OSError as e:
        sys.stderr.write(f"error: {e}\n")
        return 1


def _run(asked: argparse.Namespace, rest: list[str]) -> int:
    try:
        import distributed
    except ImportError:
        raise Failed(USAGE, "error: --dask needs Dask: pip install distributed\n") from None
    # Its functions have no types.
    lib: Any = distributed
    began = time.monotonic()
    if not asked.output or asked.output == "-" or asked.output.endswith((".npy", ".npz")):
        raise Failed(USAGE, "error: --dask writes .safetensors, .index.json or the folder of a model: -o merged/\n")
    inputs = [word for given in asked.input for word in ("-i", given)]
    where = _options(asked, "output", "force", "max_shard_size", "no_copy_rest")
    typed = [*rest, *inputs, *_options(asked, "select", "skip"), *where]
    if asked.dry_run or asked.explain:
        # What is typed, and would be run, is the same with workers and without: nothing is sent to them.
        sys.stdout.write(_command([*typed, *_options(asked, "explain", "json", "quiet"), "--dry-run"], say=True))
        if asked.dry_run:
            return 0
    plan = json.loads(_command([*typed, "--dry-run", "--json"], say=not asked.explain))
    sizes = {tensor["name"]: _bytes(tensor["dtype"], tensor["shape"]) for tensor in plan["tensors"]}
    if not sizes:
        raise Failed(1, "error: there are no tensors to compute\n")
    output = os.path.abspath(asked.output)
    # A part that a lost worker left behind may still arrive.
    with tempfile.TemporaryDirectory(
        prefix=".castwise-dask-", dir=os.path.dirname(output), ignore_cleanup_errors=True
    ) as folder:
        with lib.Client(asked.dask, set_as_default=False) as client, client.as_current():
            workers = max(1, len(client.scheduler_info()["workers"]))
            parts = _parts(sizes, PARTS * workers)
            tasks = [
                client.submit(
                    _part,
                    [*rest, *inputs],
                    names,
                    os.path.join(folder, _file(i)),
                    os.getcwd(),
                    asked.json,
                    pure=False,
                )
                for i, names in enumerate(parts)
            ]
            reports: list[Any] = []
            for task in lib.as_completed(tasks):
                try:
                    status, text = task.result()
                except lib.KilledWorker as e:
                    status, text = 1, f"error: {e}\n"
                if status:
                    client.cancel(tasks)
                    raise Failed(status, text)
                reports.append(json.loads(text) if asked.json else None)
        _index(folder, parts, sizes)
        source = os.path.join(folder, "model.safetensors.index.json")
        if not asked.output.endswith((".safetensors", ".json")):
            _copy_rest(folder, asked, plan["files"])
            source = folder + os.sep
        # The command writes the output as it always does: atomically, with its shards and its configuration.
        written = _command(["x", "-i", f"x={source}", *where, *_options(asked, "quiet", "json")], say=True)
    if asked.json:
        total = time.monotonic() - began
        sys.stdout.write(json.dumps(_report(plan, reports, json.loads(written), workers, total), indent=2) + "\n")
    return 0


def _report(plan: Any, parts: Sequence[Any], written: Any, workers: int, total: float) -> Any:
    """The report of a run: what was typed, bytes and times of all parts together, and the largest memory of a process."""
    report = {key: value for key, value in plan.items() if key not in ("dry_run", "existing")} | {"dry_run": False}
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
    done = subprocess.run(
        [sys.executable, "-m", "castwise", "eval", *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )
    if done.returncode:
        raise Failed(done.returncode if done.returncode > 0 else 1, done.stderr)
    if say:
        sys.stderr.write(done.stderr)
    return done.stdout


def _part(
    arguments: Sequence[str], names: Sequence[str], path: str, cwd: str, report: bool = False
) -> tuple[int, str]:
    """In a worker: computes tensors into a file. A worker that takes over from a lost one writes the same bytes. The text is the
    report, if one is asked for, or the error."""
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


def _index(folder: str, parts: Sequence[Sequence[str]], sizes: dict[str, int]) -> None:
    """The index of the parts, in the order of the names."""
    of = {name: _file(i) for i, names in enumerate(parts) for name in names}
    index = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": of}
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump(index, f)


def _copy_rest(folder: str, asked: argparse.Namespace, files: Sequence[str]) -> None:
    """Copies the files that are no weights, whose names a dry run said, from the first input that is a folder. The command
    copies them on, and adapts the configuration."""
    source = next((path for given in asked.input if os.path.isdir(path := given.partition("=")[2])), None)
    for file in files:
        name = os.path.relpath(file, asked.output)
        if source and not name.endswith((".safetensors", ".index.json")):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            shutil.copyfile(os.path.join(source, name), os.path.join(folder, name))
