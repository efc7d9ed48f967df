"""Debian's libraries as one external repository, checked when it is made.

Each library is a header to find, perhaps a file to link, and the Debian package
that holds both. What is missing is named in one message, with the command that
installs it. Bazel does not track system files, so the versions are written into the
generated BUILD file, where they can be read. The repository is made anew when Bazel's
server starts, and by `bazel sync --configure`.

Under `--config=tsan`, :tbb is compiled from Debian's source package, which
`tools/setup --sanitizers` puts into the cache folder: ThreadSanitizer takes the system's
library, compiled without it, for a source of races.
"""

_LIB = "/usr/lib/x86_64-linux-gnu/"

# name: (Debian package, header below /usr/include, files below _LIB, link options)
_LIBRARIES = {
    "benchmark": ("libbenchmark-dev", "benchmark/benchmark.h", ["libbenchmark.so"], ["-lbenchmark"]),
    "boost_context": (
        "libboost-context-dev",
        "boost/context/detail/fcontext.hpp",
        ["libboost_context.a"],
        # Static: a context switch should not go through the PLT.
        ["-l:libboost_context.a"],
    ),
    "cli11": ("libcli11-dev", "CLI/CLI.hpp", [], []),
    "dlpack": ("libdlpack-dev", "dlpack/dlpack.h", [], []),
    "dnnl": ("libdnnl-dev", "dnnl.hpp", ["libdnnl.so"], ["-ldnnl"]),
    "fmt": ("libfmt-dev", "fmt/format.h", ["libfmt.so"], ["-lfmt"]),
    "gmock": ("libgmock-dev", "gmock/gmock.h", ["libgmock.a"], ["-l:libgmock.a"]),
    "gtest": ("libgtest-dev", "gtest/gtest.h", ["libgtest.a"], ["-l:libgtest.a"]),
    "gtest_main": ("libgtest-dev", "gtest/gtest.h", ["libgtest_main.a"], ["-l:libgtest_main.a"]),
    "httplib": ("libcpp-httplib-dev", "httplib.h", ["libcpp-httplib.so"], ["-lcpp-httplib"]),
    "json": ("nlohmann-json3-dev", "nlohmann/json.hpp", [], []),
    "re2": ("libre2-dev", "re2/re2.h", ["libre2.so"], ["-lre2"]),
    "tbb_installed": ("libtbb-dev", "oneapi/tbb.h", ["libtbb.so"], ["-ltbb"]),
}

# The same, of what Eddy does without. Loaded as IS_INSTALLED[name] from optional.bzl.
_OPTIONAL = {
    "jpeg": ("libjpeg-dev", "jpeglib.h", ["libjpeg.so"], ["-ljpeg"]),
    "jpeg2000": (
        "libopenjp2-7-dev",
        "openjpeg-2.5/openjpeg.h",
        ["libopenjp2.so"],
        ["-lopenjp2"],
    ),
    "png": ("libpng-dev", "png.h", ["libpng.so"], ["-lpng"]),
    "tiff": ("libtiff-dev", "x86_64-linux-gnu/tiffio.h", ["libtiff.so"], ["-ltiff"]),
    "webp": ("libwebp-dev", "webp/decode.h", ["libwebp.so"], ["-lwebp"]),
}

# What an optional library's header must declare: older ones do without, and Eddy without them.
_DECLARED = {
    "tiff": "TIFFOpenOptionsAlloc",  # 4.5
}

_DEPS = {
    "gmock": [":gtest"],
    "gtest_main": [":gtest"],
}

# What Debian compiled the library with: its classes have other members without.
_DEFINES = {
    "httplib": [
        "CPPHTTPLIB_OPENSSL_SUPPORT",
        "CPPHTTPLIB_ZLIB_SUPPORT",
        "CPPHTTPLIB_BROTLI_SUPPORT",
    ],
}

_TBB_FROM_SOURCE = """
cc_library(
    name = "tbb_from_source",
    srcs = glob(["onetbb/src/tbb/*.cpp", "onetbb/src/tbb/**/*.h"]),
    hdrs = glob(["onetbb/include/**"]),
    copts = ["-w", "-mrtm", "-mwaitpkg"],
    includes = ["onetbb/include"],
    linkopts = ["-ldl", "-lpthread"],
    local_defines = [
        "__TBB_BUILD",
        "__TBB_DYNAMIC_LOAD_ENABLED=0",
        "__TBB_SOURCE_DIRECTLY_INCLUDED=1",
    ],
)
"""

