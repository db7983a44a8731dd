"""The Python blocks of the book's pages; those of docs/dask.md and docs/torch-backend.md are in ``test_dask.py`` and ``test_backend.py``."""

import doctest
import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = ["tutorial/python.md", "from/numexpr.md", "array-api.md"]
#: Pages whose blocks other tests run.
ELSEWHERE = {"dask.md", "torch-backend.md"}


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S)


def test_every_page_with_blocks_is_tested():
    assert {str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md") if blocks(p.relative_to(DOCS))} == {*PAGES, *ELSEWHERE}


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page):
    names = {}
    for block in blocks(page):
        if ">>> " not in block:
            exec(compile(block, page, "exec"), names)  # noqa: S102
            continue
        test = doctest.DocTestParser().get_doctest(block, names, page, str(DOCS / page), 0)
        runner = doctest.DocTestRunner()
        runner.run(test, clear_globs=False)
        assert test.examples and not runner.failures
        names = test.globs
