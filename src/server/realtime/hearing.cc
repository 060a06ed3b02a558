#include "server/realtime/hearing.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace syrinx::server::realtime {
namespace {

constexpr size_t kBlockBytes = size_t{32} << 10;     // of sound that is decoded at once
constexpr size_t kKeptSamples = kRecognitionRateHz;  // whose memory is kept

size_t samples_in(double ms) { return static_cast<size_t>(ms * kRecognitionRateHz / 1000); }

}  // namespace

Hearing::Hearing(HearingOrder order, EventSender& events, Conversation& conversation, std::vector<std::string>& dropped,
                 const JobReports& reports, const Clock& clock)
    : order_(std::move(order)),
      events_(events),
      conversation_(conversation),
      dropped_(dropped),
      reports_(reports),
      clock_(clock) {}

Hearing::~Hearing() {
  if (ear_) ear_->leave();
}

void Hearing::configure(const InputConfig& input, bool always, bool early) {
  if (resampler_ && input.format != input_.format) look_at_rest();
  if (input.format != input_.format) appended_.clear();
  const bool changed = !input_.turns || !input.turns || input.turns->threshold != input_.turns->threshold ||
                       input.turns->silence_ms() != input_.turns->silence_ms();
  input_ = input;
  always_ = always;
  early_ = early;
  TranscribeOptions options;
  if (input.transcription) {
    options.language = input.transcription->told_language;
    if (!input.transcription->keywords.empty()) options.knobs.set("boost", input.transcription->keywords);
    if (!input.transcription->prompt.empty()) options.knobs.set("prompt", input.transcription->prompt);
  }
  // The recogniser heeds voice by the same rule, or Whisper would make words of the silence behind a turn.
  if (input.turns && order_.model) options.voice.threshold = input.turns->threshold;
  options_ = std::make_shared<const TranscribeOptions>(std::move(options));
  note_transcription();
  use_rules(changed);
  if (input.turns && input.turns->idle_timeout_ms && !silent_since_ns_) expect_speech(clock_.now_ns());
}

// A client that switches transcription on during a turn is told why the turn has none.
void Hearing::note_transcription() {
  Turn* const open = open_turn();
  if (open == nullptr || open->is_told || !input_.transcription || !hears()) return;
  open->is_told = true;
  if (open->is_heard) return;
  open->error = HttpError{.status = 400,
                          .message = "transcription was switched on when the turn had begun; the next will have one",
                          .code = "transcription_too_late"};
}

// An open turn ends by the rules that found it: a new detector would not know of it, nor of one without detection,
// which is over where detection begins.
void Hearing::use_rules(bool changed) {
  if (!input_.turns || !order_.model) {
    if (detector_) std::swap(taken_s_, taken_otherwise_s_);
    detector_.reset();
    history_.clear();
    has_new_rules_ = false;
    return;
  }
  if (detector_ && !changed) return;
  if (!detector_) std::swap(taken_s_, taken_otherwise_s_);  // a clip came ahead as it might
  if (Turn* const open = open_turn(); open != nullptr && !detector_)
    open->ms() < kMinCommitMs ? drop_turn() : commit_turn(*open);
  has_new_rules_ = detector_ && open_turn() != nullptr;
  if (!has_new_rules_) detect_anew();
}

void Hearing::detect_anew() {
  has_new_rules_ = false;
  detector_.emplace(order_.model->voice_activity(), *input_.turns, position_);
}

Checked Hearing::has_ears() const {
  if (order_.model) return {};
  return tl::unexpected(HttpError{.status = 404,
                                  .message = "no model of this server recognises speech; the operator can name one in "
                                             "recognition_model",
                                  .code = "model_not_found"});
}

void Hearing::use_format(SoundFormat format) {
  auto resampler = StreamResampler::create(rate_hz(format), kRecognitionRateHz);
  resampler_.emplace(std::move(*resampler));  // these rates are within its bounds
}

// Processed or unneeded audio counts until the clock has come as far: looking for speech in it costs as much as silence
// does.  A client that commits may send the recording of a whole turn at once.
Checked Hearing::check_backlog(double seconds) {
  const double limit_s = input_.turns ? order_.max_backlog_s : std::max(order_.max_backlog_s, order_.max_clip_s);
  if (!first_sound_ns_) first_sound_ns_ = clock_.now_ns();
  // After a long pause, the credit is no more than the audio that a stalled network may bring at once.
  const double passed_s = static_cast<double>(clock_.now_ns() - *first_sound_ns_) * 1e-9;
  taken_s_ = std::max(taken_s_, passed_s - limit_s);
  const double ahead_s = taken_s_ - passed_s;
  const double waiting_s = std::max(ahead_s, static_cast<double>(waiting_samples()) / kRecognitionRateHz);
  if (seconds + waiting_s <= limit_s) return {};
  reports_.metrics.add("syrinx_rejected_total", {{"reason", "audio_backlog"}});
  return tl::unexpected(
      HttpError{.status = 503,
                .message = fmt::format(
                    "{:.1f} s of sound wait to be heard, or came ahead of time, and with these {:.1f} s they would be "
                    "more than {} s; nothing of them was taken: send them at the pace of speech",
                    waiting_s, seconds, limit_s),
                .param = "audio",
                .code = "audio_backlog"});
}

