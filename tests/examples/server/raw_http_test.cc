// Claim: whatever bytes come, the server answers them with a code of its own or ends their
// connection, takes no more than its limits, and serves the next client.
#include "tests/examples/server/raw_client.h"

#include "graph/base/random.h"
#include "tests/examples/server/serving.h"

namespace eddy::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const char* const kGood = R"({"inputs": {"a": [[1, 2]], "b": [[3, 4]]}})";

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

class RawHttpTest : public ServingTest {
 protected:
  // All that comes back until the server closes; the client says that it has no more to send.
  std::string exchange(const std::string& bytes, bool ends = true) const {
    RawClient raw(server_->port());
    raw.send(bytes);
    if (ends) raw.end();
    return raw.receive_all();
  }
  // The server is still there, and its answers are right.
  void expect_alive() const {
    const auto answer = post(kGood);
    ASSERT_TRUE(answer) << httplib::to_string(answer.error());
    EXPECT_EQ(Json::parse(answer->body)["outputs"]["y"]["data"], Json({4, 6}));
  }
  // Of one answer: its code and its words; the connection ends with it.
  void expect_refused(const std::string& bytes, int code, const std::string& words = "") const {
    SCOPED_TRACE(bytes.substr(0, 120));
    const std::string answer = exchange(bytes, false);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(code) + " "));
    EXPECT_THAT(answer, HasSubstr("{\"error\":\""));
    EXPECT_THAT(answer, HasSubstr(words));
    expect_alive();
  }
};

TEST_F(RawHttpTest, WhatIsNoRequestHas400) {
  start(build_adding);
  for (const char* bytes : {
           "hello\r\n\r\n",
           "\r\n\r\n",
           "GET\r\n\r\n",
           "GET /healthz\r\n\r\n",
           "GET /healthz HTTP/0.9\r\n\r\n",
           "GET /healthz HTTP/2.0\r\n\r\n",
           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
           "get /healthz HTTP/1.1\r\n\r\n",
           "NOTHING /healthz HTTP/1.1\r\n\r\n",
           "GET /healthz?a?b HTTP/1.1\r\n\r\n",
           "GET /healthz HTTP/1.1\nHost: x\r\n\r\n",
           "\x16\x03\x01\x02\x01\r\n\r\n",
       }) {
    expect_refused(bytes, 400, "no request of HTTP/1.1");
  }
  expect_refused(std::string("GET /\0 HTTP/1.1\r\n\r\n", 19), 400);
}

TEST_F(RawHttpTest, HeadsAreBounded) {
  start(build_adding);
  expect_refused("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n", 414, "too long");
  expect_refused("GET / HTTP/1.1\r\nx: " + std::string(9000, 'a') + "\r\n\r\n", 400);
  const size_t limit = server_options_.http.max_head_bytes;
  expect_refused(std::string(limit, 'a'), 431, "larger than 32768 bytes");
  expect_refused("GET / HTTP/1.1\r\n" + std::string(limit, '\n'), 431);
  expect_refused("GET / HTTP/1.1\r\n" + repeated("a: b\r\n", static_cast<int>(limit / 6)) + "\r\n",
                 431);
  EXPECT_THAT(exchange("GET /healthz HTTP/1.1\r\n" + repeated("a: b\r\n", 5000) + "\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(RawHttpTest, ARangeIsNoReasonForAnotherAnswer) {
  start(build_adding);
  const std::string many = "bytes=0-1" + repeated(",0-1", 1900);
  for (const std::string& head :
       {"Range: " + many, "rAnGe:" + many, std::string("Range: bytes=a-b"), "x: y\nRange: " + many,
        std::string("Range: bytes=99999999999999999999-")}) {
    const std::string answer =
        exchange("GET /healthz HTTP/1.1\r\n" + head + "\r\nRange: bytes=0-0\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200")) << head.substr(0, 50);
    EXPECT_TRUE(answer.ends_with("\r\n\r\nok\n")) << answer;
  }
  expect_alive();
}

TEST_F(RawHttpTest, BodiesNeedOneLength) {
  start(build_adding);
  const std::string post = "POST /v1/run HTTP/1.1\r\n";
  expect_refused(post + "\r\n", 411, "Content-Length is missing");
  for (const char* length : {"abc", "-1", "1e3", "0x10", "5,5", "18446744073709551616", "1 2"}) {
    expect_refused(post + "Content-Length: " + length + "\r\n\r\n{}", 400, "is no number");
  }
  expect_refused(post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400, "is no number");
  expect_refused(post + "Content-Length: 18446744073709551615\r\n\r\n{}", 413, "larger than");
  expect_refused(post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400,
                 "has to be chunked, without Content-Length");
  expect_refused(post + "Transfer-Encoding: gzip\r\n\r\n{}", 400, "has to be chunked");
  expect_refused(
      post + "Content-Length: 2\r\nContent-Type: multipart/form-data; boundary=a\r\n\r\n{}", 415,
      "several parts");
}

TEST_F(RawHttpTest, DamagedBodiesAreRefused) {
  start(build_adding);
  const std::string post = "POST /v1/run HTTP/1.1\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::string& body :
       {chunked + "zz\r\n", chunked + "ffffffffffffffff\r\n", chunked + "2\r\n{}0\r\n",
        chunked + "-5\r\n" + std::string(100'000'000 / 1000, ' '), chunked + "0\r\nmore\r\n\r\n",
        post + "Content-Length: 3\r\nContent-Encoding: gzip\r\n\r\n{} ",
        post + "Content-Length: 3\r\nContent-Encoding: br\r\n\r\n{} "}) {
    SCOPED_TRACE(body.substr(0, 120));
    EXPECT_THAT(exchange(body), StartsWith("HTTP/1.1 4"));
    expect_alive();
  }
  // The client ends before its body does.
  EXPECT_THAT(exchange(post + "Content-Length: 30\r\n\r\n{"), HasSubstr("the body ends early"));
  expect_alive();
}

