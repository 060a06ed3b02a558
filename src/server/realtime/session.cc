#include "server/realtime/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>

#include "base/in_quotes.h"
#include "base/log.h"
#include "server/settings/model_id.h"

namespace syrinx::server::realtime {
namespace {

constexpr std::chrono::milliseconds kTick{1000};                     // how soon the session's times are heeded
constexpr std::chrono::milliseconds kSlotTick{100};                  // and a slot that has become free
constexpr std::chrono::milliseconds kLeastTick{1};                   // and what nobody tells of
constexpr int64_t kQuestionsAtOnce = 16, kQuestionNs = 250'000'000;  // and how often one more
constexpr double kBurstS = 10;         // of events or bytes, at their pace, that may come at once
constexpr double kWrongCosts = 4;      // times what the same would that is right
constexpr double kUnreadCosts = 0.25;  // of its bytes, what is refused unread for want of room
constexpr size_t kMaxInputItems = 64;
constexpr size_t kMaxMetadata = 16, kMaxMetadataBytes = 512;  // as OpenAI's interface has them

// The text of a field that must be there.
tl::expected<std::string, HttpError> name_in(const Json& fields, const char* key) {
  std::string name;
  const Json* const value = fields.find(key);
  if (value == nullptr || value->is_null())
    return tl::unexpected(bad(key, fmt::format("'{}' is missing", key), "missing_required_parameter"));
  if (auto taken = take_text(*value, key, name); !taken) return tl::unexpected(std::move(taken).error());
  return name;
}

// By the codes of OpenAI's server, some of which clients pass over.
HttpError no_item(const char* param, const std::string& id, const char* code) {
  return bad(param, fmt::format("there is no item {} in the conversation", in_quotes(id)), code);
}

void cut(Item& item, double heard_ms) {
  item.text = heard_text(item, heard_ms);
  item.audio_ms = std::min(item.audio_ms, heard_ms);
}

Checked check_metadata(const Json& metadata) {
  const Json::Object* const members = metadata.object();
  const bool fits = members != nullptr && members->size() <= kMaxMetadata &&
                    std::all_of(members->begin(), members->end(), [](const JsonMember& member) {
                      return member.key.size() <= kMaxMetadataBytes && member.value.string() != nullptr &&
                             member.value.string()->size() <= kMaxMetadataBytes;
                    });
  if (fits || metadata.is_null()) return {};
  return refuse("response.metadata", "'response.metadata' must be an object of at most {} texts of at most {} bytes",
                kMaxMetadata, kMaxMetadataBytes);
}

const char* name_of(Role role) {
  return role == Role::kUser ? "user" : role == Role::kAssistant ? "assistant" : "system";
}

}  // namespace

Session::Session(SessionOrder order, const JobReports& reports, const Clock& clock)
    : order_(std::move(order)),
      reports_(reports),
      clock_(clock),
      events_(messages_, order_.dialect),
      id_(events_.new_id("sess")),
      hearing_(hearing_order(), events_, conversation_, dropped_, reports, clock),
      pace_(kBurstS) {
  const InputChecks checks = input_checks();
  config_.is_transcription = order_.is_transcription && checks.can_hear;
  if (config_.is_transcription) config_.input.transcription.emplace();
  config_.input.turns = default_turns(config_.input, checks, order_.asked_model);
  configure_hearing();
}

// Whatever is thrown, the speech has ended when its slot becomes free.
void Session::run() {
  try {
    converse();
  } catch (const std::exception& error) {
    log_error("a session was given up: {}", error.what());
    if (response_) response_->give_up(error.what());
  }
  try {
    if (response_) response_->report(order_.id);
  } catch (const std::exception& error) {
    log_error("what became of a response could not be told: {}", error.what());
  }
  response_.reset();
  slot_.reset();
}

void Session::converse() {
  began_ns_ = heard_ns_ = clock_.now_ns();
  events_.send(config_.is_transcription ? ServerEvent::kTranscriptionSessionCreated : ServerEvent::kSessionCreated,
               session_event());
  while (!is_over()) {
    did_something_ = false;
    tell_of_dropped();
    take_next();
    hear_on();
    speak_on();
    watch_engine();
    if (!did_something_) messages_->wait(patience());
  }
}

// /health hears of an engine that gives nothing; a round without a wait ends the time.
void Session::watch_engine() {
  const bool waits = slot_ && response_ && response_->waits_for_engine();
  if (waits == is_watched_) return;
  is_watched_ = waits;
  if (slot_) waits ? slot_->watch().wait_begins() : slot_->watch().wait_ends();
}

std::chrono::nanoseconds Session::patience() {
  constexpr double kLeastS = 1e-3;  // the clock may not be there yet, to a hair
  std::chrono::nanoseconds tick = owes_answer_ && no_slot_ns_ ? kSlotTick : kTick;
  if (const auto again = response_ ? response_->looks_again_in() : std::nullopt)
    tick = std::clamp<std::chrono::nanoseconds>(*again, kLeastTick, tick);
  const double wait_s = pace_.wait_s(clock_.now_ns());
  if (wait_s <= 0 || wait_s > std::chrono::duration<double>(tick).count()) return tick;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(wait_s + kLeastS));
}

