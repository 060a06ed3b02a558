// Modules with real models: their files, and loading them.
#include <filesystem>
#include <string>
#include <system_error>

#include "engine/families/find_chat_files.h"
#include "engine/families/find_recognition_files.h"
#include "engine/families/find_speech_files.h"
#include "server/host/modules.h"

namespace syrinx::server {
namespace {

// Sum of a file, or of the files in a folder; a configuration stands for those beside it.
uint64_t bytes_at(std::string path) {
  std::error_code error;
  const std::filesystem::path file(path);
  if (file.extension() == ".json" || file.extension() == ".yaml") path = file.parent_path().string();
  if (!std::filesystem::is_directory(path, error)) {
    const auto bytes = std::filesystem::file_size(path, error);
    return error ? 0 : bytes;
  }
  uint64_t bytes = 0;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code of_entry;
    if (!at->is_regular_file(of_entry)) continue;
    const auto size = at->file_size(of_entry);
    if (!of_entry) bytes += size;
  }
  return bytes;
}

template <class Files>
uint64_t bytes_of(const Result<Files>& files) {
  return files ? bytes_at(files->checkpoint) : 0;
}

}  // namespace

Result<Models> load_module(const ModulePlan& plan) {
  Models models;
  switch (plan.kind) {
    case ModuleKind::kSpeech: {
      SYRINX_TRY(models.speech, SpeechModel::load(plan.settings));
      break;
    }
    case ModuleKind::kRecognition: {
      SYRINX_TRY(models.recognition, RecognitionModel::load(plan.settings));
      break;
    }
    case ModuleKind::kChat: {
      SYRINX_TRY(models.chat, ChatModel::load(plan.settings));
      break;
    }
  }
  return models;
}

uint64_t module_file_bytes(const ModulePlan& plan) {
  const auto paths = user_paths();
  if (!paths) return 0;
  const std::string folder = models_folder(*paths);
  switch (plan.kind) {
    case ModuleKind::kSpeech: return bytes_of(find_speech_files(model_of(plan), folder));
    case ModuleKind::kRecognition: return bytes_of(find_recognition_files(model_of(plan), folder));
    case ModuleKind::kChat: return bytes_of(find_chat_files(model_of(plan), folder));
  }
  return 0;
}

Status check_module_files(const ModulePlan& plan) {
  switch (plan.kind) {
    case ModuleKind::kSpeech: return SpeechModel::check(plan.settings);
    case ModuleKind::kRecognition: return RecognitionModel::check(plan.settings);
    case ModuleKind::kChat: return ChatModel::check(plan.settings);
  }
  return {};
}

}  // namespace syrinx::server
