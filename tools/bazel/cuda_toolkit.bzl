"""Finds the CUDA toolkit, and makes the repository @cuda of it or of nothing.

Searched in this order: $CUDA_HOME, /usr/local/cuda, the folder above nvcc in $PATH.
EDDY_CUDA=off (--repo_env) finds none: the sanitizers' builds, which look at code of the
host, are spared nvcc's minutes. The repository offers:
  toolkit.bzl   CUDA_FOUND, NVCC (path), CUDA_VERSION
  :headers      the toolkit's; empty without one
  :cudart, :cudadevrt, :cublasLt, :cublas, :cudnn   libraries; without a toolkit, empty
  :cudart_code   :cudart without the headers
"""

_LIBRARIES = {
    # The runtime is linked statically: a program then starts where there is no CUDA.
    "cudart": ["libcudart_static.a", "-l:libcudart_static.a", "-lpthread", "-ldl", "-lrt"],
    "cudadevrt": ["libcudadevrt.a", "-l:libcudadevrt.a"],
    "cublas": ["libcublas.so", "-lcublas"],
    "cublasLt": ["libcublasLt.so", "-lcublasLt"],
    "cudnn": ["libcudnn.so", "-lcudnn"],
}

def _find(ctx):
    """Returns the folder and the version of a toolkit whose nvcc runs, or (None, "")."""
    if ctx.os.environ.get("EDDY_CUDA", "") == "off":
        return None, ""
    candidates = [ctx.os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    nvcc = ctx.which("nvcc")
    if nvcc:
        candidates.append(str(nvcc.realpath.dirname.dirname))
    for folder in candidates:
        if folder and ctx.path(folder + "/bin/nvcc").exists and ctx.path(folder + "/include/cuda.h").exists:
            said = ctx.execute([folder + "/bin/nvcc", "--version"])
            if said.return_code == 0 and "release " in said.stdout:
                return folder, said.stdout.split("release ")[1].split(",")[0]

    # buildifier: disable=print
    print("\n\nNOTICE: no CUDA toolkit (no nvcc that runs, beside cuda.h, below CUDA_HOME or /usr/local/cuda, nor in PATH):\n" +
          "CUDA code is not compiled, stubs take its place.\n")
    return None, ""

def _cuda_toolkit_impl(ctx):
    home, version = _find(ctx)
    ctx.file("toolkit.bzl", "CUDA_FOUND = {found}\nNVCC = {nvcc}\nCUDA_VERSION = {version}\n".format(
        found = home != None,
        nvcc = repr(home + "/bin/nvcc") if home else repr(""),
        version = repr(version),
    ))

    lines = [
        "package(default_visibility = [\"//visibility:public\"])",
    ]
    includes = []
    if home:
        ctx.symlink(home + "/include", "include")
        includes = ["include"]
    for name in sorted(_LIBRARIES):
        file = _LIBRARIES[name][0]
        linkopts = []
        if home and ctx.path(home + "/lib64/" + file).exists:
            folder = home + "/lib64"
            linkopts = ["-L" + folder] + _LIBRARIES[name][1:]
            if file.endswith(".so"):
                linkopts.append("-Wl,-rpath," + folder)
        lines.append("cc_library(name = {name}, linkopts = {linkopts}, deps = [\":headers\"])".format(
            name = repr(name),
            linkopts = repr(linkopts),
        ))
        if name == "cudart":
            lines.append("cc_library(name = \"cudart_code\", linkopts = %s)" % repr(linkopts))
    lines.append("cc_library(name = \"headers\", hdrs = glob([\"include/**\"]), includes = %s)" % repr(includes))
    ctx.file("BUILD", "\n".join(lines) + "\n")

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    configure = True,
    environ = ["CUDA_HOME", "EDDY_CUDA", "PATH"],
    local = True,
)
