// Claim: whatever a name holds, it can stand in a document, and letters of several bytes stay
// whole.
#include "graph/base/xml_text.h"

#include <gtest/gtest.h>

namespace eddy {
namespace {

TEST(XmlTextTest, MarkupIsWritten) {
  EXPECT_EQ(xml_text("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
}

TEST(XmlTextTest, WhatXmlHasNoPlaceForGoes) {
  EXPECT_EQ(xml_text(std::string_view("a\0b\nc\x1f", 6)), "a b c ");
  EXPECT_EQ(xml_text("\xef\xbf\xbe|\xef\xbf\xbf"), "?|?");
}

TEST(XmlTextTest, OtherLettersStay) {
  EXPECT_EQ(xml_text("µs → \xef\xbf\xbd \x7f"), "µs → \xef\xbf\xbd \x7f");
  EXPECT_EQ(xml_text("\xef\xbf"), "\xef\xbf");  // the beginning of a letter is not its end
  EXPECT_EQ(xml_text(""), "");
}

}  // namespace
}  // namespace eddy
