// The items of a session's conversation: what the client has put there and what has been answered.  One thread.
// Memory: at most kMaxItems, with at most kMaxTextBytes of text beside the newest one's; the oldest make room for new
// ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/speech/speech_session.h"
#include "server/http/http_message.h"
#include "server/http/json_fields.h"
#include "server/realtime/events.h"

namespace syrinx::server::realtime {

enum class Role : uint8_t { kUser, kAssistant, kSystem };
enum class ItemStatus : uint8_t { kInProgress, kCompleted, kIncomplete };

struct Item {
  std::string id = {};
  Role role = Role::kUser;
  ItemStatus status = ItemStatus::kCompleted;
  bool is_sound = false;  // its text is what the sound says
  std::string text = {};
  bool is_answered = false;                 // by a response
  double audio_ms = 0;                      // of what has been spoken
  std::vector<WordTime> words = {};         // of it, where the model tells them
  size_t spoken_bytes = std::string::npos;  // of the text: no more can have been spoken when it was broken off
};

// A message as a client gives it: {type, id, role, content}.  Its id may be empty.
tl::expected<Item, HttpError> parse_item(const Json& json, size_t max_characters);
Json item_json(const Item& item, Dialect dialect);

// The text of a spoken item that was played in its first `heard_ms`: to the end of the last whole word, by the words'
// times or, where the model gives none, by their share of its text.
std::string heard_text(const Item& item, double heard_ms);

// At most so much of the text of a spoken item that has been broken off can be in its sound, at this speed of speech:
// all of its words that the model has told or, where it tells none, as much as a fast speaker says in that time.  A
// text may be far ahead of its sound.
size_t spoken_bytes(const Item& item, double speed);

class Conversation {
 public:
  static constexpr size_t kMaxItems = 512;
  static constexpr size_t kMaxTextBytes = size_t{1} << 20;
  static constexpr const char* kRoot = "root";  // before all items

  // Behind `previous_id`; empty: at the end.  False when there is no such item.  The item's id must be new; it stays
  // wherever it is, and the ids of those that make room for it are appended to `dropped`.
  bool add(Item item, std::string_view previous_id = {}, std::vector<std::string>* dropped = nullptr);
  Item* find(std::string_view id);
  // Sets the text of an item that exists; others are dropped to make room, as in add().
  void set_text(std::string_view id, std::string text, std::vector<std::string>* dropped = nullptr);
  bool erase(std::string_view id);
  std::string id_before(std::string_view id) const;  // empty: it is the first
  std::deque<Item>& items() { return items_; }

 private:
  void make_room(std::string_view id, std::vector<std::string>* dropped);
  size_t text_bytes() const;

  std::deque<Item> items_;
};

}  // namespace syrinx::server::realtime
