#include "engine/chat/chat_engine.h"

#include <gtest/gtest.h>

#include <limits>

namespace syrinx {
namespace {

ChatRequest asking(std::string content) { return {.messages = {{text::ChatRole::kUser, std::move(content)}}}; }

void expect_refused(const ChatRequest& request, Code code, const std::string& says) {
  const Status status = check_chat_request(request);
  ASSERT_FALSE(status.has_value()) << says;
  EXPECT_EQ(status.error().code, code);
  EXPECT_NE(status.error().message.find(says), std::string::npos) << status.error().message;
}

TEST(ChatRequest, LimitsAreToldByName) {
  EXPECT_TRUE(check_chat_request(asking("a")).has_value());
  expect_refused({}, Code::kInvalidArgument, "one message at least");
  ChatRequest many;
  many.messages.resize(10000, {text::ChatRole::kUser, "a"});
  expect_refused(many, Code::kLimitExceeded, "10000 messages, the limit is 1024");
  expect_refused(asking(std::string(10 << 20, 'a')), Code::kLimitExceeded,
                 "10485760 bytes in all, the limit is 2097152");
  expect_refused(asking("\xFF"), Code::kInvalidArgument, "UTF-8");
  ChatRequest stops = asking("a");
  stops.stops = {""};
  expect_refused(stops, Code::kInvalidArgument, "has 0 bytes; give 1 to 256");
  stops.stops = std::vector<std::string>(5, "x");
  expect_refused(stops, Code::kInvalidArgument, "5 texts to stop at; give 4 at most");
}

TEST(ChatRequest, SamplingStaysInItsRanges) {
  const auto refused = [](const ChatSampling& sampling, const std::string& says) {
    ChatRequest request = asking("a");
    request.sampling = sampling;
    expect_refused(request, Code::kInvalidArgument, says);
  };
  refused({.temperature = 2.1f}, "'temperature' is 2.1; give 0 to 2");
  refused({.temperature = std::numeric_limits<float>::quiet_NaN()}, "'temperature'");
  refused({.top_p = 0.0f}, "'top_p' is 0");
  refused({.min_p = 1.5f}, "'min_p'");
  refused({.top_k = -1}, "'top_k'");
  refused({.repetition_penalty = 3.0f}, "'repetition_penalty'");
}

}  // namespace
}  // namespace syrinx
