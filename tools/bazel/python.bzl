"""Finds Debian's Python for the module eddy, and makes the repository @python of it or of nothing.

It takes /usr/bin/python3 and no other python3 of $PATH: numpy, pytest and the headers are those of
Debian's packages. The repository offers python.bzl with
  PYTHON_FOUND    headers, pybind11 and numpy are here, and the module can be built
  PYTHON          the interpreter
  PYTHON_INCLUDE  the folder with Python.h
  PYTHON_SUFFIX   what the interpreter calls extension modules: .cpython-311-x86_64-linux-gnu.so
  PYTHON_MISSING  what to install, where something is missing
EDDY_PYTHON=off (--repo_env) finds nothing.
"""

_PYTHON = "/usr/bin/python3"
_SAY = "import sysconfig; print(sysconfig.get_paths()['include']); print(sysconfig.get_config_var('EXT_SUFFIX'))"

def _python_impl(ctx):
    include = ""
    suffix = ""
    missing = []
    if ctx.os.environ.get("EDDY_PYTHON", "") == "off":
        missing.append("python3-dev")  # as where there is none
    elif not ctx.path(_PYTHON).exists:
        missing.append("python3-dev")
    else:
        said = ctx.execute([_PYTHON, "-c", _SAY])
        if said.return_code == 0:
            include, suffix = said.stdout.strip().split("\n")
        if not include or not ctx.path(include + "/Python.h").exists:
            missing.append("python3-dev")
        if ctx.execute([_PYTHON, "-c", "import numpy"]).return_code != 0:
            missing.append("python3-numpy")
        if not ctx.path("/usr/include/pybind11/pybind11.h").exists:
            missing.append("pybind11-dev")
    if missing:
        # buildifier: disable=print
        print("\n\nNOTICE: the Python module is not built; missing: " + " ".join(missing) +
              "\n  sudo apt-get install " + " ".join(missing) + "\n")
    ctx.file("python.bzl", "\n".join([
        "PYTHON_FOUND = " + repr(not missing),
        "PYTHON = " + repr(_PYTHON),
        "PYTHON_INCLUDE = " + repr(include),
        "PYTHON_SUFFIX = " + repr(suffix),
        "PYTHON_MISSING = " + repr(" ".join(missing)),
    ]) + "\n")
    ctx.file("BUILD", "")

python_interpreter = repository_rule(
    implementation = _python_impl,
    configure = True,
    environ = ["EDDY_PYTHON"],
    local = True,
)
