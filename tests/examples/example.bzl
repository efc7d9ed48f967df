"""example_test: an example runs, and prints what it should."""

def example_test(name, program, args = [], data = []):
    """Runs `program` with `args` and compares with NAME.expected (see run_example.sh).

    Args:
      name: of the test; its expectations stand beside the BUILD file.
      program: label of the program.
      args: arguments; $(location ...) of labels in data.
      data: files that args name.
    """
    expected = name + ".expected"
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["//tests/examples:run_example.sh"],
        args = ["$(location %s)" % expected, "$(location %s)" % program] + args,
        data = [expected, program] + data,
    )