// A long clip waits for the recogniser; what every session may have waiting needs no room.
Checked Hearing::check_room(double seconds) {
  const size_t samples = waiting_samples() + samples_in(seconds * 1000);
  if (!order_.begin_room || samples <= samples_in(order_.max_backlog_s * 1000)) return {};
  if (!room_) room_ = order_.begin_room();
  if (!room_ || room_(samples * sizeof(float))) return {};
  reports_.metrics.add("syrinx_rejected_total", {{"reason", "uploads_full"}});
  return tl::unexpected(HttpError{
      .status = 503,
      .message = fmt::format("there is no room for {:.1f} s of sound beside uploads; nothing of them was taken: send "
                             "them in parts, or try again later",
                             seconds),
      .param = "audio",
      .code = "uploads_full"});
}

void Hearing::free_room() {
  if (is_quiet() && unheard_.capacity() > kKeptSamples) {
    std::vector<float>().swap(unheard_);
    at_ = 0;
  }
  if (room_ && waiting_samples() <= samples_in(order_.max_backlog_s * 1000)) room_ = {};
}

Checked Hearing::append(const Json& fields, const std::string& event_id) {
  if (auto checked = has_ears(); !checked) return checked;
  const Json* const audio = fields.find("audio");
  if (audio == nullptr || audio->string() == nullptr)
    return tl::unexpected(bad("audio", "'audio' must be sound in base64", "missing_required_parameter"));
  const PcmFormat format = pcm_format(input_.format);
  const double seconds = static_cast<double>(appended_.samples_in(*audio->string(), input_.format)) / format.rate_hz;
  // Refused by its length: a cut text goes on where it ends.
  auto fits = check_backlog(seconds);
  if (fits) fits = check_room(seconds);
  if (!fits) {
    appended_.skip(*audio->string(), input_.format);
    return fits;
  }
  const auto taken = appended_.take(*audio->string(), input_.format);
  if (!taken) return tl::unexpected(bad("audio", "'audio' is not base64 (RFC 4648, section 4)"));
  appended_.keep(*taken);
  taken_s_ += seconds;
  if (!resampler_) use_format(input_.format);
  unheard_.erase(unheard_.begin(), unheard_.begin() + static_cast<std::ptrdiff_t>(std::exchange(at_, 0)));
  const std::span<const std::byte> bytes(taken->bytes);
  std::vector<float> samples;
  for (size_t at = 0; at < bytes.size(); at += kBlockBytes) {
    samples.clear();
    decode_pcm(bytes.subspan(at, std::min(kBlockBytes, bytes.size() - at)), format, samples);
    resampler_->push(samples, unheard_);
  }
  last_event_ = event_id;
  return {};
}

// The resampler's rest belongs to the audio before; the next begins anew.
void Hearing::look_at_rest() {
  appended_.clear();
  if (resampler_) resampler_->finish(unheard_);
  resampler_.reset();
  while (!is_quiet()) look_at_some();
}

Checked Hearing::commit() {
  if (auto checked = has_ears(); !checked) return checked;
  look_at_rest();
  Turn* const turn = open_turn();
  const double ms = turn == nullptr ? 0 : turn->ms();
  if (ms < kMinCommitMs)
    return tl::unexpected(bad("",
                              fmt::format("the buffer has {:.0f} ms of {}, and a turn needs {} ms", ms,
                                          input_.turns ? "a turn that has begun" : "sound", kMinCommitMs),
                              "input_audio_buffer_commit_empty"));
  commit_turn(*turn);
  if (input_.turns) detect_anew();
  return {};
}

// The one that is open, as if its sound had never come.
void Hearing::drop_turn() {
  if (ear_) ear_->drop(turns_.back().number);
  turns_.pop_back();
}

