// Text as it may stand in an XML document, in an element or in a quoted attribute.
#pragma once

#include <string>
#include <string_view>

namespace eddy {

// `text` is UTF-8. What XML has no place for goes: a control character becomes a space, U+FFFE and
// U+FFFF a question mark.
std::string xml_text(std::string_view text);

}  // namespace eddy