// Reading an event takes processor time from the audio of all clients, so invalid events cost more.
// An append that finds no room is not decoded.
void Session::take_message(MessageStream::Message message) {
  did_something_ = true;
  const double kb = static_cast<double>(message.bytes.size()) / 1024;
  const Heeded heeded = heed(std::move(message));
  const int64_t now_ns = clock_.now_ns();
  const double share = heeded == Heeded::kHasNoRoom ? kUnreadCosts : 1;
  const double price_s = std::max(1 / order_.events_per_s, share * kb / order_.kb_per_s);
  pace_.charge(heeded == Heeded::kIsWrong ? kWrongCosts * price_s : price_s, now_ns);
  if (heeded == Heeded::kYes) heard_ns_ = now_ns;  // what is no event asks for nothing
}

// A long event has one copy at a time, for which its room is counted.
Session::Heeded Session::heed(MessageStream::Message message) {
  if (!message.is_text) {
    events_.send_error({.error = bad("", "a binary message came; events are JSON in text messages", "invalid_json")});
    return Heeded::kIsWrong;
  }
  const auto parsed = parse_client_event(message.bytes);
  std::string().swap(message.bytes);
  if (!parsed) {
    events_.send_error(parsed.error());
    return Heeded::kIsWrong;
  }
  const auto handled = handle(*parsed);
  if (handled) return Heeded::kYes;
  events_.send_error({.error = handled.error(), .event_id = parsed->event_id});
  return handled.error().status == 503 ? Heeded::kHasNoRoom : Heeded::kIsWrong;
}

Session::Handled Session::handle(const ClientMessage& message) {
  if (begins_nothing_ && begins_work(message.event)) return refuse_work(message.event);
  switch (message.event) {
    case ClientEvent::kSessionUpdate:
    case ClientEvent::kTranscriptionSessionUpdate: return update(message);
    case ClientEvent::kAudioAppend: return hearing_.append(message.fields, message.event_id);
    case ClientEvent::kAudioCommit: return hearing_.commit();
    case ClientEvent::kAudioClear: return hearing_.clear();
    case ClientEvent::kItemCreate: return create_item(message.fields);
    case ClientEvent::kItemRetrieve: return retrieve_item(message.fields);
    case ClientEvent::kItemTruncate: return truncate_item(message.fields);
    case ClientEvent::kItemDelete: return delete_item(message.fields);
    case ClientEvent::kResponseCreate: return create_response(message.fields);
    case ClientEvent::kResponseCancel: return cancel_response(message.fields);
  }
  return {};
}

Session::Handled Session::create_item(const Json& fields) {
  const Json* const json = fields.find("item");
  if (json == nullptr) return tl::unexpected(bad("item", "'item' is missing", "missing_required_parameter"));
  auto item = parse_item(*json, order_.max_text_characters);
  if (!item) return tl::unexpected(std::move(item).error());
  if (item->id.empty()) item->id = events_.new_id("item");
  if (conversation_.find(item->id) != nullptr || item->id == Conversation::kRoot)
    return tl::unexpected(bad("item.id", fmt::format("there is an item {} already", in_quotes(item->id))));
  std::string previous;
  if (const Json* const given = fields.find("previous_item_id"); given != nullptr)
    if (auto taken = take_text(*given, "previous_item_id", previous); !taken) return taken;
  const std::string id = item->id;
  // A history that is put back: what was said has been answered, and what it was said to.
  const bool is_history = item->role == Role::kAssistant;
  Json as_told = item_json(*item, order_.dialect);
  if (!conversation_.add(std::move(*item), previous, &dropped_))
    return tl::unexpected(no_item("previous_item_id", previous, "item_not_found"));
  for (Item& each : conversation_.items()) {
    each.is_answered = each.is_answered || is_history;
    if (each.id == id) break;
  }
  const std::string before = conversation_.id_before(id);
  Json told;
  told.set("previous_item_id", before.empty() ? Json() : Json(before)).set("item", std::move(as_told));
  events_.send(ServerEvent::kItemAdded, told);
  events_.send(ServerEvent::kItemDone, std::move(told));
  return {};
}

