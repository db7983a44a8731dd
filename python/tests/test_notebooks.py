"""The notebooks of the documentation: they run, keep their outputs, and show what they should in a browser.

`CASTWISE_BLESS=1` writes the outputs anew.
"""

import copy
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "notebooks"
#: The file of a cell, whose name is where it is in memory.
PLACE = re.compile(r"[^\s\"'<>;]*ipykernel_\d+/\d+\.py")
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(notebook):
    """The notebook after a run, without what differs from run to run."""
    notebook = copy.deepcopy(notebook)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            for mime, text in output.get("data", {}).items():
                output["data"][mime] = PLACE.sub("notebook", text)
            if "text" in output:
                output["text"] = PLACE.sub("notebook", output["text"])
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def outputs(notebook):
    return [cell.get("outputs", []) for cell in notebook.cells]


def shown(notebook):
    """The HTML of all outputs."""
    found = [o["data"]["text/html"] for all in outputs(notebook) for o in all if "text/html" in o.get("data", {})]
    return "\n".join(found)


def test_there_are_three():
    assert len(NOTEBOOKS) == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_and_has_its_outputs(path):
    stored = nbformat.read(path, as_version=4)
    again = executed(stored)
    if os.environ.get("CASTWISE_BLESS"):
        nbformat.write(again, path)
        stored = again
    assert outputs(again) == outputs(stored)
    html = shown(stored)
    assert "castwise-picture" in html and "<script" not in html
    assert not re.search(r"(src|href)\s*=|url\(|@import", html)


PROBE = """
<pre id="seen"></pre>
<script>
const boxes = [...document.querySelectorAll("svg.castwise-picture")];
const size = e => e.getBoundingClientRect();
const seen = {
  pictures: boxes.length,
  empty: boxes.filter(b => size(b).width < 100 || size(b).height < 100).length,
  nodes: boxes.filter(b => !b.querySelector("g.node title")).length,
  outside: boxes.flatMap(b => [...b.querySelectorAll("g.node text")]
    .filter(t => t.getBBox().width > 0 && size(t).right > size(t.parentNode.querySelector("rect.box")).right + 1)).length,
  bars: [...document.querySelectorAll(".castwise-bar")].filter(b => size(b).width > 1).length,
  loaded: performance.getEntriesByType("resource").length,
};
document.getElementById("seen").textContent = JSON.stringify(seen);
</script>
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_browser_shows_the_pictures(path, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("Chromium is not installed (.ci/browser installs it)")
    html = shown(nbformat.read(path, as_version=4))
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset='utf-8'><body>{html}{PROBE}</body>")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--dump-dom", page.as_uri()]
    done = subprocess.run([chromium, *options], capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout)
    assert found, done.stderr
    seen = json.loads(found[1])
    assert seen["pictures"] == html.count("<svg") > 0
    assert (seen["empty"], seen["nodes"], seen["outside"], seen["loaded"]) == (0, 0, 0, 0), seen
    if "castwise-bar" in html:
        assert seen["bars"] > 0, seen
