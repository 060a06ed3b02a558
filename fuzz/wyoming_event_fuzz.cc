#include "server/wyoming/event.h"

namespace {

using syrinx::server::wyoming::Event;
using syrinx::server::wyoming::EventReader;

constexpr syrinx::server::wyoming::EventLimits kLimits{.max_json_bytes = 200, .max_payload_bytes = 100};

// An event that was read is small, and is written as it was on the wire.
void check(const Event& event) {
  if (event.data.object() == nullptr || event.payload.size() > kLimits.max_payload_bytes) __builtin_trap();
  EventReader reader({});
  reader.push(written(event));
  const auto again = reader.next();
  if (!again || !*again || (*again)->payload != event.payload || (*again)->data.dump() != event.data.dump() ||
      reader.waiting_bytes() != 0)
    __builtin_trap();
}

}  // namespace

// The first byte says how many bytes come at a time.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = size_t{1} + data[0] % 64;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  EventReader reader(kLimits);
  while (!rest.empty()) {
    reader.push(rest.substr(0, step));
    rest.remove_prefix(std::min(step, rest.size()));
    for (;;) {
      const auto event = reader.next();
      if (!event) {
        if (event.error().message.empty()) __builtin_trap();
        return 0;
      }
      if (!*event) break;
      check(**event);
    }
    if (reader.waiting_bytes() > 2 * kLimits.max_json_bytes + kLimits.max_payload_bytes + step) __builtin_trap();
  }
  return 0;
}
