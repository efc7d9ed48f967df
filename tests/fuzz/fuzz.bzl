"""Fuzz targets."""

load("//tools/bazel:eddy.bzl", "eddy_cc_binary")

def eddy_fuzz_test(name, corpus, deps, executions = 2000, **kwargs):
    """A fuzz target NAME_fuzz.cc and the test NAME_fuzz_test over corpus/CORPUS.

    Args:
      name: of the target.
      corpus: the folder below corpus.
      deps: of the target.
      executions: changes of the corpus that the test tries without libFuzzer.
      **kwargs: for the test.
    """
    eddy_cc_binary(
        name = name + "_fuzz",
        testonly = True,
        srcs = [name + "_fuzz.cc"] + select({
            ":is_fuzz": [],
            "//conditions:default": ["replay_main.cc"],
        }),
        linkopts = select({
            ":is_fuzz": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = deps + [":fuzz_input"],
    )
    native.sh_test(
        name = name + "_fuzz_test",
        size = "medium",
        srcs = ["fuzz.sh"],
        args = select({
            ":is_fuzz": ["libfuzzer"],
            "//conditions:default": ["replay"],
        }) + [
            "$(location :%s_fuzz)" % name,
            native.package_name() + "/corpus/" + corpus,
            str(executions),
        ],
        data = [":%s_fuzz" % name] + native.glob(["corpus/" + corpus + "/**"]),
        **kwargs
    )
