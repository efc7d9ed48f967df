"""Claim: in a notebook plans and traces are pictures, and traced functions are functions: newton.ipynb
runs from its first cell to its last."""

import json
import os
import subprocess
import sys

import pytest

NOTEBOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "newton.ipynb")


def outputs_of(notebook):
    cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    return [[out.get("data", {}) for out in cell["outputs"]] for cell in cells]


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
    number, plan, trace, name = outputs_of(json.loads(ran.stdout))
    assert "1.41421356" in number[0]["text/plain"]
    assert "<svg" in "".join(plan[0]["image/svg+xml"])
    assert "while" in "".join(plan[0]["text/plain"])
    assert "<svg" in "".join(trace[0]["image/svg+xml"])
    assert "spans on" in "".join(trace[0]["text/plain"])
    assert "[" in name[0]["text/plain"]
