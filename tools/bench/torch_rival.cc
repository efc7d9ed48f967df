#include "tools/bench/torch_rival.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <vector>

#include "ops/cpu/isa/isa.h"

namespace eddy {
namespace {

// Prints best and median of ten, of the forward pass and of both, in ns of a unit.
constexpr const char* kScript = R"(
import sys, time, torch
torch.set_num_threads(1)
F, nn = torch.nn.functional, torch.nn
def mean_square(y): return (y * y).mean()
def uniform(scale, *dims): return ((torch.rand(*dims) * 2 - 1) * scale).requires_grad_()
def power():
    w = torch.tensor(0.99, requires_grad=True)
    def run():
        z = torch.tensor(1.0, requires_grad=True)
        while z > 0.99 ** 999.5: z = z * w
        return z
    return run, 1000, []
def tanh():
    w = (torch.rand(16, 16) - 0.5).requires_grad_()
    x = torch.rand(1, 16)
    def run():
        h = torch.zeros(1, 16)
        for _ in range(1000): h = torch.tanh(h @ w) + x
        return mean_square(h)
    return run, 1000, []
def network(net, x):
    return (lambda: mean_square(net(x))), 1, list(net.parameters())
def mlp():
    return network(nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                 nn.Linear(512, 10)), torch.rand(64, 784))
def cnn():
    return network(nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Flatten(), nn.Linear(3136, 256), nn.ReLU(),
                                 nn.Linear(256, 10)), torch.rand(32, 1, 28, 28))
def lstm():
    net, x = nn.LSTM(256, 256), torch.rand(64, 16, 256)
    return (lambda: mean_square(net(x)[1][0])), 1, list(net.parameters())
def cells():
    cell = nn.LSTMCell(256, 256)
    x = torch.rand(64, 16, 256)
    def run():
        h = c = torch.zeros(16, 256)
        for i in range(64): h, c = cell(x[i], (h, c))
        return mean_square(h)
    return run, 1, list(cell.parameters())
def adaptive_time(batch):
    cell, bias = uniform(2 / 16, 512, 256), uniform(1, 256)
    halt, halt_bias = uniform(4 / 16, 256, 1), torch.tensor([-1.5], requires_grad=True)
    x, none, count = torch.rand(32, batch, 256) * 2 - 1, torch.tensor(0.0), [0]
    def run():
        state, rows, count[0] = torch.zeros(batch, 256), [], 0
        for t in range(32):
            halted, mixed, n, going = torch.zeros(batch, 1), torch.zeros(batch, 256), 0, True
            while going and n < 12:
                new = torch.tanh(torch.cat([x[t], state], 1) @ cell + bias)
                chance = torch.sigmoid(new @ halt + halt_bias)
                last = (halted + chance >= 0.99) | torch.tensor(n >= 11)
                open = halted < 0.99
                share = torch.where(open, torch.where(last, 1 - halted, chance), none)
                halted, state = halted + share, torch.where(open, new, state)
                mixed, n = mixed + share * new, n + 1
                going = not bool((halted >= 0.99).all())
            state, count[0] = mixed, count[0] + n
            rows.append(mixed)
        return mean_square(torch.stack(rows))
    run()
    return run, count[0], [cell, bias, halt, halt_bias]
def nas_rnn(batch):
    from_x, from_h = uniform(1 / 16, 256, 2048), uniform(1 / 16, 256, 2048)
    x, s, t = torch.rand(1000, batch, 256) * 2 - 1, torch.sigmoid, torch.tanh
    def run():
        h, c, rows = torch.zeros(batch, 256), torch.zeros(batch, 256), []
        for i in range(1000):
            X, H = (x[i] @ from_x).chunk(8, 1), (h @ from_h).chunk(8, 1)
            b0 = t(s(X[0] + H[0]) * torch.relu(X[1] + H[1]))
            b1 = t(s(X[2] + H[2]) + torch.relu(X[3] * H[3]))
            b2 = t(t(X[4] + H[4]) * s(X[5] + H[5]))
            b3 = s(t(X[6] + H[6]) + s(X[7] + H[7]))
            c = t(b0 + c) * b1
            h = t(c * t(b2 + b3))
            rows.append(h)
        return mean_square(torch.stack(rows))
    return run, 1000, [from_x, from_h]
def seq2seq(batch):
    words = 3797
    table, output = uniform(2, words, 256), uniform(1, 256, words)
    read, read_bias = uniform(2 / 16, 512, 1024), uniform(2 / 16, 1024)
    write, write_bias = uniform(2 / 16, 512, 1024), uniform(2 / 16, 1024)
    source, bonus = torch.randint(1, words, (16, batch)), torch.zeros(1, words)
    bonus[0, 0] = 1e4
    def step(x, h, c, w, bias):
        i, o, f, g = (torch.cat([x, h], 1) @ w + bias).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
    def run():
        h = c = torch.zeros(batch, 256)
        for i in range(16): h, c = step(table[source[i]], h, c, read, read_bias)
        token, n = torch.ones(batch, dtype=torch.long), 0
        while n < 50:
            h, c = step(table[token], h, c, write, write_bias)
            best = (h @ output + bonus * float(n >= 9)).argmax(1)
            token, n = torch.where(token == 0, 0, best), n + 1
            if bool((token == 0).all()): break
        return mean_square(h)
    return run, 1, [table, read, read_bias, write, write_bias]
