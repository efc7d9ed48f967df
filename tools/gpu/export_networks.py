#!/usr/bin/env python3
"""export_networks.py DIR [NAME...]: networks with seeded weights for gpu_report --part networks.

For each network that the machine's torchvision or timm has, DIR/NAME gets model.onnx, input.npy and
output.npy (by PyTorch, in float64 on the CPU where that fits, so that nobody's rounding is the
measure), and rivals.json: milliseconds a run of PyTorch on this machine's GPU, eager, as a CUDA graph
and compiled. What is not installed is said and left out. The files are large: never in the tree.
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
    def make(torch):
        import torchvision
        options = {"weights": None}
        if name == "inception_v3":
            options.update(init_weights=True, aux_logits=False)
        return getattr(torchvision.models, name)(**options), (1, 3, size, size)
    return make


def from_timm(name, size):
    def make(torch):
        import timm
        return timm.create_model(name, pretrained=False), (1, 3, size, size)
    return make


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


def rivals(torch, model, value):
    """Milliseconds a run; a way that fails has its reason in place of a number."""
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

    found = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name, way in (("eager_ms", eager), ("cuda_graph_ms", graph), ("compiled_ms", compiled)):
        try:
            found[name], found[name.replace("_ms", "_clock_ms")] = time_ms(torch, way())
        except Exception as error:  # whatever a library throws: the others are still measured
            found[name] = f"failed: {error}".splitlines()[0]
    return found


def export(torch, numpy, name, make, folder):
    torch.manual_seed(SEED)
    model, shape = make(torch)
    model.eval()
    value = torch.randn(shape)
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        output = model.double()(value.double()).float()
        model.float()
        numpy.save(folder / "input.npy", value.numpy())
        numpy.save(folder / "output.npy", output.numpy())
        torch.onnx.export(model, (value,), str(folder / "model.onnx"), opset_version=17,
                          input_names=["input"], output_names=["output"], dynamo=False)
        if torch.cuda.is_available():
            (folder / "rivals.json").write_text(json.dumps(rivals(torch, model, value), indent=1))


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
    for name in arguments[1:] or NETWORKS:
        try:
            export(torch, numpy, name, NETWORKS[name], pathlib.Path(arguments[0]) / name)
            print(f"{name}: exported")
        except Exception as error:  # a library that is not there, or refuses: the others go on
            left_out += 1
            print(f"{name}: left out: {error}".splitlines()[0])
    return 0 if left_out < len(NETWORKS) else 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