_TBB_SOURCE_MISSING = """
genrule(
    name = "tbb_source_missing",
    outs = ["tbb_source_missing.cc"],
    cmd = "echo 'The tsan config needs oneTBB as source: run tools/setup --sanitizers, " +
          "then bazel sync --configure.' >&2; exit 1",
)

cc_library(name = "tbb_from_source", srcs = [":tbb_source_missing"])
"""

_TBB = """
config_setting(name = "tsan", define_values = {"eddy_tsan": "on"})

alias(
    name = "tbb",
    actual = select({
        ":tsan": ":tbb_from_source",
        "//conditions:default": ":tbb_installed",
    }),
)
"""

def _tbb_lines(ctx):
    """The targets for oneTBB, and a link to its source where tools/setup put it."""
    query = ctx.execute(["dpkg-query", "-W", "-f", "${source:Version}", "libtbb-dev"])
    cache = ctx.os.environ.get("XDG_CACHE_HOME", "") or ctx.os.environ.get("HOME", "") + "/.cache"
    source = ctx.path(cache + "/eddy/onetbb/" + query.stdout)
    if query.return_code == 0 and source.get_child("src").exists:
        # Not the folder itself: a BUILD file in it would make it a package of its own.
        for part in ["include", "src"]:
            ctx.symlink(source.get_child(part), "onetbb/" + part)
        return [_TBB, _TBB_FROM_SOURCE]
    return [_TBB, _TBB_SOURCE_MISSING]

def _optional_lines(ctx):
    """The targets of the optional libraries that are here; the file optional.bzl says which are."""
    installed = {}
    lines = []
    for name in sorted(_OPTIONAL):
        _, header, files, linkopts = _OPTIONAL[name]
        paths = ["/usr/include/" + header] + [_LIB + f for f in files]
        is_there = all([ctx.path(path).exists for path in paths])
        installed[name] = is_there and _DECLARED.get(name, "") in ctx.read(paths[0])
        if installed[name]:
            lines.append("cc_library(name = %r, linkopts = %r)" % (name, linkopts))
    ctx.file("optional.bzl", "IS_INSTALLED = %r\n" % installed)
    return lines

def _system_libraries_impl(ctx):
    missing = {}
    lacking = []
    packages = {}
    for name in sorted(_LIBRARIES):
        package, header, files, _ = _LIBRARIES[name]
        packages[package] = True
        for path in ["/usr/include/" + header] + [_LIB + f for f in files]:
            if not ctx.path(path).exists:
                missing[package] = True
                lacking.append(path)
    if missing:
        fail("\nEddy needs files that are not here: {files}\nInstall them with:\n  sudo apt-get install {packages}\nor run tools/setup.\n".format(
            files = ", ".join(lacking),
            packages = " ".join(sorted(missing)),
        ))

    query = ctx.execute(["dpkg-query", "-W", "-f", "${Package} ${Version}\\n"] + sorted(packages))
    versions = sorted([line for line in query.stdout.split("\n") if line])
    lines = ["# Made by //tools/bazel:system.bzl from:"]
    lines += ["#   " + v for v in versions]
    lines += ["package(default_visibility = [\"//visibility:public\"])", ""]
    for name in sorted(_LIBRARIES):
        _, _, _, linkopts = _LIBRARIES[name]
        parts = [
            "name = " + repr(name),
            "defines = " + repr(_DEFINES.get(name, [])),
            "linkopts = " + repr(linkopts + (["-lpthread"] if "gtest" == name else [])),
            "deps = " + repr(_DEPS.get(name, [])),
        ]
        lines.append("cc_library(%s)" % ", ".join(parts))
    lines += _optional_lines(ctx) + _tbb_lines(ctx)
    ctx.file("BUILD", "\n".join(lines) + "\n")

system_libraries = repository_rule(
    implementation = _system_libraries_impl,
    configure = True,
    environ = ["HOME", "XDG_CACHE_HOME"],
    local = True,
    doc = "The libraries of Debian that Eddy links, as targets of one repository.",
)
