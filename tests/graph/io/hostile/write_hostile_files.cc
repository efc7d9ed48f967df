// write_hostile_files DIR: writes every hostile file as DIR/NAME/m.onnx, with what lies beside it
// and the error it must get in DIR/NAME/says.txt.
#include <cstdio>
#include <fstream>

#include "tests/graph/io/hostile/hostile_files.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_hostile_files DIR\n", stderr);
    return 2;
  }
  size_t count = 0;
  for (const eddy::hostile::HostileFile& file : eddy::hostile::all_files()) {
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / file.name;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (file.prepare) file.prepare(folder);
    std::ofstream(folder / "m.onnx", std::ios::binary) << file.bytes;
    std::ofstream(folder / "says.txt") << file.says << '\n';
    if (!std::filesystem::exists(folder / "m.onnx")) {
      std::fprintf(stderr, "cannot write into %s\n", folder.c_str());
      return 1;
    }
    ++count;
  }
  std::printf("%zu files\n", count);
  return 0;
}
