#include "server/upstream/chat_stream.h"

#include <algorithm>

#include "base/json.h"
#include "text/unicode.h"

namespace syrinx::server::upstream {
namespace {

constexpr size_t kMaxDepth = 32;      // of an event
constexpr size_t kMaxValues = 65536;  // of it: a delta with the likelihoods of other words has thousands
constexpr size_t kMaxBareBytes = 4096;
constexpr char32_t kReplacement = 0xfffd;
constexpr char32_t kRawByte = 0x10ff00;  // + the byte: private, the last plane's

// Some servers cut a character in two events, and JSON takes no half ones: they go through it as characters.
std::string with_raw_bytes_named(std::string_view data) {
  std::string named;
  for (size_t at = 0; at < data.size();) {
    const size_t begin = at;
    const char32_t c = text::decode(data, at);
    const bool is_raw = c == kReplacement && at == begin + 1;
    text::append_utf8(named, is_raw ? kRawByte + static_cast<unsigned char>(data[begin]) : c);
  }
  return named;
}

std::string with_raw_bytes(std::string_view named) {
  std::string data;
  for (size_t at = 0; at < named.size();) {
    const char32_t c = text::decode(named, at);
    if (c >= kRawByte && c <= kRawByte + 0xff)
      data += static_cast<char>(c - kRawByte);
    else
      text::append_utf8(data, c);
  }
  return data;
}

tl::unexpected<Error> no_completions() {
  return fail(Code::kUnavailable,
              "the upstream's answer is not a stream of chat completions; the operator of this server has to look at "
              "'upstream'");
}

tl::unexpected<Error> too_long() {
  return fail(Code::kUnavailable, "the upstream's answer has an event of more than {} bytes; ask again",
              ChatStream::kMaxEventBytes);
}

// The text behind a path of members; null: there is none.
const std::string* text_at(const Json& json, const char* outer, const char* inner) {
  const Json* const object = json.find(outer);
  const Json* const value = object != nullptr ? object->find(inner) : nullptr;
  return value != nullptr ? value->string() : nullptr;
}

}  // namespace

Status ChatStream::feed(std::string_view bytes, std::string& text) {
  while (!bytes.empty() && !is_over_) {
    if (after_return_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_return_ = false;
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + end > kMaxEventBytes) return too_long();
    line_ += bytes.substr(0, end);
    if (end == bytes.size()) return {};
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    SYRINX_TRY_VOID(take_line(text));
    line_.clear();
  }
  return {};
}

// An empty line ends an event; of its fields `data` alone has a meaning here.
Status ChatStream::take_line(std::string& text) {
  if (line_.empty()) {
    const bool is_event = has_data_;
    has_data_ = false;
    return is_event ? take_event(text) : Status();
  }
  constexpr std::string_view kField = "data:";
  if (!line_.starts_with(kField)) return {};
  std::string_view value = std::string_view(line_).substr(kField.size());
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_ && data_.size() + value.size() >= kMaxEventBytes) return too_long();
  if (has_data_)
    data_ += '\n';
  else
    data_.clear();
  data_ += value;
  has_data_ = true;
  return {};
}

Status ChatStream::take_event(std::string& text) {
  if (data_ == "[DONE]") {
    is_over_ = true;
    return {};
  }
  const bool has_raw_bytes = text::find_invalid(data_).has_value();
  const auto json = parse_json(has_raw_bytes ? with_raw_bytes_named(data_) : data_, "the upstream's event",
                               {.max_bytes = 4 * kMaxEventBytes,
                                .max_depth = kMaxDepth,
                                .max_values = kMaxValues,
                                .max_bare_bytes = kMaxBareBytes});
  if (!json || json->object() == nullptr) return no_completions();
  if (const Json* const error = json->find("error"); error != nullptr && !error->is_null())
    return fail(Code::kUnavailable, "the upstream told of an error in the middle of its answer; ask again");
  const Json* const choices = json->find("choices");  // absent or empty where an event only counts
  if (choices == nullptr || choices->array() == nullptr || choices->array()->empty()) return {};
  const Json& choice = choices->array()->front();
  if (const std::string* const content = text_at(choice, "delta", "content"); content != nullptr)
    take_content(has_raw_bytes ? with_raw_bytes(*content) : *content, text);
  const Json* const reason = choice.find("finish_reason");
  if (reason == nullptr || reason->string() == nullptr) return {};
  is_finished_ = true;
  if (*reason->string() == "length") cut_short_ = "max_output_tokens";
  if (*reason->string() == "content_filter") cut_short_ = "content_filter";
  return {};
}

void ChatStream::take_content(std::string_view content, std::string& text) {
  held_ += content;
  const size_t whole = held_.size() - text::unfinished_tail(held_);
  const std::string_view known = std::string_view(held_).substr(0, whole);
  for (size_t at = 0; at < known.size();) text::append_utf8(text, text::decode(known, at));
  held_.erase(0, whole);
}

}  // namespace syrinx::server::upstream
