"""The command in the wheel: its results, exit statuses and signals are those of the binary."""

import importlib.metadata
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import castwise

COMMAND = shutil.which("castwise", path=str(pathlib.Path(sys.executable).parent))


def run(*arguments, **named):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, **named)


def test_the_version_is_the_packages():
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"castwise {castwise.__version__}\n")
    assert importlib.metadata.version("castwise") == castwise.__version__
    assert subprocess.run([sys.executable, "-m", "castwise", "--version"], capture_output=True, text=True).stdout == done.stdout


def test_eval_gives_what_evaluate_gives(tmp_path):
    a, b = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    done = run("eval", "tanh(a) * 0.5 + b", "-i", "a=a.npy", "-i", "b=b.npy", "-o", "c.npy", "--rules", "numpy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "c.npy").tobytes() == castwise.evaluate("tanh(a) * 0.5 + b").tobytes()


def test_exit_statuses(tmp_path):
    np.save(tmp_path / "u.npy", np.ones(3, np.uint8))
    io = ("-i", "u=u.npy", "-o", "v.npy", "--rules", "torch")
    assert run("eval", "u + nowhere", *io, cwd=tmp_path).returncode == 1
    assert run("eval", "u", cwd=tmp_path).returncode == 2
    assert run("no-such-command").returncode == 2
    refused = run("eval", "(u - u) / 2", *io, "--deny", "wrap", cwd=tmp_path)
    assert refused.returncode == 3 and "may wrap" in refused.stderr
    assert not (tmp_path / "v.npy").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_it_by_the_signal_and_leaves_no_file(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(1 << 24))
    expression = "+".join(f"tan(sin(x) + {i})" for i in range(300))
    command = [COMMAND, "eval", expression, "-i", "x=x.npy", "-o", "y.npy", "--rules", "numpy"]
    # A shell ignores the signal in what it runs in the background, and children inherit that.
    child = subprocess.Popen(command, cwd=tmp_path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == -signal.SIGINT
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy"]


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_a_reader_that_goes_away_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([COMMAND, "table", "add", "--rules", "torch"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
