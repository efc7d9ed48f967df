// Figures of rivals that were measured before, one a line: X(line of the table, rival, least, most,
// where): µs of a round or ms of a run, fp32 with TF32, medians. `where` is the machine and the
// day: "H200 2026-11" is one H200 in a VM, driver 580.159, CUDA 13.0, JAX 0.11.2, PyTorch of that
// month.
//
// ingest.py writes the lines anew of what comes back from a GPU, by line and rival; so each stands
// on a line of its own, whatever its length.
#pragma once

// clang-format off
#define EDDY_PEER_FIGURES(X) \
  X("scalar while", "by hand", 4.3, 4.3, "H200 2026-11") \
  X("scalar while", "JAX with WHILE flags", 6.3, 6.3, "H200 2026-11") \
  X("scalar while", "JAX", 14, 22, "H200 2026-11") \
  X("scalar while", "torch.compile'd step", 101, 101, "H200 2026-11") \
  X("scalar while", "PyTorch eager", 33, 33, "H200 2026-11") \
  X("scalar while", "PyTorch, step as CUDA graph", 11.5, 11.5, "H200 2026-11") \
  X("scalar while, persistent", "by hand", 4.3, 4.3, "H200 2026-11") \
  X("scalar while, persistent", "JAX with WHILE flags", 6.3, 6.3, "H200 2026-11") \
  X("scalar while, persistent", "JAX", 14, 22, "H200 2026-11") \
  X("scalar while, persistent", "torch.compile'd step", 101, 101, "H200 2026-11") \
  X("scalar while, persistent", "PyTorch eager", 33, 33, "H200 2026-11") \
  X("scalar while, persistent", "PyTorch, step as CUDA graph", 11.5, 11.5, "H200 2026-11") \
  X("scalar while, persistent", "persistent kernel by hand", 0.76, 0.76, "H200 2026-11") \
  X("matmul and tanh while", "JAX with WHILE flags", 9.261, 9.261, "NVIDIA H200 2026-11-29") \
  X("matmul and tanh while", "JAX", 22, 27, "H200 2026-11") \
  X("matmul and tanh while", "PyTorch, step as CUDA graph", 20, 20, "H200 2026-11") \
  X("matmul and tanh while", "PyTorch eager", 46, 54, "H200 2026-11") \
  X("matmul and tanh while", "torch.compile'd step", 64, 64, "H200 2026-11") \
  X("eight such loops", "JAX with WHILE flags", 9.75, 9.75, "H200 2026-11") \
  X("eight such loops", "JAX with WHILE flags, apart", 38, 38, "H200 2026-11") \
  X("eight such loops", "JAX", 95, 174, "H200 2026-11") \
  X("eight such loops", "PyTorch, step as CUDA graph", 89, 89, "H200 2026-11") \
  X("eight such loops", "PyTorch eager", 204, 204, "H200 2026-11") \
  X("host predicate, 1-kernel body", "floor", 5.2, 5.2, "H200 2026-11") \
  X("host predicate, 10-kernel body", "floor", 11.8, 11.8, "H200 2026-11") \
  X("while with a 4-way case", "by hand", 10.65, 10.65, "NVIDIA H200 2026-11-29") \
  X("32 loops side by side", "floor", 1.483, 1.483, "NVIDIA H200 2026-11-29") \
  X("lstm, batch 1", "JAX with WHILE flags", 3.43, 3.43, "H200 2026-11") \
  X("lstm, batch 64", "JAX with WHILE flags", 4.41, 4.41, "H200 2026-11") \
  X("nas_rnn, batch 1", "JAX with WHILE flags", 10.9, 10.9, "H200 2026-11") \
  X("nas_rnn, batch 64", "JAX with WHILE flags", 14.6, 14.6, "H200 2026-11") \
  X("attention, batch 1", "JAX with WHILE flags", 0.5, 0.5, "H200 2026-11") \
  X("attention, batch 64", "JAX with WHILE flags", 1.03, 1.03, "H200 2026-11") \
  X("seq2seq, batch 1, stops at 10", "best correct peer", 0.33, 0.33, "H200 2026-11") \
  X("seq2seq, batch 64, stops at 10", "best correct peer", 0.4, 0.4, "H200 2026-11") \
  X("seq2seq, batch 1, stops at 40", "best correct peer", 1, 1, "H200 2026-11") \
  X("seq2seq, batch 64, stops at 40", "best correct peer", 1.19, 1.19, "H200 2026-11") \
  X("blockdrop, batch 1", "torch.compile'd step", 0.18, 0.18, "H200 2026-11") \
  X("blockdrop, batch 64", "torch.compile'd step", 0.32, 0.32, "H200 2026-11") \
  X("skipnet, batch 1", "torch.compile'd step", 1.75, 1.75, "H200 2026-11") \
  X("tree, batch 1", "torch.compile'd step", 0.66, 0.66, "H200 2026-11") \
  X("inception_v3", "PyTorch CUDA graph", 1.778, 1.778, "NVIDIA H200 2026-11-29") \
  X("inception_v3", "torch.compile", 1.31, 1.31, "H200 2026-11") \
  X("inception_v3", "PyTorch eager", 8.9, 8.9, "H200 2026-11") \
  X("resnet50", "PyTorch CUDA graph", 0.906, 0.906, "NVIDIA H200 2026-11-29") \
  X("resnet50", "torch.compile", 0.75, 0.75, "H200 2026-11") \
  X("resnet50", "PyTorch eager", 3.3, 3.3, "H200 2026-11") \
  X("mobilenet_v2", "PyTorch CUDA graph", 0.412, 0.412, "NVIDIA H200 2026-11-29") \
  X("mobilenet_v2", "torch.compile", 0.56, 0.56, "H200 2026-11") \
  X("mobilenet_v2", "PyTorch eager", 2.7, 2.7, "H200 2026-11") \
  X("efficientnet_b0", "PyTorch CUDA graph", 0.749, 0.749, "NVIDIA H200 2026-11-29") \
  X("efficientnet_b0", "PyTorch eager", 7.2, 7.2, "H200 2026-11") \
  X("nasnetalarge", "PyTorch CUDA graph", 5.39, 5.39, "NVIDIA H200 2026-11-29") \
  X("nasnetalarge", "PyTorch eager", 22.6, 22.6, "H200 2026-11") \
  X("bert_base", "PyTorch CUDA graph", 0.753, 0.753, "NVIDIA H200 2026-11-29") \
  X("bert_base", "PyTorch eager", 5.2, 5.2, "H200 2026-11")
// clang-format on
