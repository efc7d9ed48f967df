// calculator [PROGRAM.calc]: runs a program from a file or from standard input.
//
// Exit codes: 0; 2 usage; 3 the program is bad; 4 it failed while running.
#include <fstream>
#include <iostream>

#include "examples/calculator/calculator.h"
#include "examples/print_tensor.h"
#include "examples/report.h"
#include "runtime/api/session.h"

namespace eddy {

Status run(std::istream& file, bool& is_running) {
  std::string source;
  for (char c; file.get(c);) source += c;
  if (!file.eof()) return not_found("this file cannot be read");
  Library library;
  EDDY_ASSIGN_OR_RETURN(auto program, calculator::compile(source, library.ops()));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(program.graph), {}));
  is_running = true;
  EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session->run({}));
  std::cout.precision(10);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::cout << std::boolalpha << program.labels[i] << " = ";
    print_tensor(std::cout, outputs[i].second);
    std::cout << "\n";
  }
  return Status::ok();
}

}  // namespace eddy

int main(int argc, char** argv) {
  if (argc > 2) return std::cerr << "usage: calculator [PROGRAM.calc]\n", 2;
  std::ifstream file;
  if (argc == 2) file.open(argv[1], std::ios::binary);
  bool is_running = false;  // a program has no inputs: what fails from then on is the run's fault
  const eddy::Status status = eddy::run(argc == 2 ? file : std::cin, is_running);
  if (status.is_ok()) return 0;
  std::cerr << eddy::calculator::explain(status, argc == 2 ? argv[1] : "standard input") << "\n";
  return is_running ? 4 : eddy::exit_code(status);
}
