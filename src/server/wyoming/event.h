// Wyoming's events on the wire: one line of JSON, {"type", "data"?, "data_length"?, "payload_length"?}, then so many
// bytes of JSON, whose members go over those of the line, then so many bytes of payload (OHF-Voice/wyoming, event.py).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace syrinx::server::wyoming {

struct Event {
  std::string type;
  Json data = Json::Object();  // an object
  std::string payload = {};

  // Members of the data; null where there is none of that name and kind.
  const std::string* text(std::string_view name) const;
  const int64_t* whole(std::string_view name) const;
};

// The whole of it, as it is sent.
std::string written(const Event& event);

struct EventLimits {
  static constexpr size_t kMaxFields = 64, kMaxDepth = 8, kMaxValues = 1024, kMaxBareBytes = 4096;
  static constexpr size_t kMaxJsonBytes = size_t{256} << 10;
  size_t max_json_bytes = size_t{64} << 10;  // of the line, and of the data behind it
  size_t max_payload_bytes = size_t{256} << 10;
};

// Events from bytes that come in any parts.  Memory: what has been pushed and not read, which is one event and what a
// push brought with its end, for a caller who reads before he pushes more.
class EventReader {
 public:
  explicit EventReader(const EventLimits& limits) : limits_(limits) {}

  void push(std::string_view bytes) { bytes_ += bytes; }
  // The next event, or nothing until more has been pushed.  kDataLoss where it is no event, kLimitExceeded: what
  // follows cannot be found any more.
  Result<std::optional<Event>> next();
  size_t waiting_bytes() const { return bytes_.size(); }

 private:
  Status read_line(std::string_view line);
  Status add_data(std::string_view json);

  const EventLimits limits_;
  std::string bytes_;
  size_t searched_ = 0;  // of them hold no line's end
  // An event whose line has been read and whose other parts are to come.
  std::optional<Event> event_;
  size_t data_bytes_ = 0, payload_bytes_ = 0;
};

}  // namespace syrinx::server::wyoming