Session::Handled Session::retrieve_item(const Json& fields) {
  const auto id = name_in(fields, "item_id");
  if (!id) return tl::unexpected(id.error());
  const Item* const item = conversation_.find(*id);
  if (item == nullptr) return tl::unexpected(no_item("item_id", *id, "item_retrieve_invalid_item_id"));
  Json told;
  events_.send(ServerEvent::kItemRetrieved, told.set("item", item_json(*item, order_.dialect)));
  return {};
}

Session::Handled Session::delete_item(const Json& fields) {
  const auto id = name_in(fields, "item_id");
  if (!id) return tl::unexpected(id.error());
  if (!conversation_.erase(*id)) return tl::unexpected(no_item("item_id", *id, "item_delete_invalid_item_id"));
  Json told;
  events_.send(ServerEvent::kItemDeleted, told.set("item_id", *id));
  return {};
}

// Text that the listener has not heard is cut off.  A response in progress goes on, as clients cancel it behind this;
// its item is cut when it ends.
Session::Handled Session::truncate_item(const Json& fields) {
  const auto id = name_in(fields, "item_id");
  if (!id) return tl::unexpected(id.error());
  Item* const item = conversation_.find(*id);
  if (item == nullptr) return tl::unexpected(no_item("item_id", *id, "item_truncate_invalid_item_id"));
  if (!item->is_sound || item->role != Role::kAssistant)
    return tl::unexpected(bad("item_id", "the item was not spoken; only spoken items can be truncated"));
  const bool is_under_way = response_ && response_->item().id == *id;
  const double spoken_ms = std::ceil(is_under_way ? response_->item().audio_ms : item->audio_ms);
  double index = 0, end_ms = -1;
  if (const Json* const given = fields.find("content_index"); given != nullptr)
    if (auto taken = take_number(*given, "content_index", 0, 0, index); !taken) return taken;
  if (const Json* const given = fields.find("audio_end_ms"); given != nullptr)
    if (auto taken = take_number(*given, "audio_end_ms", 0, spoken_ms, end_ms); !taken) return taken;
  if (end_ms < 0) return tl::unexpected(bad("audio_end_ms", "'audio_end_ms' is missing", "missing_required_parameter"));
  if (is_under_way)
    heard_ms_ = std::min(heard_ms_.value_or(end_ms), end_ms);
  else
    cut(*item, end_ms);
  Json told;
  told.set("item_id", *id).set("content_index", 0).set("audio_end_ms", static_cast<int64_t>(end_ms));
  events_.send(ServerEvent::kItemTruncated, std::move(told));
  return {};
}

Prompt Session::prompt() {
  return {
      .instructions = config_.instructions, .turns = turns(), .max_tokens = config_.max_output_tokens, .id = order_.id};
}

// Where texts are read aloud, what has been answered is not read again.
std::vector<Turn> Session::turns() {
  std::vector<Turn> turns;
  for (const Item& item : conversation_.items())
    turns.push_back({.role = name_of(item.role),
                     .text = order_.answers_turns || !item.is_answered ? item.text.substr(0, item.spoken_bytes) : "",
                     .is_answered = item.is_answered,
                     .is_heard = item.is_sound && item.role == Role::kUser});
  return turns;
}

// Where turns are answered, one that has just been committed is a part of the conversation: its words are waited for.
Result<std::unique_ptr<Reply>> Session::start_reply(Prompt prompt) {
  const auto wake = [messages = messages_] { messages->poke(); };
  if (!order_.answers_turns || prompt.is_input || !hearing_.waits_for_words())
    return order_.replies->start(std::move(prompt), wake);
  return std::make_unique<LateReply>([this, prompt = std::move(prompt), wake]() -> Result<std::unique_ptr<Reply>> {
    if (hearing_.waits_for_words()) return nullptr;
    Prompt whole = prompt;
    whole.turns = turns();
    return order_.replies->start(std::move(whole), wake);
  });
}

