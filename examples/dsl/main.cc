// eddy_dsl [--plan] [FILE]: runs a program, or shows its graph and plan; without FILE it reads
// pieces of one, line by line, and keeps their functions and variables.
//
// Exit codes: 0; 2 usage; 3 the program is bad; 4 it failed while running.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <iostream>

#include "examples/dsl/compiler.h"

namespace dsl {
namespace {

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
  std::cout << std::endl;  // at once: rows come while a loop runs
}

class Interpreter {
 public:
  // Runs one piece of a program; 0, or an exit code, and why is said.
  int run(const std::string& text, const std::string& file, Position at, bool is_plan) {
    int code = 3;
    try {
      const Node program = parse(texts_.emplace_back(text), at, functions_);
      Types types;
      for (const auto& [name, value] : variables_) {
        const eddy_tensor view = value.view();
        types[name] = eddy::type(view.element, {view.dims, view.dims + view.rank});
      }
      const Compiled made = compile(program, functions_, types, library_, file);
      const eddy::Session session(made.graph);
      if (is_plan) return std::cout << made.graph.print() << session.plan_text(), 0;
      code = 4;
      eddy::Run run(session);
      for (const auto& [name, value] : variables_) run.bind_input(session.find_input(name), value);
      execute(run, made);
      return 0;
    } catch (const Failure& failure) {
      std::cerr << file << ":" << failure.at.line << ":" << failure.at.column << ": "
                << failure.what() << "\n";
    } catch (const eddy::Error& error) {
      std::cerr << (error.file().empty() ? file + ": " : "") << error.what() << "\n";
    }
    return code;
  }

 private:
  void execute(eddy::Run& run, const Compiled& made) {
    const auto& shown = made.shown;
    const auto is_stream = [](const Node* node) { return node->kind == Kind::kStream; };
    const auto stream = std::ranges::find_if(shown, is_stream);
    if (stream == shown.end()) {
      run.execute();
    } else {
      const eddy::Rows rows(16);
      run.stream_output(static_cast<size_t>(stream - shown.begin()), rows);
      run.submit();
      for (size_t i = 0; const auto row = rows.next(); ++i) {
        print((*stream)->text + "[" + std::to_string(i) + "]", *row);
      }
      run.wait();
    }
    for (size_t i = 0; i < shown.size(); ++i) {
      if (!is_stream(shown[i])) print(shown[i]->text, run.output(i));
    }
    for (size_t i = 0; i < made.kept.size(); ++i) {
      variables_[made.kept[i]] = run.output(shown.size() + i);
    }
  }

  const eddy::Context context_;
  const eddy::Library library_{context_};
  std::deque<std::string> texts_;  // what functions point into
  Functions functions_;
  std::map<std::string, eddy::Value> variables_;
};

// Whether a piece has brackets that nothing closes yet.
bool is_open(const std::string& text) {
  int count = 0;
  for (const Token& token : split(text, {})) {
    count += token.is("{") || token.is("[") || token.is("(");
    count -= token.is("}") || token.is("]") || token.is(")");
  }
  return count > 0;
}

void converse(Interpreter& interpreter) {
  const bool is_terminal = isatty(STDIN_FILENO) != 0;
  std::string piece;
  Position at;
  for (uint32_t number = 1;; ++number) {
    if (is_terminal) std::cout << (piece.empty() ? "> " : "... ") << std::flush;
    std::string line;
    const bool is_end = !std::getline(std::cin, line);
    if (piece.empty()) at.line = number;
    piece += line + "\n";
    if (!is_end && is_open(piece)) continue;
    interpreter.run(piece, "input", at, false);
    if (is_end) return;
    piece.clear();
  }
}

int main(std::vector<std::string> arguments) {
  const bool is_plan = !arguments.empty() && arguments[0] == "--plan";
  if (is_plan) arguments.erase(arguments.begin());
  if (arguments.size() > 1 || (is_plan && arguments.empty())) {
    return std::cerr << "usage: eddy_dsl [[--plan] FILE]; without, it reads its input\n", 2;
  }
  std::cout.precision(10);
  std::cout << std::boolalpha;
  Interpreter interpreter;
  if (arguments.empty()) return converse(interpreter), 0;
  std::ifstream file(arguments[0], std::ios::binary);
  std::string text;
  for (char c; file.get(c);) text += c;
  if (file.eof()) return interpreter.run(text, arguments[0], {}, is_plan);
  return std::cerr << arguments[0] << ": this file cannot be read\n", 3;
}

}  // namespace
}  // namespace dsl

int main(int argc, char** argv) try {
  return dsl::main({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "eddy_dsl: " << error.what() << "\n";
  return 4;
}
