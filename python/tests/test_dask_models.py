"""``castwise eval --dask``: models by workers that see the same files, what is refused, and what ends a run."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from castwise import _command

distributed = pytest.importorskip("distributed", reason="distributed is not installed")

from castwise.dask import _models  # noqa: E402


def _model(folder, seed):
    """A model of two shards, by way of the command."""
    rng = np.random.default_rng(seed)
    tensors = {f"layers.{i}.w": rng.random((40, 30)).astype(np.float16) for i in range(12)}
    tensors |= {"norm (last)": rng.random(30).astype(np.float32), "position_ids": np.arange(30)}
    np.savez(folder.with_suffix(".npz"), **tensors)
    folder.mkdir()
    (folder / "config.json").write_text('{"torch_dtype": "float32", "model_type": "x"}')
    (folder / "tokenizer.json").write_text("{}")
    index = folder / "model.safetensors.index.json"
    assert (
        _command.main(
            ["eval", "x", "-i", f"x={folder.with_suffix('.npz')}", "-o", str(index), "--max-shard-size", "20K", "-q"]
        )
        == 0
    )


def test_models_are_computed_by_workers(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate("ab"):
        _model(tmp_path / name, seed)
    expression = ["eval", "0.7*a + 0.3*b", "-i", "a=a/", "-i", "b=b/", "--quiet"]

    def files(folder):
        """The tensors with their headers, the names of all files, and the texts beside the weights."""
        tensors, texts = {}, {}
        for path in (tmp_path / folder).iterdir():
            data = path.read_bytes()
            if path.suffix != ".safetensors":
                texts[path.name] = data if "index" not in path.name else sorted(json.loads(data)["weight_map"])
                continue
            start = 8 + int.from_bytes(data[:8], "little")
            for name, one in json.loads(data[8:start]).items():
                begin, end = one.pop("data_offsets")
                tensors[name] = (one, data[start + begin : start + end])
        return tensors, texts

    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    with distributed.LocalCluster(**options) as cluster:
        dask_ = ["--dask", cluster.scheduler_address]
        for more in (
            ["--max-shard-size", "10K"],
            ["--out-dtype=bf16", "--skip", "layers.3", "--map", "norm=b", "--no-copy-rest"],
        ):
            assert _command.main([*expression, *more, "-o", "alone/", "-f"]) == 0
            assert _command.main([*expression, *more, "-o", "spread/", *dask_, "-f"]) == 0
            assert files("alone") == files("spread")
        assert _command.main([*expression, "-o", "alone.safetensors"]) == 0
        assert _command.main([*expression, "-o", "spread.safetensors", *dask_]) == 0
        assert (tmp_path / "alone.safetensors").read_bytes() == (tmp_path / "spread.safetensors").read_bytes()
        before = {p.name for p in tmp_path.iterdir()}
        capfd.readouterr()
        for wrong, status, text in (
            (["eval", "log(a - 2)", "-i", "a=a/", "--check", "finite"], 3, "finite"),
            (["eval", "a +", "-i", "a=a/"], 1, "operand"),
            (["eval", "a", "-i", "a=missing/"], 1, "missing"),
        ):
            assert _command.main([*wrong, "-o", "failed/", *dask_]) == status, wrong
            assert text in capfd.readouterr().err
        assert _command.main(["eval", "a", "-i", "a=a/", *dask_]) == 2
        # A dry run prints what it prints without workers, and writes nothing.
        for more in (["--dry-run"], ["--dry-run", "--json"], ["--dry-run", "--explain"]):
            assert _command.main([*expression, *more, "-o", "dry/"]) == 0
            alone = capfd.readouterr().out
            assert _command.main([*expression, *more, "-o", "dry/", *dask_]) == 0
            assert capfd.readouterr().out == alone != ""
        assert _command.main([*expression, "-o", "spread/", *dask_]) != 0
        assert {p.name for p in tmp_path.iterdir()} == before
        assert _command.main([*expression, "--json", "--explain", "-o", "reported/", *dask_]) == 2
        capfd.readouterr()
        assert _command.main([*expression, "--json", "-o", "alone/", "-f"]) == 0
        alone = json.loads(capfd.readouterr().out)
        assert _command.main([*expression, "--json", "-o", "reported/", *dask_]) == 0
        report = json.loads(capfd.readouterr().out)
        assert report["workers"] == 2 and report["parts"] >= 2 and set(alone) <= set(report)
        for key in ("rules", "tensors", "dry_run"):
            assert report[key] == alone[key], key
        assert report["bytes"] == alone["bytes"] and set(report["seconds"]) == set(alone["seconds"])
        assert _command.main([*expression, "--explain", "-o", "explained/", *dask_]) == 0
        assert "program(rules = " in capfd.readouterr().out and (tmp_path / "explained").is_dir()


@pytest.fixture(scope="module")
def scheduler():
    """The address of a scheduler with more workers than it tells of by default."""
    options = dict(n_workers=6, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=":0")
    with distributed.LocalCluster(**options) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the models `a` and `b`, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate("ab"):
        _model(tmp_path / name, seed)
    return tmp_path


def _tensors(path):
    """The tensors of a file, as the command converts them."""
    assert _command.main(["eval", "x", "-i", f"x={path}", "-o", f"{path}.npz", "--quiet"]) == 0
    with np.load(f"{path}.npz") as arrays:
        return {name: arrays[name] for name in arrays}


def _equal(a, b):
    a, b = _tensors(a), _tensors(b)
    return list(a) == list(b) and all(a[name].tobytes() == b[name].tobytes() for name in a)


def test_options_may_be_in_a_file(folder, scheduler, capfd):
    (folder / "unused").mkdir()
    for name in ("config.json", "model.safetensors.index.json"):
        (folder / "unused" / name).write_bytes((folder / "b" / name).read_bytes())
    (folder / "a" / "more").mkdir()
    (folder / "a" / "more" / "vocabulary.txt").write_text("a")
    (folder / "merge.toml").write_text(
        'expression = "0.7*a + 0.3*b"\nforce = true\nmax-shard-size = "10K"\nquiet = true\n'
        '[inputs]\nunused = "unused/"\na = "a/"\nb = "b/"\n'
    )
    for output, more in (("alone/", []), ("spread/", ["--dask", scheduler])):
        # The second time it exists.
        for _ in range(2):
            assert _command.main(["eval", "--config", "merge.toml", "-o", output, *more]) == 0, capfd.readouterr().err
    index = "model.safetensors.index.json"
    names = [sorted(json.loads((folder / out / index).read_text())["weight_map"]) for out in ("alone", "spread")]
    assert names[0] == names[1] and _equal(f"alone/{index}", f"spread/{index}")
    for out in ("alone", "spread"):
        assert len(list((folder / out).glob("*.safetensors"))) > 1, out
        assert (folder / out / "more" / "vocabulary.txt").read_text() == "a"
    assert (folder / "alone/config.json").read_bytes() == (folder / "spread/config.json").read_bytes()
    (folder / "merge.toml").write_text("nonsense = 1")
    assert _command.main(["eval", "a", "--config", "merge.toml", "-o", "x/", "--dask", scheduler]) == 2
    assert "there is no option `nonsense`" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options, told",
    [
        (["-i", "a=a/", "--manifest"], "--manifest does not work with --dask"),
        (["-i", "a=a/", "--fix"], "--fix does not work with --dask"),
        (["-i", "a=a/", "--fix=wrap"], "--fix does not work with --dask"),
        (["--config", "options.toml"], "--manifest does not work with --dask"),
        (["-i", "a=one.npy"], "--dask needs a file of several tensors"),
        (["-i", "a=-"], "--dask can't send standard input to workers"),
    ],
)
def test_options_that_parts_do_not_have(folder, capfd, options, told):
    np.save("one.npy", np.ones(3, np.float32))
    (folder / "options.toml").write_text('manifest = true\ninputs = {a = "a/"}\n')
    # Nobody listens there: nothing is sent.
    assert _command.main(["eval", "a", *options, "-o", "o.safetensors", "--dask", "tcp://127.0.0.1:1"]) == 2
    err = capfd.readouterr().err
    assert f"error: {told}" in err and err.count("\n") == 1, err


def test_several_results(folder, scheduler):
    command = ["eval", "low = amin(a); high = amax(a)", "-i", "a=a/", "--quiet"]
    assert _command.main([*command, "-o", "alone.safetensors"]) == 0
    assert _command.main([*command, "-o", "spread.safetensors", "--dask", scheduler]) == 0
    assert (folder / "alone.safetensors").read_bytes() == (folder / "spread.safetensors").read_bytes()
    assert "norm (last).high" in _tensors("spread.safetensors")


def test_tensors_that_one_input_lacks(folder, scheduler):
    for name, own in (("c", [f"c{i}" for i in range(40)]), ("d", ["d"])):
        np.savez(f"{name}.npz", shared=np.ones(2, np.float32), **{n: np.full(2, len(n), np.float32) for n in own})
    command = ["eval", "c + d", "-i", "c=c.npz", "-i", "d=d.npz", "--missing", "copy", "--quiet"]
    assert _command.main([*command, "-o", "alone.safetensors"]) == 0
    assert _command.main([*command, "-o", "spread.safetensors", "--dask", scheduler]) == 0
    assert (folder / "alone.safetensors").read_bytes() == (folder / "spread.safetensors").read_bytes()


def test_workers_of_another_version(folder, scheduler, capfd, monkeypatch):
    monkeypatch.setattr(_models, "__version__", "9.9.9")
    assert _command.main(["eval", "a", "-i", "a=a/", "-o", "o/", "--dask", scheduler, "-q"]) == 1
    assert "error: a program of castwise 9.9.9 came to a process with castwise 0." in capfd.readouterr().err
    assert not (folder / "o").exists()


def _without_castwise(*arguments):
    raise RuntimeError("error during\ndeserialization") from ModuleNotFoundError("No module named 'castwise'")


def test_errors_of_the_cluster_have_their_cause(folder, scheduler, capfd, monkeypatch):
    before = {p.name for p in folder.iterdir()}
    command = ["eval", "a", "-i", "a=a/", "-o", "o/", "-q", "--dask"]
    assert _command.main([*command, "nonsense://x:1"]) == 1
    err = capfd.readouterr().err
    assert "error: --dask nonsense://x:1: ValueError: " in err and "Traceback" not in err
    monkeypatch.setattr(_models, "_part", _without_castwise)
    assert _command.main([*command, scheduler]) == 1
    err = capfd.readouterr().err
    assert f"error: --dask {scheduler}: ModuleNotFoundError: No module named 'castwise'; install castwise 0." in err
    assert {p.name for p in folder.iterdir()} == before


def test_all_workers_are_counted(folder, scheduler, capfd):
    assert _command.main(["eval", "a", "-i", "a=a/", "-o", "o/", "--json", "--dask", scheduler]) == 0
    assert json.loads(capfd.readouterr().out)["workers"] == 6


#: The command in a process that ignores no signals, as one under `nohup` does.
_HEEDFUL = """
import signal, sys
from castwise import _command
for name in ("SIGHUP", "SIGTERM"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(_command.main(sys.argv[1:]))
"""


@pytest.fixture
def waiting(folder):
    """A cluster without workers, and a run that has said that it waits for one."""
    options = dict(n_workers=0, processes=False, protocol="tcp://", dashboard_address=":0")
    with distributed.LocalCluster(**options) as cluster:
        command = ["eval", "a", "-i", "a=a/", "-o", "o/", "-q", "--dask", cluster.scheduler_address]
        child = subprocess.Popen([sys.executable, "-c", _HEEDFUL, *command], stderr=subprocess.PIPE, text=True)
        try:
            assert child.stderr.readline() == f"warning: {command[-1]} has no workers yet: waiting for one\n"
            assert list(folder.glob(".castwise-dask-*"))
            yield cluster, child
        finally:
            child.kill()
            child.communicate()


def test_a_run_waits_for_a_worker(folder, waiting):
    cluster, child = waiting
    cluster.scale(1)
    child.communicate(timeout=120)
    assert child.returncode == 0 and (folder / "o").is_dir()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_signals_leave_no_parts(folder, waiting, name):
    _, child = waiting
    child.send_signal(getattr(signal, name))
    child.communicate(timeout=60)
    assert child.returncode != 0
    assert not list(folder.glob(".castwise-dask-*")) and not (folder / "o").exists()