TEST_F(RawHttpTest, AnEndlessBodyEndsAtItsLimit) {
  server_options_.max_body_bytes = 1000;
  start(build_adding);
  const std::string chunked = "POST /v1/run HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& endless : {std::string("1;"), std::string("1"), std::string("1\r\n ")}) {
    RawClient raw(server_->port());
    raw.send(chunked + endless);
    const std::string more(1000, endless.size() == 1 ? '1' : 'x');
    int64_t sent = 0;
    while (raw.send(more)) sent += 1000;
    // What the server takes at the end, and what fits the system's buffers.
    EXPECT_LT(sent, 100'000'000);
    expect_alive();
  }
}

TEST_F(RawHttpTest, RequestsBehindEachOtherAreAnsweredInOrder) {
  start(build_adding);
  const std::string health = "GET /healthz HTTP/1.1\r\n\r\n";
  const std::string all = health + post_request(kGood) + post_request("{") + health +
                          "GET /v1/model HTTP/1.1\r\nConnection: close\r\n\r\n" + health;
  const std::string answers = exchange(all, false);
  size_t at = 0;
  for (const char* part : {"200 OK", "ok\n", "200 OK", "[4,6]", "400 Bad Request", "no JSON",
                           "200 OK", "ok\n", "200 OK", "fingerprint"}) {
    at = answers.find(part, at);
    ASSERT_NE(at, answers.npos) << part << " in " << answers;
  }
  EXPECT_EQ(answers.find("HTTP/1.1", at), answers.npos) << "nothing comes after the last answer";
}

TEST_F(RawHttpTest, WhatIsLeftUnreadIsNoRequest) {
  start(build_adding);
  const std::string hidden = "GET /healthz HTTP/1.1\r\n\r\n";
  const std::string length = "Content-Length: " + std::to_string(hidden.size()) + "\r\n\r\n";
  for (const char* first : {"GET /healthz", "POST /nowhere", "PUT /metrics", "DELETE /v1/run"}) {
    const std::string answers = exchange(first + (" HTTP/1.1\r\n" + length) + hidden, false);
    EXPECT_THAT(answers, StartsWith("HTTP/1.1 "));
    EXPECT_EQ(answers.find("HTTP/1.1", 1), answers.npos) << answers;
  }
}

TEST_F(RawHttpTest, ABodyIsAskedForOnlyWhereItIsTaken) {
  start(build_adding);
  const std::string expects = "Expect: 100-continue\r\n";
  RawClient raw(server_->port());
  raw.send("POST /v1/run HTTP/1.1\r\n" + expects +
           "Content-Length: " + std::to_string(std::string(kGood).size()) + "\r\n\r\n");
  EXPECT_EQ(raw.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  raw.send(kGood);
  EXPECT_THAT(raw.receive_until("}}\n"), HasSubstr("[4,6]"));
  expect_refused("POST /v1/run HTTP/1.1\r\n" + expects + "Content-Length: 100000000000\r\n\r\n",
                 413);
  expect_refused("POST /nowhere HTTP/1.1\r\n" + expects + "Content-Length: 5\r\n\r\n", 404);
}

TEST_F(RawHttpTest, WhatComesTooSlowlyHas408) {
  server_options_.http.read_timeout = std::chrono::milliseconds(30);
  start(build_adding);
  EXPECT_THAT(exchange("GET /healthz HT", false), StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(exchange("POST /v1/run HTTP/1.1\r\nContent-Length: 30\r\n\r\n{", false),
              HasSubstr("came too slowly"));
}

TEST_F(RawHttpTest, AnIdleConnectionIsClosed) {
  server_options_.http.idle_timeout = std::chrono::milliseconds(30);
  start(build_adding);
  EXPECT_EQ(exchange("", false), "");
  const std::string answer = exchange("GET /healthz HTTP/1.1\r\n\r\n", false);
  EXPECT_TRUE(answer.ends_with("\r\n\r\nok\n")) << answer;
}

TEST_F(RawHttpTest, ChangedRequestsEndInAnAnswerOrAnEnd) {
  start(build_adding);
  const std::string body = kGood;
  const std::string requests[] = {
      post_request(body),
      "POST /v1/run HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2b\r\n" + body + "\r\n0\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"};
  constexpr uint64_t kSeed = 20261126;
  for (uint64_t i = 0; i < 300; ++i) {
    Random random(kSeed + i);
    std::string bytes = requests[i % std::size(requests)];
    for (uint64_t n = 1 + random.below(4); n > 0; --n) {
      const size_t at = random.below(bytes.size());
      switch (random.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes.erase(at, 1 + random.below(8));
          break;
        case 2:
          bytes.insert(at, bytes.substr(random.below(bytes.size()), random.below(40)));
          break;
        default:
          bytes.resize(at + 1);
      }
    }
    const std::string answer = exchange(bytes);
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 ")) << "seed " << kSeed + i;
  }
  expect_alive();
}

}  // namespace
}  // namespace eddy::server