// The `input` of a response.create stands in for the conversation.
Session::Handled Session::take_input(const Json& input, Prompt& prompt) const {
  if (input.is_null()) return {};
  if (input.array() == nullptr || input.array()->size() > kMaxInputItems)
    return tl::unexpected(
        bad("response.input", fmt::format("'response.input' must be a list of at most {} items", kMaxInputItems)));
  prompt.is_input = true;
  prompt.turns.clear();
  for (const Json& each : *input.array()) {
    auto item = parse_item(each, order_.max_text_characters);
    if (!item) return tl::unexpected(std::move(item).error());
    prompt.turns.push_back({.role = name_of(item->role), .text = std::move(item->text)});
  }
  return {};
}

// Reads the `response` of the event; the rest of the order comes from the session.
Session::Handled Session::read_response(const Json& given, ResponseOrder& order, Prompt& prompt) const {
  const auto field = [&](const char* key) {
    const Json* const value = given.find(key);
    return value != nullptr ? *value : Json();
  };
  std::string conversation = "auto";
  order.metadata = field("metadata");
  if (auto checked = check_metadata(order.metadata); !checked) return checked;
  if (auto taken = take_text(field("conversation"), "response.conversation", conversation); !taken) return taken;
  if (conversation != "auto" && conversation != "none")
    return tl::unexpected(bad("response.conversation", "'response.conversation' must be auto or none"));
  order.is_in_conversation = conversation == "auto";
  if (auto taken = update_output(given, output_checks(), order.output); !taken) return taken;
  if (auto taken = take_text(field("instructions"), "response.instructions", prompt.instructions, kMaxInstructionBytes);
      !taken)
    return taken;
  for (const char* const key : {"max_output_tokens", "max_response_output_tokens"})
    if (auto taken = take_max_tokens(field(key), key, prompt.max_tokens); !taken) return taken;
  return take_input(field("input"), prompt);
}

