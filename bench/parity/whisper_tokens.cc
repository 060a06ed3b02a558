// The tokens that a Whisper model gives recordings at temperature 0, as tools/reference/whisper_tokens.py has them from
// openai-whisper; bench/parity/whisper_tokens.py compares the two.  A line of JSON a file.
// Usage: whisper_tokens MODEL f32|bf16|int8 FILE...   (16 kHz; in English)
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "audio/decode/recording.h"
#include "base/cpu_info.h"
#include "base/json.h"
#include "models/whisper/transcriber.h"

namespace {

using namespace syrinx;

Status transcribe(whisper::Transcriber& transcriber, const std::string& path) {
  SYRINX_TRY(const Recording recording, read_recording(path));
  if (recording.rate_hz != whisper::kSampleRateHz)
    return fail(Code::kUnsupported, "'{}' has {} Hz; give 16000", path, recording.rate_hz);
  whisper::TranscriberSettings settings;
  settings.language = transcriber.vocabulary().tokens.find_language("en");
  settings.decode.temperatures = {0};
  settings.decode.stop_loops = false;
  SYRINX_TRY(const std::vector<whisper::Segment> segments, transcriber.transcribe(recording.samples, settings));
  Json::Array ids;
  for (const whisper::Segment& segment : segments)
    for (const int32_t id : segment.tokens) ids.emplace_back(static_cast<int64_t>(id));
  Json row;
  row.set("name", std::filesystem::path(path).filename().string()).set("ids", std::move(ids));
  fmt::print("{}\n", row.dump());
  return {};
}

Status run(int count, char** arguments) {
  SYRINX_TRY(const Precision precision, parse_precision(arguments[2]));
  SYRINX_TRY(auto model, whisper::Model::load(arguments[1], {.precision = precision}));
  SYRINX_TRY(auto vocabulary, whisper::Vocabulary::load(*model));
  ThreadTeam team(std::clamp(cpu_info().logical_cores, 1, 8));
  SYRINX_TRY(const auto transcriber, whisper::Transcriber::create(std::move(model), std::move(vocabulary), team));
  for (int i = 3; i < count; ++i) SYRINX_TRY_VOID(transcribe(*transcriber, arguments[i]));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: whisper_tokens MODEL f32|bf16|int8 FILE...\n");
    return 2;
  }
  const Status status = run(argc, argv);
  if (!status) fmt::print(stderr, "error: {}\n", status.error().message);
  return status ? 0 : 1;
}
