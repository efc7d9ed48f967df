"""The macros with which every room declares its code.

    load("//tools/bazel:eddy.bzl", "eddy_cc_library")

    eddy_cc_library(
        name = "status",
        srcs = ["status.cc"],
        hdrs = ["status.h"],
        deps = ["//graph/base:check"],
    )

They add the warnings that our own code must be free of, and the visibility that holds
the arrows tools, examples, tests -> runtime -> ops -> graph (groups in //:BUILD).
"""

_WARNINGS = ["-Wall", "-Wextra", "-Werror"]

_USERS = {
    "graph": "//:users_of_graph",
    "ops": "//:users_of_ops",
    "runtime": "//:users_of_runtime",
}

def _default_visibility():
    top = native.package_name().split("/")[0]
    return [_USERS.get(top, "//:users_of_programs")]

def eddy_cc_library(name, copts = [], visibility = None, **kwargs):
    """A cc_library of ours. The arguments are those of cc_library."""
    native.cc_library(
        name = name,
        copts = _WARNINGS + copts,
        visibility = visibility or _default_visibility(),
        **kwargs
    )

def eddy_cc_binary(name, copts = [], visibility = None, **kwargs):
    """A cc_binary of ours. The arguments are those of cc_binary."""
    native.cc_binary(
        name = name,
        copts = _WARNINGS + copts,
        visibility = visibility or _default_visibility(),
        **kwargs
    )

def eddy_cc_test(name, copts = [], deps = [], size = "small", gtest_main = True, **kwargs):
    """A cc_test of ours, small unless said otherwise, with GoogleTest and its main.

    Args:
      name: as cc_test.
      copts: added to the warnings.
      deps: as cc_test.
      size: as cc_test; small means one minute.
      gtest_main: False for a test that has a main of its own.
      **kwargs: as cc_test (args, data, tags, timeout, ...).
    """
    native.cc_test(
        name = name,
        size = size,
        copts = _WARNINGS + copts,
        deps = deps + (["@system//:gtest_main", "@system//:gmock"] if gtest_main else []),
        **kwargs
    )

def eddy_vector_library(name, copts, avx2, avx512, amx = [], deps = []):
    """Kernels compiled once for each set of vector instructions.

    NAME_baseline.cc, NAME_avx2.cc and NAME_avx512.cc instantiate what the folder's headers define;
    the source *_sets.cc chooses between them.

    Args:
      name: of the library, whose header is NAME.h.
      copts: of all.
      avx2: added for NAME_avx2.cc.
      avx512: added for NAME_avx512.cc.
      amx: added for NAME_amx.cc; empty: there is none.
      deps: of the headers, which are :interface.
    """
    eddy_cc_library(
        name = "interface",
        hdrs = native.glob(["*.h"]),
        deps = deps,
    )
    sets = [("baseline", []), ("avx2", avx2), ("avx512", avx512)]
    if amx:
        sets.append(("amx", amx))
    for set, options in sets:
        eddy_cc_library(
            name = set,
            srcs = ["%s_%s.cc" % (name, set)],
            copts = copts + options,
            deps = [":interface"],
        )
    eddy_cc_library(
        name = name,
        srcs = native.glob(["*_sets.cc"]),
        hdrs = [name + ".h"],
        deps = [":" + set for set, _ in sets] + [
            ":interface",
            "//ops/cpu/isa",
        ],
    )

def eddy_operator_family(name, deps = [], copts = []):
    """The folder of a family of operators in ops/schema or ops/reference.

    Args:
      name: of the folder, all of whose sources it has.
      deps: added to what every family of the room uses.
      copts: of its sources.
    """
    room = "//" + native.package_name().rsplit("/", 1)[0]
    shared = {
        "//ops/schema": ["//ops/schema/rules"],
        "//ops/reference": ["//ops/contract", "//ops/reference/parts", "//ops/schema"],
    }
    eddy_cc_library(
        name = name,
        srcs = native.glob(["*.cc"]),
        hdrs = native.glob(["*.h"]),
        copts = copts,
        deps = ["//graph/base", "//graph/ir", room + ":families"] + shared[room] + deps,
    )
