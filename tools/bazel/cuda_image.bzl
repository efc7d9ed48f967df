"""eddy_cuda_image: CUDA sources as bytes of a program, for the driver to load when it runs.

    eddy_cuda_image(
        name = "image",
        srcs = ["elementwise.cu"],
        hdrs = ["elementwise_inl.h"],
        symbol = "eddy_cuda_image",
    )

makes a C file that defines `const unsigned long long SYMBOL[]`, `const uint32_t SYMBOLLength`, which
counts its words, and `const int SYMBOL_toolkit`, 13000 for CUDA 13.0: one fat binary with code for
sm_80 and sm_90 and PTX for what comes later. No CUDA library is linked.
Name it in `srcs` where @cuda//:toolkit.bzl says CUDA_FOUND, with a stub beside it.
"""

load("@cuda//:toolkit.bzl", "CUDA_VERSION", "NVCC")

_CODE_OPTIONS = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
]

_NVCC_OPTIONS = [
    "-std=c++20",
    "-O3",
    "-DNDEBUG",
    # Kernels for many types are much alike: a tenth of the bytes, and gpu_bundle has a limit.
    "--compress-mode=size",
    "--Werror=all-warnings",
    "-I.",
]

# Linked code has no PTX: code for what came later, too, as far as a toolkit 12.8 knows it. Code
# for x.0 runs on all of x.
_LINK_OPTIONS = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_100,code=sm_100",
    "-gencode=arch=compute_120,code=sm_120",
]

# As the driver writes versions: 13000 of "13.0".
def _version_number():
    major, minor = CUDA_VERSION.split(".")[:2]
    return int(major) * 1000 + int(minor) * 10

def _image_impl(ctx):
    if len(ctx.files.srcs) != 1:
        fail("an image is made of one source; include the others in it")
    fatbin = ctx.actions.declare_file(ctx.label.name + ".fatbin")
    code = ctx.actions.declare_file(ctx.label.name + "_bytes.c")
    nvcc = ctx.actions.args()
    compiled = fatbin
    if ctx.attr.device_link:
        compiled = ctx.actions.declare_file(ctx.label.name + ".o")
    nvcc.add_all(_NVCC_OPTIONS)
    nvcc.add_all(_LINK_OPTIONS if ctx.attr.device_link else _CODE_OPTIONS)
    nvcc.add_all(ctx.attr.copts)
    nvcc.add_all(["-rdc=true", "-c"] if ctx.attr.device_link else ["-fatbin"])
    nvcc.add(ctx.files.srcs[0])
    nvcc.add("-o", compiled)
    ctx.actions.run(
        executable = NVCC,
        arguments = [nvcc],
        inputs = ctx.files.srcs + ctx.files.hdrs,
        outputs = [compiled],
        mnemonic = "CudaImage",
        progress_message = "Compiling %s with nvcc" % ctx.files.srcs[0].short_path,
        use_default_shell_env = True,
    )
    if ctx.attr.device_link:
        ctx.actions.run(
            executable = NVCC,
            arguments = _LINK_OPTIONS + ["-dlink", "-fatbin", compiled.path, "-o", fatbin.path, "-lcudadevrt"],
            inputs = [compiled],
            outputs = [fatbin],
            mnemonic = "CudaImageLink",
            use_default_shell_env = True,
        )
    ctx.actions.run_shell(
        command = "(echo '#include <stdint.h>'; echo 'const int {symbol}_toolkit = {version};'; {bin2c} --const --length --type longlong --name {symbol} {fatbin}) > {code}".format(
            bin2c = NVCC[:-len("nvcc")] + "bin2c",
            symbol = ctx.attr.symbol,
            version = _version_number(),
            fatbin = fatbin.path,
            code = code.path,
        ),
        inputs = [fatbin],
        outputs = [code],
        mnemonic = "CudaImageBytes",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([code]))]

_image = rule(
    implementation = _image_impl,
    attrs = {
        "copts": attr.string_list(),
        "device_link": attr.bool(default = False),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "srcs": attr.label_list(allow_files = [".cu"]),
        "symbol": attr.string(mandatory = True),
    },
)

def eddy_cuda_image(name, srcs, symbol, hdrs = [], copts = [], device_link = False, testonly = False):
    """The rule; built only where it is asked for, since without a toolkit it cannot be.

    Args:
      name: names the C file.
      srcs: one .cu file.
      symbol: the array's name.
      hdrs: what the source includes.
      copts: added to nvcc's options.
      testonly: as cc_test.
      device_link: link with the device's runtime library, which has cudaGraphSetConditional; then
        there is no PTX, but code for sm_100 and sm_120.
    """
    _image(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = copts,
        testonly = testonly,
        device_link = device_link,
        symbol = symbol,
        tags = ["manual"],
    )
