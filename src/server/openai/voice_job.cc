#include "server/openai/voice_job.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/in_quotes.h"
#include "server/http/reply_events.h"
#include "server/settings/model_id.h"

namespace syrinx::server {
namespace {

constexpr size_t kMaxTextBytes = 256;  // of a field but the sample
constexpr const char* kSampleName = "audio_sample";

// OpenAI's clients must name a recording of the speaker's consent, which nothing here can look at.
constexpr std::array<std::string_view, 6> kFields = {"name", "audio_sample", "file", "consent", "type", "model"};

bool is_sample(std::string_view field) { return field == "audio_sample" || field == "file"; }
bool is_required(std::string_view field) { return field == "name" || is_sample(field); }

using Taken = tl::expected<void, HttpError>;

Taken take_field(const FormPart& part, VoiceRequest& request) {
  if (is_sample(part.name)) {
    if (part.content.empty()) return refuse(part.name.c_str(), "'{}' is empty; send a recording in it", part.name);
    request.sample = part.content;
    return {};
  }
  if (part.content.size() > kMaxTextBytes)
    return refuse(part.name.c_str(), "'{}' has {} bytes; give at most {}", part.name, part.content.size(),
                  kMaxTextBytes);
  if (part.name == "type" && part.content != "audio_sample")
    return refuse("type", "'type' is {}; only audio_sample can be made a voice of", in_quotes(part.content));
  if (part.name == "model") request.model = part.content;
  if (part.name != "name") return {};
  if (const auto fault = voice_name_fault(part.content)) return refuse("name", "{}", *fault);
  request.name = part.content;
  return {};
}

HttpError conflict(std::string code, std::string message, std::string param = "name") {
  return {.status = 409, .message = std::move(message), .param = std::move(param), .code = std::move(code)};
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// An added voice that goes again unless it is kept, be it for an error or for what a library throws.
class AddedVoice {
 public:
  AddedVoice(SpeechEngine& engine, const std::string& name) : engine_(&engine), name_(name) {}
  ~AddedVoice() {
    if (engine_ != nullptr) engine_->remove_voice(name_);
  }
  AddedVoice(const AddedVoice&) = delete;
  AddedVoice& operator=(const AddedVoice&) = delete;
  void keep() { engine_ = nullptr; }

 private:
  SpeechEngine* engine_;
  const std::string& name_;
};

}  // namespace

tl::expected<VoiceRequest, HttpError> parse_voice_request(const std::vector<FormPart>& parts) {
  VoiceRequest request;
  std::set<std::string_view> seen;
  for (const FormPart& part : parts) {
    if (part.content.empty() && !is_required(part.name)) continue;  // as if it were not there
    if (std::find(kFields.begin(), kFields.end(), part.name) == kFields.end())
      return tl::unexpected(HttpError{
          .status = 400,
          .message = fmt::format("there is no field {}; a voice takes name and audio_sample", in_quotes(part.name)),
          .param = shortened(part.name),
          .code = "unknown_parameter"});
    if (!seen.insert(is_sample(part.name) ? kSampleName : std::string_view(part.name)).second)
      return refuse(part.name.c_str(), "'{}' is given twice; give it once", part.name);
    if (auto taken = take_field(part, request); !taken) return tl::unexpected(std::move(taken).error());
  }
  if (request.name.empty()) return refuse("name", "'name' is missing; give the voice a name");
  if (request.sample.empty())
    return refuse(kSampleName, "'audio_sample' is missing; send a recording of 10 to 30 s of one speaker in it");
  return request;
}

std::vector<std::string> voice_fields() {
  std::vector<std::string> names;
  for (const std::string_view field : kFields)
    if (field == kSampleName || !is_sample(field)) names.emplace_back(field);
  return names;
}

HttpError no_voice(const std::string& name) {
  return {.status = 404,
          .message = fmt::format("there is no voice {}; GET /v1/audio/voices lists all", in_quotes(name)),
          .code = "voice_not_found"};
}

HttpError no_cloning() {
  std::vector<const char*> cloning;
  for (const SpeechFamily* const family : speech_families())
    if (family->traits.clones) cloning.push_back(family->title);
  return {.status = 400,
          .message = fmt::format(
              "the model of this server clones no voices; the operator can serve one of {}, with the weights for "
              "cloning (speech_model)",
              fmt::join(cloning, " or ")),
          .code = "cloning_not_supported"};
}

Json voice_json(const SpeechModel& model, const ListedVoice& voice) {
  Json json;
  json.set("id", voice.id);
  json.set("object", "audio.voice");
  json.set("name", voice.id);
  json.set("model", model.id());
  json.set("language", voice.language.empty() ? Json() : Json(voice.language));
  json.set("kind", voice.kind);
  json.set("created_at", voice.created_s ? Json(*voice.created_s) : Json());
  if (voice.created_s) json.set("type", "audio_sample");
  return json;
}

Status VoiceJob::refused(HttpError answer, std::string error) {
  refusal_ = std::move(answer);
  return fail(Code::kInvalidArgument, "{}", error.empty() ? refusal_->message : error);
}

Status VoiceJob::work(SlotWatch& /*watch*/) {
  const Stopwatch took;
  Status done = order_.deleted.empty() ? upload() : remove();
  took_ms_ = took.elapsed_ms();
  return done;
}

std::optional<HttpError> VoiceJob::cannot_add(const VoiceRequest& request) const {
  if (!model_->is_called(request.model)) return no_model(true, "", request.model);
  if (model_->is_taken(request.name) || model_->shelf().has_file(request.name))
    return conflict("voice_exists", fmt::format("the name {} is taken; choose another, or delete that voice first",
                                                in_quotes(request.name)));
  if (model_->shelf().size() >= order_.max_voices)
    return conflict(
        "too_many_voices",
        fmt::format("{} voices have been uploaded, and no more are kept; delete one first", model_->shelf().size()),
        "");
  return std::nullopt;
}

// On the shelf before in the list: what a client is told of is there to stay.
Status VoiceJob::upload() {
  const auto parts = parse_multipart(order_.type, order_.body);
  if (!parts) return refused(parts.error());
  const auto request = parse_voice_request(*parts);
  if (!request) return refused(request.error());
  if (auto misuse = cannot_add(*request)) return refused(std::move(*misuse));

  if (reply_->cancelled()) return fail(Code::kCancelled, "the client has gone");
  SpeechEngine& engine = model_->engine();
  const Status made = engine.add_voice(request->name, bytes_of(request->sample));
  if (!made) return refused(unfit(made.error()), made.error().message);
  AddedVoice added(engine, request->name);
  const auto put_away = [&]() -> Result<UploadedVoice> {
    if (reply_->cancelled()) return fail(Code::kCancelled, "the client has gone");
    SYRINX_TRY(const std::string content, engine.export_voice(request->name));
    return model_->shelf().put(request->name, content);
  };
  const Result<UploadedVoice> kept = put_away();
  if (!kept)
    return refused(
        {.status = 507,
         .message = "the voice could not be stored, and nothing of it is kept: the server's disk is full, or it "
                    "may not write to its folder of voices; its log says which",
         .code = "voice_not_stored"},
        kept.error().message);
  added.keep();
  reply_->begin({.body = voice_json(*model_, *model_->find_listed(request->name)).dump()}, /*whole=*/true);
  return {};
}

// Requests that already speak with it go on.
Status VoiceJob::remove() {
  const std::string& name = order_.deleted;
  const auto listed = model_->find_listed(name);
  if (!listed) return refused(no_voice(name));
  if (!listed->created_s)
    return refused({.status = 403,
                    .message = fmt::format("the voice {} came with the server, and only uploaded ones can be deleted",
                                           in_quotes(name)),
                    .code = "voice_not_deletable"});
  if (model_->is_settled(name))
    return refused(conflict(
        "voice_in_use",
        fmt::format("the operator's settings name the voice {}; it goes once they do no longer", in_quotes(name)), ""));
  const Status removed = model_->shelf().remove(name);
  if (!removed)
    return refused({.status = 500,
                    .message = "the voice could not be deleted, and stays: the server may not write to its folder of "
                               "voices; its log says why",
                    .code = "voice_not_deleted"},
                   removed.error().message);
  model_->engine().remove_voice(name);
  Json json;
  json.set("id", name);
  json.set("object", "audio.voice.deleted");
  json.set("deleted", true);
  reply_->begin({.body = json.dump()}, /*whole=*/true);
  return {};
}

// Turns the engine's error about a sample into an answer.
HttpError VoiceJob::unfit(const Error& error) const {
  if (model_->names_its_files(error.message)) return http_error({Code::kInternal, error.message});
  HttpError answer = http_error(error, kSampleName);
  if (error.code == Code::kDataLoss) answer = http_error({Code::kInvalidArgument, error.message}, kSampleName);
  if (error.code == Code::kUnsupported) answer.status = 415;
  return answer;
}

HttpError VoiceJob::told(const Error& error) const { return refusal_ ? *refusal_ : http_error(error); }

// OpenAI's clients ask again after 409 and 5xx by themselves: a name that is taken stays so, and a voice for which
// there is no room would be made of its recording each time.
bool VoiceJob::fail_answer(const HttpError& error) {
  if (reply_->begun()) return false;
  HttpReply told = error_reply(error);
  if (error.status == 409 || error.status == 507) told.headers.push_back({"x-should-retry", "false"});
  reply_->begin(std::move(told), /*whole=*/true);
  return true;
}

// Frees the recording's room before the client learns of the end.
void VoiceJob::end_answer(bool complete) {
  std::string().swap(order_.body);  // which frees it
  order_.hold = {};
  end_reply(*reply_, complete, what());
}

void VoiceJob::report() const {
  auto line = log_line(order_.deleted.empty() ? "voice_upload" : "voice_deletion", order_.id, model_->id(), outcome());
  if (!line) return;
  line->set("took_ms", milliseconds(took_ms_ / 1000));
  log(*line);
}

}  // namespace syrinx::server
