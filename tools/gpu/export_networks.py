#!/usr/bin/env python3
"""export_networks.py DIR [NAME...]: networks with seeded weights for gpu_report --part networks.

For each network that the machine's torchvision or timm has, DIR/NAME gets model.onnx, input.npy and
output.npy (by PyTorch, in float64 on the CPU, so that nobody's rounding is the measure), and
rivals.json: milliseconds a run of PyTorch on this machine's GPU, eager, as a CUDA graph and compiled.
All are exported before any is measured, and compiled last of all, because that takes minutes; what is
measured is written at once. A model that is there already stays, so that several processes may export
before, without a GPU. What is not installed is said and left out. The files are large: never in the
tree.
"""
import json
import pathlib
import statistics
import sys
import time

SEED = 20
RUNS = 50


def bert_base(torch):
    """BERT-base's encoder at sequence length 128: 12 layers, 768 wide, 12 heads."""
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
    return torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), (1, 128, 768)


def from_torchvision(name, size):
    def made(torch):
        import torchvision
        options = {"weights": None}
        if name == "inception_v3":
            options.update(init_weights=True, aux_logits=False)
        return getattr(torchvision.models, name)(**options), (1, 3, size, size)
    return made


def from_timm(name, size):
    def made(torch):
        import timm
        return timm.create_model(name, pretrained=False), (1, 3, size, size)
    return made


NETWORKS = {
    "inception_v3": from_torchvision("inception_v3", 299),
    "resnet50": from_torchvision("resnet50", 224),
    "mobilenet_v2": from_torchvision("mobilenet_v2", 224),
    "efficientnet_b0": from_torchvision("efficientnet_b0", 224),
    "nasnetalarge": from_timm("nasnetalarge", 331),
    "bert_base": bert_base,
}


def time_ms(torch, call):
    """The medians of RUNS runs: between two events of the GPU, and by the clock until its end."""
    for _ in range(5):
        call()
    by_events, by_clock = [], []
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(RUNS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        by_clock.append(1e3 * (time.perf_counter() - start))
        by_events.append(first.elapsed_time(last))
    return statistics.median(by_events), statistics.median(by_clock)


def measure(torch, folder, model, value, wanted):
    """Milliseconds a run into rivals.json; a way that fails has its reason in place of a number."""
    model, value = model.cuda(), value.cuda()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True

    def eager():
        return lambda: model(value)

    def graph():
        for _ in range(3):
            model(value)
        torch.cuda.synchronize()
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            model(value)
        return recorded.replay

    def compiled():
        fast = torch.compile(model, mode="reduce-overhead")
        return lambda: fast(value)

    ways = {"eager": eager, "cuda_graph": graph, "compiled": compiled}
    file = folder / "rivals.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    found.update({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__})
    for name in wanted:
        try:
            found[name + "_ms"], found[name + "_clock_ms"] = time_ms(torch, ways[name]())
        except Exception as error:  # whatever a library throws: the others are still measured
            found[name + "_ms"] = f"failed: {error}".splitlines()[0]
        file.write_text(json.dumps(found, indent=1))


def make(torch, name):
    torch.manual_seed(SEED)
    model, shape = NETWORKS[name](torch)
    return model.eval(), torch.randn(shape)


def export(torch, numpy, name, folder):
    if (folder / "model.onnx").exists():
        return
    model, value = make(torch, name)
    folder.mkdir(parents=True, exist_ok=True)
    # A fused encoder layer is an operator of PyTorch's own, which ONNX has not.
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        output = model.double()(value.double()).float()
        model.float()
        numpy.save(folder / "input.npy", value.numpy())
        numpy.save(folder / "output.npy", output.numpy())
        part = folder / "model.part"
        torch.onnx.export(model, (value,), str(part), opset_version=17,
                          input_names=["input"], output_names=["output"], dynamo=False)
        part.rename(folder / "model.onnx")
    torch.backends.mha.set_fastpath_enabled(True)


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        import numpy
        import torch
    except ImportError as error:
        print(f"export_networks.py: {error}; nothing to export with", file=sys.stderr)
        return 4
    unknown = [name for name in arguments[1:] if name not in NETWORKS]
    if unknown:
        print(f"export_networks.py: no network {unknown[0]}; there are {', '.join(NETWORKS)}",
              file=sys.stderr)
        return 2
    left_out = 0
    folders = {name: pathlib.Path(arguments[0]) / name for name in arguments[1:] or NETWORKS}
    for name, folder in folders.items():
        try:
            export(torch, numpy, name, folder)
            print(f"{name}: exported", flush=True)
        except Exception as error:  # a library that is not there, or refuses: the others go on
            left_out += 1
            # The first line: behind it the exporter prints the whole graph.
            print(f"{name}: left out: {error}".splitlines()[0], flush=True)
    if torch.cuda.is_available():
        there = {name: folder for name, folder in folders.items()
                 if (folder / "model.onnx").exists()}
        for wanted in (["eager", "cuda_graph"], ["compiled"]):
            for name, folder in there.items():
                with torch.no_grad():
                    measure(torch, folder, *make(torch, name), wanted)
                print(f"{name}: measured {', '.join(wanted)}", flush=True)
    return 0 if left_out < len(folders) else 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
