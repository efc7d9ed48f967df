// A main for fuzz targets where libFuzzer is not linked: runs every file of a corpus, then cuts,
// flips, copies and splices of them, from a seed, for a number of executions, or until so many
// seconds are over (then EXECUTIONS does not count).
//
//   replay FOLDER [EXECUTIONS [SEED [SECONDS]]]
//
// It follows no coverage; it keeps the corpus, and what was found once, from breaking again.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using eddy::Random;

std::vector<std::string> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           folder, std::filesystem::directory_options::follow_directory_symlink)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

void execute(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

// One small change.
void change(std::string& bytes, const std::vector<std::string>& corpus, Random& random) {
  if (bytes.empty()) {
    bytes = corpus[random.below(corpus.size())];
    return;
  }
  const size_t at = random.below(bytes.size());
  const size_t length = std::min<size_t>(1 + random.below(16), bytes.size() - at);
  switch (random.below(7)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(random.next());
      break;
    case 2:
      bytes.erase(at, length);
      break;
    case 3:
      bytes.insert(at, bytes.substr(at, length));
      break;
    case 4:
      bytes.resize(at);
      break;
    case 5:
      bytes[at] = static_cast<char>(random.below(2) == 0 ? 0x7f : 0xff);
      break;
    default: {
      const std::string& other = corpus[random.below(corpus.size())];
      if (other.empty()) break;
      const size_t from = random.below(other.size());
      bytes.replace(at, length, other.substr(from, 1 + random.below(64)));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: replay FOLDER [EXECUTIONS [SEED [SECONDS]]]\n", stderr);
    return 2;
  }
  const std::vector<std::string> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "replay: there is no file in %s\n", argv[1]);
    return 3;
  }
  const uint64_t executions = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2000;
  const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const uint64_t seconds = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 0;
  const auto start = std::chrono::steady_clock::now();
  const auto goes_on = [&](uint64_t done) {
    if (seconds == 0) return done < executions;
    return std::chrono::steady_clock::now() - start < std::chrono::seconds(seconds);
  };
  for (const std::string& bytes : corpus) execute(bytes);
  Random random(seed);
  uint64_t done = 0;
  for (; goes_on(done); ++done) {
    std::string bytes = corpus[random.below(corpus.size())];
    for (uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
      change(bytes, corpus, random);
    }
    execute(bytes);
  }
  std::printf("%zu files and %llu changes of them, seed %llu\n", corpus.size(),
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(seed));
  return 0;
}