def tree(batch):
    encode, encode_bias = uniform(1 / 16, 512, 256), uniform(1 / 16, 256)
    decode, decode_bias = uniform(1 / 16, 256, 512), uniform(1 / 16, 512)
    leaves, program = torch.rand(33, batch, 256) * 2 - 1, [0]
    for i in range(1, 33): program += [i, -1]
    def run():
        stack, rows, loss = [], [], torch.zeros(batch)
        for code in program:
            if code >= 0: made = leaves[code]
            else:
                right, left = stack.pop(), stack.pop()
                both = torch.cat([left, right], 1)
                made = torch.tanh(both @ encode + encode_bias)
                wrong = torch.tanh(made @ decode + decode_bias) - both
                loss = loss + (wrong * wrong).sum(1)
            stack.append(made)
            rows.append(made)
        return mean_square(torch.stack(rows)) + mean_square(loss)
    return run, 1, [encode, encode_bias, decode, decode_bias]
name = sys.argv[1].split()
batch = [int(word[1:]) for word in name if word[0] == 'b' and word[1:].isdigit()]
run, units, parameters = globals()[name[0]](*batch)
optimizer = torch.optim.Adam(parameters, lr=0.001) if 'adam' in name else None
def forward():
    with torch.no_grad(): run()
def both():
    for p in parameters: p.grad = None
    run().backward()
    if optimizer: return optimizer.step()
    with torch.no_grad():
        for p in parameters: p -= 0.001 * p.grad
def times(f):
    f()
    all = []
    for _ in range(10):
        start = time.perf_counter_ns(); f(); all.append(time.perf_counter_ns() - start)
    all.sort()
    return all[0] / units, (all[4] + all[5]) / 2 / units
print(*times(forward), *times(both))
)";

// Of one process: its number, how many there are, where they meet, samples of all. The first prints
// ns of each of 30 steps.
constexpr const char* kSharedScript = R"(
import sys, time, torch, torch.distributed as dist
torch.set_num_threads(1)
nn, rank, ranks, samples = torch.nn, int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[4])
dist.init_process_group('gloo', init_method='file://' + sys.argv[3], rank=rank, world_size=ranks)
net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                    nn.Linear(512, 10))
shared = nn.parallel.DistributedDataParallel(net)
x = torch.rand(samples // ranks, 784)
def step():
    for p in net.parameters(): p.grad = None
    y = shared(x)
    (y * y).mean().backward()
    with torch.no_grad():
        for p in net.parameters(): p -= 0.001 * p.grad
all = []
for _ in range(35):
    dist.barrier()
    start = time.perf_counter_ns(); step(); all.append(time.perf_counter_ns() - start)
if rank == 0: print(*all[5:], flush=True)
dist.barrier()
)";

// What the command writes, or nothing where it fails.
std::string output_of(const std::string& command) {
  std::FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  return pclose(pipe) == 0 ? text : "";
}

// OpenBLAS takes a processor that it does not know for the oldest, whose products take twice as
// long. What the user has named stays.
void name_processor() {
  const cpu::Instructions here = cpu::instructions_within("");
  const char* const name = here.has_avx512 ? "SkylakeX" : here.has_avx2 ? "Haswell" : nullptr;
  if (name != nullptr) setenv("OPENBLAS_CORETYPE", name, 0);
}

}  // namespace

TorchRival::TorchRival(std::string python) {
  name_processor();
  const std::vector<std::string> known = {"python3", "/usr/bin/python3"};
  for (const std::string& each : python.empty() ? known : std::vector<std::string>{python}) {
    version_ = output_of("'" + each + "' -c 'import torch; print(torch.__version__, end=str())'");
    python_ = each;
    if (is_there()) return;
  }
}

std::optional<TorchTimes> TorchRival::run(const std::string& name) const {
  if (!is_there()) return std::nullopt;
  setenv("EDDY_BENCH_RIVAL", kScript, 1);
  const std::string text = output_of("'" + python_ + "' -c \"$EDDY_BENCH_RIVAL\" '" + name + "'");
  unsetenv("EDDY_BENCH_RIVAL");
  TorchTimes t;
  const int found = std::sscanf(text.c_str(), "%lf %lf %lf %lf", &t.forward_best_ns,
                                &t.forward_median_ns, &t.both_best_ns, &t.both_median_ns);
  return found == 4 ? std::optional(t) : std::nullopt;
}

std::vector<double> TorchRival::run_shared(uint32_t num_ranks, int64_t samples,
                                           const std::string& folder) const {
  if (!is_there()) return {};
  setenv("EDDY_BENCH_RIVAL", kSharedScript, 1);
  setenv("GLOO_SOCKET_IFNAME", "lo", 0);
  std::string command;
  for (uint32_t rank = num_ranks; rank-- > 0;) {
    command += "'" + python_ + "' -c \"$EDDY_BENCH_RIVAL\" " + std::to_string(rank) + " " +
               std::to_string(num_ranks) + " '" + folder + "/store' " + std::to_string(samples) +
               (rank > 0 ? " & " : "");
  }
  std::istringstream text(output_of("(" + command + "; wait)"));
  unsetenv("EDDY_BENCH_RIVAL");
  return {std::istream_iterator<double>(text), std::istream_iterator<double>()};
}

}  // namespace eddy
