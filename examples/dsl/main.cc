// eddy_dsl [--plan] [FILE]: runs a program, or shows its graph and plan; without FILE it reads
// pieces of one, line by line, and keeps their functions and variables.
//
// Exit codes: 0; 2 usage; 3 the program is bad; 4 it failed while running.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>

#include "examples/dsl/language.h"

namespace dsl {
namespace {

// At once, as rows come while a loop runs; throws where the output is lost.
void show(const std::string& text) {
  if (std::cout << text << std::flush) return;
  throw std::runtime_error(std::string("the output is lost: ") + std::strerror(errno));
}

void print_elements(const eddy_tensor& tensor, int32_t axis, size_t& next) {
  if (axis < tensor.rank) {
    for (int64_t i = 0; i < tensor.dims[axis]; ++i) {
      std::cout << (i == 0 ? "[" : ", ");
      print_elements(tensor, axis + 1, next);
    }
    std::cout << (tensor.dims[axis] == 0 ? "[]" : "]");
  } else if (tensor.element == kInt) {
    std::cout << static_cast<const int64_t*>(tensor.data)[next++];
  } else if (tensor.element == kBool) {
    std::cout << static_cast<const bool*>(tensor.data)[next++];
  } else {
    std::cout << static_cast<const double*>(tensor.data)[next++];
  }
}

void print(const std::string& text, const eddy::Value& value) {
  std::cout << text << " = ";
  size_t next = 0;
  print_elements(value.view(), 0, next);
  show("\n");
}

class Interpreter {
 public:
  // Runs one piece of a program, which begins at a line of a file, whose name must stay; 0, or an
  // exit code, and why is said.
  int run(const std::string& text, const char* file, uint32_t line, bool is_plan) {
    int code = 3;
    try {
      const Node program = parse(texts_.emplace_back(text), file, line, functions_);
      const auto [graph, shown, stream, kept] = compile(program, functions_, variables_, library_);
      const eddy::Session session(graph);
      if (is_plan) return show(graph.print() + session.plan_text()), 0;
      code = 4;
      eddy::Run run(session);
      for (const auto& [name, value] : variables_) run.bind_input(session.find_input(name), value);
      const eddy::Rows rows(16);
      if (stream) run.stream_output(*stream, rows);
      run.submit();
      for (size_t i = 0; const auto row = stream ? rows.next() : std::nullopt; ++i) {
        print(shown[*stream]->text + "[" + std::to_string(i) + "]", *row);
      }
      run.wait();
      for (size_t i = 0; i < shown.size(); ++i) {
        if (i != stream) print(shown[i]->text, run.output(i));
      }
      for (size_t i = shown.size(); const auto& name : kept) variables_[name] = run.output(i++);
      return 0;
    } catch (const Failure& failure) {
      std::cerr << failure.what() << "\n";
    } catch (const eddy::Error& error) {
      std::cerr << (error.file().empty() ? std::string(file) + ": " : "") << error.what() << "\n";
    }
    return code;
  }

 private:
  const eddy::Context context_;
  const eddy::Library library_{context_};
  std::deque<std::string> texts_;  // what functions point into
  Functions functions_;
  Variables variables_;
};

void converse(Interpreter& interpreter) {
  for (uint32_t next_line = 1; std::cin;) {
    const uint32_t first_line = next_line;
    std::string piece;
    for (int open = 0; std::cin && (piece.empty() || open > 0); ++next_line) {
      if (isatty(STDIN_FILENO) != 0) show(piece.empty() ? "> " : "... ");
      std::string line;
      std::getline(std::cin, line);
      piece += line + "\n";
      open += num_open(line);
    }
    interpreter.run(piece, "input", first_line, false);
  }
}

}  // namespace
}  // namespace dsl

int main(int argc, char** argv) try {
  const bool is_plan = argc > 1 && std::string_view(argv[1]) == "--plan";
  const char* const path = argv[is_plan ? 2 : 1];  // null: a dialogue
  if (argc > (is_plan ? 3 : 2) || (is_plan && path == nullptr)) {
    return std::cerr << "usage: eddy_dsl [[--plan] FILE]; without, it reads its input\n", 2;
  }
  std::cout.precision(10);
  std::cout << std::boolalpha;
  dsl::Interpreter interpreter;
  if (path == nullptr) return dsl::converse(interpreter), 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  for (char c; file.get(c);) text += c;
  if (file.eof()) return interpreter.run(text, path, 1, is_plan);
  return std::cerr << path << ": this file cannot be read: " << std::strerror(errno) << "\n", 3;
} catch (const std::exception& error) {
  std::cerr << "eddy_dsl: " << error.what() << "\n";
  return 4;
}
