#include "graph/base/xml_text.h"

namespace eddy {

std::string xml_text(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view letter = text.substr(i, 3);
    if (letter == "\xef\xbf\xbe" || letter == "\xef\xbf\xbf") {
      out += '?';
      i += 2;
      continue;
    }
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

}  // namespace eddy
