"""CUDA: the toolkit as an external repository, and a macro around nvcc.

    load("//tools/bazel:cuda.bzl", "eddy_cuda_library")

    eddy_cuda_library(
        name = "fill",
        srcs = ["fill.cu"],
        hdrs = ["fill.h"],
        stub_srcs = ["fill_stub.cc"],
        deps = ["//ops/contract:kernel"],
    )

Where a toolkit is found, the library holds `srcs` compiled by nvcc; elsewhere it holds `stub_srcs`, which keep the promises of the same headers by saying
that there is no CUDA. Code is made for sm_80 and sm_90, with PTX for what comes later.
"""

load("@cuda//:toolkit.bzl", "CUDA_FOUND", "NVCC")
load("//tools/bazel:eddy.bzl", "eddy_cc_library")

_NVCC_OPTIONS = [
    "-std=c++20",
    "-O3",
    "-DNDEBUG",
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
    "--Werror=all-warnings",
    "-Xcompiler=-Wall,-Werror,-fPIC,-march=x86-64-v2",
]

def _nvcc_objects_impl(ctx):
    infos = [dep[CcInfo] for dep in ctx.attr.deps]
    context = cc_common.merge_cc_infos(cc_infos = infos).compilation_context
    options = ctx.actions.args()
    options.add_all(_NVCC_OPTIONS)
    options.add_all(ctx.attr.nvccopts)
    options.add_all(context.defines, before_each = "-D")
    options.add_all([".", ctx.genfiles_dir.path], before_each = "-I")
    options.add_all(context.includes, before_each = "-I")
    options.add_all(context.quote_includes, before_each = "-I")
    options.add_all(context.system_includes, before_each = "-isystem")
    if ctx.attr.device_link:
        options.add("-rdc=true")

    objects = []
    for source in ctx.files.srcs:
        if source.extension != "cu":
            continue
        stem = source.basename[:-len(".cu")]
        result = ctx.actions.declare_file("_nvcc/%s/%s.cu.o" % (ctx.label.name, stem))
        ctx.actions.run(
            executable = NVCC,
            arguments = [options, "-c", source.path, "-o", result.path],
            inputs = depset(ctx.files.srcs + ctx.files.hdrs, transitive = [context.headers]),
            outputs = [result],
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s with nvcc" % source.short_path,
            use_default_shell_env = True,
        )
        objects.append(result)

    if ctx.attr.device_link:
        linked = ctx.actions.declare_file("_nvcc/%s/device_link.o" % ctx.label.name)
        ctx.actions.run(
            executable = NVCC,
            arguments = [options, "-dlink", "-o", linked.path] + [o.path for o in objects] + ["-lcudadevrt"],
            inputs = objects,
            outputs = [linked],
            mnemonic = "CudaDeviceLink",
            use_default_shell_env = True,
        )
        objects.append(linked)
    return [DefaultInfo(files = depset(objects))]

_nvcc_objects = rule(
    implementation = _nvcc_objects_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "device_link": attr.bool(),
        "hdrs": attr.label_list(allow_files = True),
        "nvccopts": attr.string_list(),
        "srcs": attr.label_list(allow_files = [".cu", ".cuh", ".h"]),
    },
)

def eddy_cuda_library(
        name,
        srcs,
        stub_srcs = [],
        hdrs = [],
        deps = [],
        device_link = False,
        nvccopts = [],
        hides_toolkit = False,
        **kwargs):
    """A library that is CUDA code where that is possible, and a stub elsewhere.

    Args:
      name: name of the cc_library.
      srcs: .cu files for nvcc, .cc files for the C++ compiler, private headers.
      stub_srcs: .cc files that take their place without CUDA.
      hdrs: public headers, plain C++.
      deps: as cc_library; the CUDA runtime is added.
      device_link: compile with relocatable device code and link it, with cudadevrt:
        needed for cudaGraphSetConditional and launches from the device.
      nvccopts: further options for nvcc.
      hides_toolkit: what depends on the library does not see the toolkit's headers, and is not
        compiled again for them; nvcc finds its own.
      **kwargs: as eddy_cc_library.
    """
    device_srcs = [s for s in srcs if s.endswith(".cu")]
    headers = [s for s in srcs if s.endswith(".h") or s.endswith(".cuh")]
    host_srcs = [s for s in srcs if s not in device_srcs]
    real_srcs = host_srcs
    runtime = "@cuda//:cudart_code" if hides_toolkit else "@cuda//:cudart"
    if CUDA_FOUND and device_srcs:
        _nvcc_objects(
            name = name + "_objects",
            srcs = device_srcs + headers,
            hdrs = hdrs,
            deps = deps + [runtime],
            device_link = device_link,
            nvccopts = nvccopts,
            tags = ["manual"],
            visibility = ["//visibility:private"],
        )
        real_srcs = host_srcs + [":" + name + "_objects"]
    eddy_cc_library(
        name = name,
        srcs = real_srcs if CUDA_FOUND else stub_srcs,
        hdrs = hdrs,
        deps = deps + ([runtime] if CUDA_FOUND else []) +
               (["@cuda//:cudadevrt"] if CUDA_FOUND and device_link else []),
        **kwargs
    )