Checked Hearing::clear() {
  if (auto checked = has_ears(); !checked) return checked;
  unheard_.clear();
  history_.clear();
  at_ = 0;
  appended_.clear();
  resampler_.reset();
  if (open_turn() != nullptr) {
    drop_turn();
    // Where a response is being played, it is expected behind that.
    if (input_.turns && input_.turns->idle_timeout_ms && !silent_since_ns_) expect_speech(clock_.now_ns());
  }
  if (detector_) detect_anew();
  events_.send(ServerEvent::kBufferCleared, Json::Object());
  return {};
}

bool Hearing::finish() {
  look_at_rest();
  Turn* const turn = open_turn();
  if (turn == nullptr) return false;
  const bool is_long_enough = turn->ms() >= kMinCommitMs;
  is_long_enough ? commit_turn(*turn) : drop_turn();
  return is_long_enough;
}

bool Hearing::step() {
  free_room();
  if (!is_quiet()) {
    look_at_some();
    return true;
  }
  return take_news() || (!turns_.empty() && tell(turns_.front()));
}

// A window, or half a second without detection of speech.
void Hearing::look_at_some() {
  const size_t wanted = detector_ ? detector_->wanted() : samples_in(500);
  const std::span<const float> some =
      std::span<const float>(unheard_).subspan(at_, std::min(wanted, unheard_.size() - at_));
  at_ += some.size();
  position_ += some.size();
  if (!detector_) {
    Turn* const open = open_turn();
    feed(open != nullptr ? *open : begin_turn(), some);
    return;
  }
  const auto change = detector_->push(some);
  if (Turn* const open = open_turn(); open != nullptr) {
    feed(*open, some);
  } else {
    history_.insert(history_.end(), some.begin(), some.end());
  }
  if (change) note_change(*change);
  const size_t kept =
      samples_in(input_.turns->prefix_padding_ms + 2 * TurnDetector::kMinSpeechMs) + 4 * silero::kWindowSamples;
  if (history_.size() > 2 * kept) history_.erase(history_.begin(), history_.end() - static_cast<std::ptrdiff_t>(kept));
}

void Hearing::note_change(const TurnDetector::Change& change) {
  Turn* open = open_turn();
  Json told;
  if (!change.is_start) {
    silent_since_ns_.reset();
    if (open == nullptr) return;
    told.set("audio_end_ms", ms_of(change.sample)).set("item_id", open->item);
    events_.send(ServerEvent::kSpeechStopped, std::move(told));
    commit_turn(*open);
    if (has_new_rules_) detect_anew();
    return;
  }
  const uint64_t padding = samples_in(input_.turns->prefix_padding_ms);
  const uint64_t first = std::max(position_ - history_.size(), change.sample - std::min(change.sample, padding));
  if (open == nullptr) open = &begin_turn();
  told.set("audio_start_ms", ms_of(first)).set("item_id", open->item);
  events_.send(ServerEvent::kSpeechStarted, std::move(told));
  if (order_.speech_began) order_.speech_began();
  silent_since_ns_.reset();  // which a response that is interrupted has set
  const std::vector<float> history = std::exchange(history_, {});
  feed(*open, std::span(history).last(static_cast<size_t>(std::min<uint64_t>(history.size(), position_ - first))));
}

Hearing::Turn& Hearing::begin_turn() {
  turns_.push_back({.number = ++numbers_,
                    .item = events_.new_id("item"),
                    .is_heard = hears(),
                    .is_told = hears() && input_.transcription});
  return turns_.back();
}

void Hearing::feed(Turn& turn, std::span<const float> samples) {
  turn.samples += samples.size();
  if (!turn.is_heard || turn.error || samples.empty()) return;
  if (!ear_ || !ear_->hear(turn.number, options_, samples)) attend(turn, samples);
}

// Takes a slot.  The ear has the sound before that: with nothing to do it would give its slot up again while this
// thread stood still.
void Hearing::attend(Turn& turn, std::span<const float> samples) {
  while (take_news()) {  // of the ear before, which will have no more
  }
  if (turn.error) return;
  ear_ = std::make_shared<Ear>(
      Ear::Order{.model = order_.model, .id = order_.id, .times = order_.ear_times}, reports_,
      [messages = events_.shared_messages()] { messages->poke(); }, clock_);
  ear_->hear(turn.number, options_, samples);
  auto refused = order_.start_ear(ear_);
  if (!refused) return;
  ear_.reset();
  events_.send_error({.error = *refused, .event_id = last_event_});
  turn.error = std::move(refused);
  turn.is_error_told = true;
}

