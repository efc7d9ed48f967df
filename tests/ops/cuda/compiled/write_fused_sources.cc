// Writes the sources of some seeded random programs and loops, for a compiler:
// write_fused_sources SEED PROGRAMS LOOPS prints one file that the host's compiler and nvcc take,
// with tables of the kernels at its end.
#include <cstdio>
#include <cstdlib>
#include <set>

#include "ops/cuda/images/copy_source.h"
#include "ops/cuda/text/fused_text.h"
#include "ops/cuda/text/persistent_text.h"
#include "tests/ops/cuda/compiled/fused_sources.h"
#include "tests/ops/cuda/compiled/random_expressions.h"
#include "tests/ops/cuda/compiled/random_loop_copies.h"
#include "tests/ops/cuda/compiled/random_loop_programs.h"

namespace {

// Prints the source; its name is another line of the table.
void print(const eddy::Result<eddy::cuda::KernelSource>& source, std::string& table) {
  if (!source.is_ok()) {
    std::fprintf(stderr, "%s\n", source.status().to_string().c_str());
    std::exit(1);
  }
  std::printf("%s\n", source->text.c_str());
  table += "    " + source->name + ",\n";
}

// Launches that decide are for the driver to link, so nvcc's image has none of them.
void print_copies(int count) {
  alignas(64) static unsigned char arena[eddy::testing::kCopyArenaBytes];
  eddy::Random random(eddy::testing::kCopySourcesSeed);
  std::set<std::string> known;
  std::string table;
  std::printf("#ifndef __CUDACC__\n");
  for (int i = 0; i < count; ++i) {
    const auto source =
        eddy::cuda::loop_copy_source(eddy::testing::RandomLoopCopy::make(random, arena));
    if (source.is_ok() && known.insert(source->name).second) {
      std::printf("%s\n", source->text.c_str());
    }
    table += source.is_ok() ? "    " + source->name + ",\n" : "    nullptr,\n";
  }
  std::printf(
      "#include \"tests/ops/cuda/compiled/fused_sources.h\"\nnamespace eddy::testing {\n"
      "const FusedHostKernel kCopyHostKernels[] = {\n%s};\n"
      "const int kNumCopyHostKernels = %d;\n}\n#endif\n",
      table.c_str(), count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "write_fused_sources needs a seed and two counts\n");
    return 2;
  }
  eddy::Random random(std::strtoull(argv[1], nullptr, 10));
  const int num_programs = std::atoi(argv[2]), num_loops = std::atoi(argv[3]);
  std::string programs, loops;
  for (int i = 0; i < num_programs; ++i) {
    const auto program = eddy::testing::random_program(random);
    print(eddy::cuda::fused_kernel_source(program.expression, program.inputs, program.outputs),
          programs);
  }
  for (int i = 0; i < num_loops; ++i) {
    print(eddy::cuda::persistent_kernel_source(eddy::testing::random_loop_program(random)), loops);
  }
  std::printf(
      "#ifndef __CUDACC__\n#include \"tests/ops/cuda/compiled/fused_sources.h\"\n"
      "namespace eddy::testing {\n"
      "const FusedHostKernel kFusedHostKernels[] = {\n%s};\n"
      "const int kNumFusedHostKernels = %d;\n"
      "const FusedHostKernel kLoopHostKernels[] = {\n%s};\n"
      "const int kNumLoopHostKernels = %d;\n}\n#endif\n",
      programs.c_str(), num_programs, loops.c_str(), num_loops);
  print_copies(120);
  return 0;
}
