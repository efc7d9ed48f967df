"""Finds MPI's headers, and makes the repository @mpi of them or of nothing.

EDDY_MPI (--repo_env) names the folder that holds include/mpi.h and lib/libmpi.so; unset, it is that
of Debian's libopenmpi-dev; `off` finds none. The repository offers:
  mpi.bzl   MPI_FOUND, and MPI_MISSING: what to install where there is none
  :mpi      the headers and the library, for the one shared object that is linked with them
"""

_DEBIAN = "/usr/lib/x86_64-linux-gnu/openmpi"

def _mpi_impl(ctx):
    home = ctx.os.environ.get("EDDY_MPI", "") or _DEBIAN
    found = (home != "off" and ctx.path(home + "/include/mpi.h").exists and
             ctx.path(home + "/lib/libmpi.so").exists)
    if not found:
        # buildifier: disable=print
        print("\n\nNOTICE: no MPI (no mpi.h and libmpi.so): a program says so when it is asked for ranks.\n" +
              "  sudo apt-get install libopenmpi-dev openmpi-bin\n")
    ctx.file("mpi.bzl", "MPI_FOUND = %r\nMPI_MISSING = %r\n" % (
        found,
        "" if found else "libopenmpi-dev openmpi-bin",
    ))
    lines = ["package(default_visibility = [\"//visibility:public\"])"]
    if found:
        ctx.symlink(home + "/include", "include")
        lines.append("cc_library(name = \"mpi\", hdrs = glob([\"include/**/*.h\"]), " +
                     "includes = [\"include\"], linkopts = %r)" % ["-L" + home + "/lib", "-lmpi"])
    ctx.file("BUILD", "\n".join(lines) + "\n")

mpi_library = repository_rule(
    implementation = _mpi_impl,
    configure = True,
    environ = ["EDDY_MPI"],
    local = True,
)