void Hearing::add_item(const std::string& id) {
  Item item{.id = id, .is_sound = true};
  Json added, done;
  const std::string before = conversation_.items().empty() ? std::string() : conversation_.items().back().id;
  const Json previous = before.empty() ? Json() : Json(before);
  added.set("previous_item_id", previous).set("item", item_json(item, events_.dialect()));
  done.set("previous_item_id", previous).set("item", item_json(item, events_.dialect()));
  Json committed;
  events_.send(ServerEvent::kBufferCommitted, committed.set("previous_item_id", previous).set("item_id", id));
  events_.send(ServerEvent::kItemAdded, std::move(added));
  events_.send(ServerEvent::kItemDone, std::move(done));
  conversation_.add(std::move(item), {}, &dropped_);
}

void Hearing::commit_turn(Turn& turn) {
  turn.committed = true;
  add_item(turn.item);
  // An ear that has given its slot up has told all that it heard.
  const bool is_awaited = turn.is_heard && ear_ && ear_->end(turn.number);
  while (turn.is_heard && !is_awaited && take_news()) {
  }
  turn.over = !is_awaited || turn.error.has_value();
}

// The turns that it was to transcribe fail with it.
bool Hearing::note_broken_ear() {
  if (!ear_ || !ear_->is_broken()) return false;
  ear_.reset();
  for (Turn& turn : turns_) {
    if (turn.over || !turn.is_heard) continue;
    if (!turn.error) turn.error = http_error({Code::kInternal, "the recogniser gave this turn up"});
    turn.over = turn.committed;
  }
  return true;
}

bool Hearing::take_news() {
  Ear::News news;
  if (!ear_ || !ear_->take(news)) return note_broken_ear();
  const auto turn =
      std::find_if(turns_.begin(), turns_.end(), [&](const Turn& each) { return each.number == news.turn; });
  if (turn == turns_.end()) return true;  // it was cleared
  if (news.is_segment && !turn->text.empty()) turn->text += ' ';
  turn->text += news.text;
  turn->over = turn->over || (news.is_over && turn->committed);
  if (news.error) turn->error = std::move(news.error);
  if (turn->error && turn->committed) turn->over = true;
  return true;
}

// An event at a time, of the turn that is in front.
bool Hearing::tell(Turn& turn) {
  const bool has_place = turn.committed || early_;
  if (has_place && turn.is_told && turn.text.size() > turn.told) {
    Json delta;
    delta.set("item_id", turn.item).set("content_index", 0).set("delta", turn.text.substr(turn.told));
    turn.told = turn.text.size();
    events_.send(ServerEvent::kTranscriptionDelta, std::move(delta));
    return true;
  }
  if (!turn.committed || !turn.over || take_news()) return turn.committed && turn.over;
  tell_end(turn);
  // Half a sentence is not answered as if it were all.
  const std::string transcript = turn.error ? std::string() : std::move(turn.text);
  turns_.pop_front();
  if (input_.turns && input_.turns->idle_timeout_ms) expect_speech(clock_.now_ns());
  if (order_.turn_over) order_.turn_over(transcript);
  return true;
}

void Hearing::tell_end(Turn& turn) {
  conversation_.set_text(turn.item, turn.text, &dropped_);
  if (!turn.is_told) {
    // The client wants no transcript, but must learn of a failure: such a turn gets no answer.
    if (turn.error && !turn.is_error_told) events_.send_error({.error = *turn.error});
    return;
  }
  Json told;
  told.set("item_id", turn.item).set("content_index", 0);
  if (turn.error) {
    Json error = error_json({.error = *turn.error});
    events_.send(ServerEvent::kTranscriptionFailed, std::move(told.set("error", std::move(error))));
    return;
  }
  Json usage;
  usage.set("type", "duration");
  usage.set("seconds", std::round(static_cast<double>(turn.samples) * 1e3 / kRecognitionRateHz) / 1e3);
  events_.send(ServerEvent::kTranscriptionCompleted,
               std::move(told.set("transcript", turn.text).set("usage", std::move(usage))));
}

void Hearing::watch_silence(bool is_speaking) {
  if (!input_.turns || !input_.turns->idle_timeout_ms || !silent_since_ns_ || is_speaking || !turns_.empty()) return;
  const double silent_ms = static_cast<double>(clock_.now_ns() - *silent_since_ns_) * 1e-6;
  if (silent_ms < *input_.turns->idle_timeout_ms) return;
  silent_since_ns_.reset();
  const std::string item = events_.new_id("item");
  Json told;
  told.set("audio_start_ms", ms_of(std::min(silent_since_, position_))).set("audio_end_ms", ms_of(position_));
  events_.send(ServerEvent::kTimeoutTriggered, std::move(told.set("item_id", item)));
  add_item(item);
  if (order_.turn_over) order_.turn_over({});
}

}  // namespace syrinx::server::realtime
