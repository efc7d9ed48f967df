"""Claim: in a notebook plans and traces are pictures, and traced functions are functions: newton.ipynb
runs from its first cell to its last."""

import json
import os
import subprocess
import sys

import pytest

NOTEBOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "newton.ipynb")


def shown(notebook):
    """What each cell of code shows: texts by their kind, whether they are lists of lines or not."""
    made = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            data = cell["outputs"][0]["data"] if cell["outputs"] else {}
            made.append({kind: "".join(text) for kind, text in data.items()})
    return made


def test_a_notebook_runs_and_has_its_pictures(tmp_path):
    pytest.importorskip("nbconvert", reason="there is no nbconvert (jupyter-nbconvert)")
    pytest.importorskip("ipykernel", reason="there is no kernel (python3-ipykernel)")
    environment = {**os.environ, "HOME": str(tmp_path), "JUPYTER_PLATFORM_DIRS": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--stdout", NOTEBOOK],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    number, plan, trace, name = shown(json.loads(ran.stdout))
    assert "1.41421356" in number["text/plain"]
    assert "<svg" in plan["image/svg+xml"] and "while" in plan["text/plain"]
    assert "<svg" in trace["image/svg+xml"] and "spans on" in trace["text/plain"]
    assert "[" in name["text/plain"]