// A client that asks and cancels in a loop would use up what the upstream allows, and the server's ports to it.
Session::Handled Session::pace_question() {
  if (!order_.answers_turns) return {};
  const int64_t now_ns = clock_.now_ns();
  const int64_t paid_ns = std::max(questions_paid_ns_.value_or(now_ns), now_ns);
  if (paid_ns - now_ns > (kQuestionsAtOnce - 1) * kQuestionNs)
    return tl::unexpected(HttpError{
        .status = 429,
        .message = fmt::format("a session asks for {} responses at once and {} a second behind them; ask again later",
                               kQuestionsAtOnce, 1'000'000'000 / kQuestionNs),
        .code = "rate_limit_exceeded"});
  questions_paid_ns_ = paid_ns + kQuestionNs;
  return {};
}

// A short event that has 1 MB of text looked at costs what that cost when it came; questions have a pace of their own.
void Session::charge_texts(const Prompt& prompt) {
  if (order_.answers_turns) return;
  double bytes = 0;
  for (const Turn& turn : prompt.turns) bytes += static_cast<double>(turn.text.size());
  pace_.charge(bytes / 1024 / order_.kb_per_s, clock_.now_ns());
}

Session::Handled Session::create_response(const Json& fields) {
  if (response_)
    return tl::unexpected(bad("", "a response is under way; wait for its end, or send response.cancel",
                              "conversation_already_has_active_response"));
  if (!order_.speech) return tl::unexpected(no_model(false, "speaks", ""));
  if (config_.is_transcription)
    return tl::unexpected(
        bad("", "a session of type transcription speaks nothing; set the 'type' realtime by session.update first"));
  ResponseOrder order{.output = config_.output,
                      .max_characters = order_.max_text_characters,
                      .is_generated = order_.answers_turns,
                      .asked_ns = clock_.now_ns(),
                      .number = ++responses_};
  order.output.ignored.clear();  // the update's, which has named them
  Prompt prompt = this->prompt();
  charge_texts(prompt);
  if (const Json* const given = fields.find("response"); given != nullptr && !given->is_null()) {
    if (given->object() == nullptr) return tl::unexpected(bad("response", "'response' must be an object"));
    if (auto taken = read_response(*given, order, prompt); !taken) return taken;
  }
  const bool is_of_conversation = !prompt.is_input && order.is_in_conversation;
  return begin_response(std::move(order), std::move(prompt), is_of_conversation);
}

// The speech is started first: a question to a language model may cost money.
Session::Handled Session::begin_response(ResponseOrder order, Prompt prompt, bool is_of_conversation) {
  if (!conversation_.items().empty()) order.previous_item = conversation_.items().back().id;
  if (auto paced = pace_question(); !paced) return paced;
  if (auto started = start_speech(order); !started) return started;
  auto reply = start_reply(std::move(prompt));
  if (!reply) {
    order.speech.reset();
    slot_.reset();
    return tl::unexpected(http_error(reply.error(), "response"));
  }
  order.reply = std::move(*reply);
  if (order.is_generated && order.output.is_spoken) order.reply = std::make_unique<SpokenReply>(std::move(order.reply));
  asked_.clear();
  answers_turn_ = false;
  is_aside_ = !is_of_conversation;
  owes_answer_ = owes_answer_ && !is_of_conversation;
  if (is_of_conversation)
    for (const Item& item : conversation_.items()) asked_.push_back(item.id);
  response_.emplace(events_, std::move(order), *order_.speech, reports_, clock_);
  if (response_->is_in_conversation()) conversation_.add(response_->item(), {}, &dropped_);
  return {};
}

Session::Handled Session::start_speech(ResponseOrder& order) {
  if (!order.output.is_spoken) return {};
  auto resampler = StreamResampler::create(order_.speech->engine().rate_hz(), rate_hz(order.output.format));
  if (!resampler) return tl::unexpected(http_error(resampler.error()));
  order.resampler.emplace(std::move(*resampler));
  auto voice = order_.speech->find_voice(order.output.voice);
  if (!voice) return tl::unexpected(std::move(voice).error());
  SpeakOptions options;
  options.voice = std::move(*voice);
  options.plain = true;  // what looks like a mark is a client's text
  if (order.output.speed != 1) options.knobs.set("speed", order.output.speed);
  std::optional<SlotPool::Lease> slot;  // given back when the engine refuses
  if (order_.take_slot) {
    auto taken = order_.take_slot();
    if (!taken) return tl::unexpected(std::move(taken).error());
    slot.emplace(std::move(*taken));
  }
  auto speech = order_.speech->engine().start(options);
  if (!speech) return tl::unexpected(speech_error(speech.error(), *order_.speech, order.output.voice));
  order.speech = std::move(*speech);
  order.speech->on_ready([messages = messages_] { messages->poke(); });
  if (slot) slot_.emplace(std::move(*slot));
  return {};
}

// Clients know a cancellation that comes too late by the words that OpenAI's message begins with.
Session::Handled Session::cancel_response(const Json& fields) {
  std::string id;
  if (const Json* const given = fields.find("response_id"); given != nullptr)
    if (auto taken = take_text(*given, "response_id", id); !taken) return taken;
  if (!response_ || (!id.empty() && id != response_->id()))
    return tl::unexpected(bad("", "Cancellation failed: no such response is under way", "response_cancel_not_active"));
  response_->cancel("client_cancelled");
  end_response(/*is_cancelled=*/true);
  return {};
}

void Session::speak_on() {
  if (!response_) return;
  const Response::Step step = response_->advance();
  note_made();
  if (step != Response::Step::kWaiting) did_something_ = true;
  if (step == Response::Step::kOver) end_response();
}

// The audio whose steps have been counted, be it told or not: a response that is cancelled costs the same.
void Session::note_made() {
  const double made_s = slot_ ? response_->made_s() : 0;
  if (made_s > noted_s_) slot_->watch().note_audio(made_s - std::exchange(noted_s_, made_s));
}

// Sound of a cancelled one is played no further.
void Session::end_response(bool is_cancelled) {
  if (Item* const item = conversation_.find(response_->item().id); item != nullptr) {
    *item = response_->item();
    if (heard_ms_) cut(*item, *heard_ms_);
  }
  heard_ms_.reset();
  if (!response_->has_failed())  // else it may be asked for again
    for (const std::string& id : asked_)
      if (Item* const item = conversation_.find(id); item != nullptr) item->is_answered = true;
  response_->report(order_.id);
  const double playing_ms = is_cancelled ? 0 : response_->item().audio_ms;
  hearing_.expect_speech(clock_.now_ns() + static_cast<int64_t>(playing_ms * 1e6));
  note_made();
  noted_s_ = 0;
  response_.reset();  // waits for the step that is being computed
  slot_.reset();
  is_watched_ = false;
  heard_ns_ = clock_.now_ns();
}

// As far as there is room: one long item may stand in for many.
void Session::tell_of_dropped() {
  size_t told = 0;
  for (; told < dropped_.size() && events_.has_room(); ++told) {
    Json fields;
    events_.send(ServerEvent::kItemDeleted, fields.set("item_id", dropped_[told]));
  }
  dropped_.erase(dropped_.begin(), dropped_.begin() + static_cast<std::ptrdiff_t>(told));
}

}  // namespace syrinx::server::realtime
