#include "server/realtime/conversation.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/in_quotes.h"
#include "server/http/request_id.h"
#include "text/unicode.h"

namespace syrinx::server::realtime {
namespace {

constexpr std::array<std::pair<Role, const char*>, 3> kRoles = {
    {{Role::kUser, "user"}, {Role::kAssistant, "assistant"}, {Role::kSystem, "system"}}};

constexpr double kFastCharactersPerS = 20;  // of speech, with its spaces

const char* name_of(ItemStatus status) {
  switch (status) {
    case ItemStatus::kInProgress: return "in_progress";
    case ItemStatus::kCompleted: return "completed";
    case ItemStatus::kIncomplete: return "incomplete";
  }
  return "completed";
}

// One part of a message: {"type": "input_text", "text": ...}, or what a sound said.
Checked take_part(const Json& part, Item& item) {
  const Json* const type = part.find("type");
  const std::string* const name = type != nullptr ? type->string() : nullptr;
  const bool is_text = name != nullptr && (*name == "input_text" || *name == "output_text" || *name == "text");
  const bool is_sound =
      name != nullptr && (*name == "output_audio" || *name == "audio") && item.role == Role::kAssistant;
  if (!is_text && !is_sound)
    return refuse("item.content",
                  "'item.content' must be a list of input_text, or of output_text and output_audio of "
                  "an assistant; sound goes to input_audio_buffer.append");
  const Json* const text = part.find(is_text ? "text" : "transcript");
  if (text == nullptr || text->string() == nullptr)
    return refuse("item.content", "a part of 'item.content' has no '{}'", is_text ? "text" : "transcript");
  item.text += (item.text.empty() ? "" : "\n") + *text->string();
  item.is_sound = item.is_sound || is_sound;
  return {};
}

Checked take_role(const Json& json, Item& item) {
  const Json* const role = json.find("role");
  for (const auto& [each, name] : kRoles) {
    if (role == nullptr || role->string() == nullptr || *role->string() != name) continue;
    item.role = each;
    return {};
  }
  return refuse("item.role", "'item.role' must be user, assistant or system");
}

Checked take_content(const Json& json, size_t max_characters, Item& item) {
  const Json* const content = json.find("content");
  if (content == nullptr || content->array() == nullptr || content->array()->empty())
    return refuse("item.content", "'item.content' must be a list of at least one part");
  for (const Json& part : *content->array())
    if (auto taken = take_part(part, item); !taken) return taken;
  item.text = without_half_characters(item.text);
  if (const size_t characters = text::count_code_points(item.text); characters > max_characters)
    return refuse("item.content", "the item has {} characters; give at most {}, and more in further items", characters,
                  max_characters);
  return {};
}

// To the end of the last word that is whole in the first `end` bytes, of more.
size_t words_until(const std::string& text, size_t end) {
  const size_t space = text.find_last_of(" \n", end);
  return space == std::string::npos ? 0 : space;
}

// How much of the text is said by then: the end of its last word that is heard whole.
size_t heard_bytes(const Item& item, double heard_ms) {
  size_t end = 0;
  if (!item.words.empty()) {
    for (const WordTime& word : item.words)
      if (word.end_s * 1000 <= heard_ms) end = std::max(end, std::min(word.source_end, item.text.size()));
    return end;
  }
  if (item.audio_ms <= 0) return 0;
  const double share = std::clamp(heard_ms / item.audio_ms, 0.0, 1.0);
  const size_t spoken = std::min(item.spoken_bytes, item.text.size());
  end = static_cast<size_t>(share * static_cast<double>(spoken));
  return end >= spoken ? spoken : words_until(item.text, end);
}

}  // namespace

tl::expected<Item, HttpError> parse_item(const Json& json, size_t max_characters) {
  const auto checked = [](Checked taken) { return tl::unexpected(std::move(taken).error()); };
  if (json.object() == nullptr) return refuse("item", "'item' must be an object");
  const Json* const type = json.find("type");
  if (type == nullptr || type->string() == nullptr || *type->string() != "message")
    return refuse("item.type", "'item.type' must be message; nothing here calls functions");
  Item item;
  if (const Json* const id = json.find("id"); id != nullptr && !id->is_null()) {
    if (id->string() == nullptr || !is_request_id(*id->string()))
      return refuse("item.id", "'item.id' must be at most 64 letters, digits, '-', '_' and '.'");
    item.id = *id->string();
  }
  if (auto taken = take_role(json, item); !taken) return checked(std::move(taken));
  if (auto taken = take_content(json, max_characters, item); !taken) return checked(std::move(taken));
  return item;
}

Json item_json(const Item& item, Dialect dialect) {
  const bool is_released = dialect == Dialect::kReleased;
  Json part;
  if (item.role != Role::kAssistant)
    part.set("type", item.is_sound ? "input_audio" : "input_text");
  else if (item.is_sound)
    part.set("type", is_released ? "output_audio" : "audio");
  else
    part.set("type", is_released ? "output_text" : "text");
  const bool is_unknown = item.is_sound && item.role != Role::kAssistant && item.text.empty();
  part.set(item.is_sound ? "transcript" : "text", is_unknown ? Json() : Json(item.text));
  Json::Array content;
  if (item.status != ItemStatus::kInProgress) content.push_back(std::move(part));
  Json json;
  json.set("id", item.id).set("object", "realtime.item").set("type", "message").set("status", name_of(item.status));
  for (const auto& [role, name] : kRoles)
    if (role == item.role) json.set("role", name);
  return json.set("content", std::move(content));
}

std::string heard_text(const Item& item, double heard_ms) {
  std::string text = item.text.substr(0, heard_bytes(item, heard_ms));
  text.resize(text.find_last_not_of(" \n") + 1);
  return text;
}

size_t spoken_bytes(const Item& item, double speed) {
  if (!item.is_sound) return item.text.size();
  size_t end = 0;
  for (const WordTime& word : item.words) end = std::max(end, std::min(word.source_end, item.text.size()));
  if (!item.words.empty()) return end;
  auto characters = static_cast<size_t>(item.audio_ms * 1e-3 * kFastCharactersPerS * std::max(speed, 1.0));
  for (; characters > 0 && end < item.text.size(); --characters) text::decode(item.text, end);
  return end == item.text.size() ? end : words_until(item.text, end);
}

bool Conversation::add(Item item, std::string_view previous_id, std::vector<std::string>* dropped) {
  auto behind = items_.end();
  if (previous_id == kRoot) {
    behind = items_.begin();
  } else if (!previous_id.empty()) {
    behind = std::find_if(items_.begin(), items_.end(), [&](const Item& each) { return each.id == previous_id; });
    if (behind == items_.end()) return false;
    ++behind;
  }
  const std::string id = item.id;
  items_.insert(behind, std::move(item));
  make_room(id, dropped);
  return true;
}

void Conversation::set_text(std::string_view id, std::string text, std::vector<std::string>* dropped) {
  Item* const item = find(id);
  if (item == nullptr) return;
  item->text = std::move(text);
  make_room(id, dropped);
}

// The item with this id stays.
void Conversation::make_room(std::string_view id, std::vector<std::string>* dropped) {
  while (items_.size() > kMaxItems || (items_.size() > 1 && text_bytes() > kMaxTextBytes)) {
    const auto oldest = items_.begin() + (items_.front().id == id ? 1 : 0);
    if (dropped != nullptr) dropped->push_back(std::move(oldest->id));
    items_.erase(oldest);
  }
}

size_t Conversation::text_bytes() const {
  return std::accumulate(items_.begin(), items_.end(), size_t{0},
                         [](size_t sum, const Item& item) { return sum + item.text.size(); });
}

Item* Conversation::find(std::string_view id) {
  const auto found = std::find_if(items_.begin(), items_.end(), [&](const Item& each) { return each.id == id; });
  return found == items_.end() ? nullptr : &*found;
}

bool Conversation::erase(std::string_view id) {
  return std::erase_if(items_, [&](const Item& each) { return each.id == id; }) > 0;
}

std::string Conversation::id_before(std::string_view id) const {
  std::string before;
  for (const Item& each : items_) {
    if (each.id == id) return before;
    before = each.id;
  }
  return {};
}

}  // namespace syrinx::server::realtime
