"""The package as such: stubs, examples, imports."""

import contextlib
import doctest
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import castwise
from castwise import _api, _command, _core, _xp

PACKAGE = pathlib.Path(castwise.__file__).parent


def test_stubs_are_those_of_the_module():
    stubtest = pytest.importorskip("mypy.stubtest")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        # An op of a Var is a `Function` too; the stubs tell the two apart by what a call gives.
        allowed = pathlib.Path(__file__).with_name("stubtest.txt")
        arguments = ["castwise._core", "--allowlist", str(allowed), "--ignore-disjoint-bases"]
        status = stubtest.test_stubs(stubtest.parse_options(arguments))
    assert status == 0, out.getvalue()


TYPED = pathlib.Path(__file__).with_name("typed_user.py")


def test_user_code_satisfies_a_strict_type_checker():
    api = pytest.importorskip("mypy.api")
    out, _, status = api.run(["--strict", "--cache-dir", "/dev/null", str(TYPED)])
    assert status == 0, out


def test_the_package_satisfies_a_strict_type_checker():
    api = pytest.importorskip("mypy.api")
    # The sources: beside an installed package are those of others.
    sources = pathlib.Path(__file__).parents[1] / "castwise"
    files = [str(f) for f in (*sources.glob("*.py"), *(sources / "_xp").glob("*.py"))]
    out, _, status = api.run(["--strict", "--cache-dir", "/dev/null", *files])
    assert status == 0, out


def test_user_code_satisfies_pyright():
    found = shutil.which("basedpyright", path=str(pathlib.Path(sys.executable).parent))
    if not found:
        pytest.skip("basedpyright is not installed")
    settings = ["--pythonpath", sys.executable, "--level", "error"]
    done = subprocess.run([found, *settings, str(TYPED)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


def test_every_op_is_a_function_with_a_text():
    assert len(castwise.ops) > 100
    texts = set()
    for name in (*castwise.ops, *castwise.composites, *castwise.generators, "blocks"):
        f = getattr(castwise, name)
        assert f.__name__ == name and len(f.__doc__) > 8 and f.operands
        texts.add(f.__doc__)
    assert len(texts) > 150 and type(castwise.exp).__doc__ not in texts
    assert castwise.arctan2 is castwise.arctan2


def public():
    """Every public name of the package with its object, and those of classes."""
    for name in sorted({*castwise.__all__, *castwise.ops, *castwise.composites, *castwise.generators, "blocks"}):
        found = getattr(castwise, name)
        if not callable(found):
            continue
        yield name, found
        if isinstance(found, type):
            for attribute in vars(found):
                if not attribute.startswith("_") and attribute not in getattr(found, "_fields", ()):
                    yield f"{name}.{attribute}", getattr(found, attribute)
    for attribute, member in vars(_core.Operators).items():
        if not attribute.startswith("_"):
            yield f"Operators.{attribute}", member
    for part in _xp.Namespace.__mro__[:-1]:
        for attribute, member in vars(part).items():
            if callable(member) and not attribute.startswith("_"):
                yield f"Namespace.{attribute}", member


def test_every_public_name_has_a_text_and_an_example_that_runs():
    seen = 0
    for name, found in public():
        text = found.__doc__ or ""
        assert len(text) > 10, name
        examples = doctest.DocTestParser().get_examples(text)
        assert examples, name
        test = doctest.DocTest(examples, {"castwise": castwise, "np": np, **vars(castwise)}, name, None, 0, text)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        out = io.StringIO()
        runner.run(test, out=out.write)
        assert not runner.failures, out.getvalue()
        seen += 1
    assert seen > 300


def test_examples_of_modules_run():
    for module in (castwise, _api, _command, _xp):
        found = doctest.testmod(module, extraglobs={"castwise": castwise, "np": np}, optionflags=doctest.ELLIPSIS)
        assert found.attempted and not found.failed, module


def test_blocks_of_the_readme_run():
    readme = pathlib.Path(__file__).parents[1] / "README.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", readme.read_text(), re.M | re.S)
    assert len(blocks) > 8
    names = {}
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block, names, readme.name, str(readme), 0)
        runner = doctest.DocTestRunner()
        runner.run(test, clear_globs=False)
        assert test.examples and not runner.failures, block
        names = test.globs


def test_commands_of_the_readme_run(tmp_path):
    readme = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    np.save(tmp_path / "nir.npy", np.array([200, 30], np.uint8))
    np.save(tmp_path / "red.npy", np.array([100, 90], np.uint8))
    environment = os.environ | {"PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])}
    seen = 0
    for block in re.findall(r"^```console\n(.*?)^```$", readme, re.M | re.S):
        command, _, want = block.removeprefix("$ ").partition("\n")
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.stdout + done.stderr == want
        seen += 1
    assert seen


def test_importing_loads_no_library():
    code = "import sys, castwise; castwise.compile('a + b'); print([m for m in ('numpy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
