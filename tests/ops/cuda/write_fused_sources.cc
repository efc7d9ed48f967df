// Writes the sources of some seeded random programs, for a compiler: write_fused_sources SEED COUNT
// prints one file that the host's compiler and nvcc take, with a table of the kernels at its end.
#include <cstdio>
#include <cstdlib>

#include "ops/cuda/fused_text.h"
#include "tests/ops/cuda/random_expressions.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "write_fused_sources needs a seed and a count\n");
    return 2;
  }
  eddy::Random random(std::strtoull(argv[1], nullptr, 10));
  const int count = std::atoi(argv[2]);
  std::string table;
  for (int i = 0; i < count; ++i) {
    const auto program = eddy::testing::random_program(random);
    const auto source =
        eddy::cuda::fused_kernel_source(program.expression, program.inputs, program.output);
    if (!source.is_ok()) {
      std::fprintf(stderr, "%s\n", source.status().to_string().c_str());
      return 1;
    }
    std::printf("%s\n", source->text.c_str());
    table += "    " + source->name + ",\n";
  }
  std::printf(
      "#ifndef __CUDACC__\n#include \"tests/ops/cuda/fused_sources.h\"\n"
      "namespace eddy::testing {\n"
      "const FusedHostKernel kFusedHostKernels[] = {\n%s};\n"
      "const int kNumFusedHostKernels = %d;\n}\n#endif\n",
      table.c_str(), count);
  return 0;
}
