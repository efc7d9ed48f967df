#include "graph/base/json_document.h"

#include <algorithm>
#include <string>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

// "[json.exception.parse_error.101] parse error at line 1, column 9: ..." without the brackets.
std::string words_of(const Json::exception& error) {
  std::string text = error.what();
  const size_t prefix_end = text.find("] ");
  if (prefix_end != std::string::npos) text.erase(0, prefix_end + 2);
  return text;
}

// The usual events, except for what would be lost silently.
class DocumentBuilder : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  DocumentBuilder(Json& root, std::string_view text)
      : json_sax_dom_parser(root, false), text_(text) {}

  bool start_object(size_t size) { return enter() && json_sax_dom_parser::start_object(size); }
  bool start_array(size_t size) { return enter() && json_sax_dom_parser::start_array(size); }
  bool end_object() {
    EDDY_CHECK(depth_ > 0) << "an object ends that never began";
    --depth_;
    return json_sax_dom_parser::end_object();
  }
  bool end_array() {
    EDDY_CHECK(depth_ > 0) << "a list ends that never began";
    --depth_;
    return json_sax_dom_parser::end_array();
  }

  bool number_float(double value, const std::string& text) {
    if (text.find_first_of(".eE") == std::string::npos) {
      status_ = invalid_argument("the integer " + text + " does not fit 64 bits" + place_of(text));
      return false;
    }
    return json_sax_dom_parser::number_float(value, text);
  }

  bool parse_error(size_t, const std::string& token, const Json::exception& error) {
    if (token.find_first_of("0123456789") != std::string::npos && error.id == kNumberOverflow) {
      status_ =
          invalid_argument("the number " + token + " does not fit a double" + place_of(token));
      return false;
    }
    const bool is_no_number =
        token.find('N') != std::string::npos || token.find('I') != std::string::npos;
    status_ = invalid_argument("is no JSON: " + words_of(error) +
                               (is_no_number ? " (NaN and infinities are no JSON)" : ""));
    return false;
  }

  Status take_status() { return std::move(status_); }

 private:
  static constexpr int kNumberOverflow = 406;

  // Before anything is made of what is too deep.
  bool enter() {
    if (++depth_ <= kMaxJsonDepth) return true;
    status_ = invalid_argument("lists and objects are nested more than " +
                               std::to_string(kMaxJsonDepth) + " deep");
    return false;
  }

  // ", at line 3, column 14": where a number that is too large stands for the first time.
  std::string place_of(const std::string& number) const {
    const size_t at = text_.find(number);
    if (at == std::string_view::npos) return "";
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t column = at - (before.rfind('\n') + 1) + 1;
    return ", at line " + std::to_string(line) + ", column " + std::to_string(column);
  }

  const std::string_view text_;
  int depth_ = 0;
  Status status_;
};

}  // namespace

Result<Json> parse_json_document(std::string_view text) {
  Json document;
  DocumentBuilder builder(document, text);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return builder.take_status();
  return document;
}

}  // namespace eddy
