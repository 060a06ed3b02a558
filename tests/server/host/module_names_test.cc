// Names that requests give modules: ids, the operator's, and those of other programs.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "server/host/modules.h"

namespace syrinx::server {
namespace {

constexpr ModuleKind kChat = ModuleKind::kChat, kSpeech = ModuleKind::kSpeech;

TEST(ModuleNames, FindTheirModules) {
  Settings settings;
  settings.speech_model = settings.recognition_model = "";
  settings.chat_model = "smollm2";
  settings.modules = {
      {.kind = kChat, .id = "second", .names = {"helper", "gpt-4o-mini"}, .values = {{"chat_model", "second.gguf"}}},
      {.kind = kSpeech, .id = "reader", .values = {{"speech_model", "reads"}}},
      {.kind = kSpeech, .id = "other", .names = {"narrator"}, .values = {{"speech_model", "kokoro"}}}};
  const Modules modules(settings, {});
  const auto found = [&](ModuleKind kind, std::string_view name) {
    const Module* const module = modules.find(kind, name);
    return module != nullptr ? module->plan.id : "none";
  };
  EXPECT_EQ(found(kChat, ""), "smollm2");
  EXPECT_EQ(found(kChat, "smollm2"), "smollm2");
  EXPECT_EQ(found(kChat, "SmolLM2:135m"), "smollm2");
  EXPECT_EQ(found(kChat, "gpt-4o"), "smollm2");
  EXPECT_EQ(found(kChat, "gpt-4o-2024-08-06"), "smollm2");
  EXPECT_EQ(found(kChat, "gpt-4o-mini"), "second") << "the operator's own name";
  EXPECT_EQ(found(kChat, "helper"), "second");
  EXPECT_EQ(found(kChat, "Helper"), "none");
  EXPECT_EQ(found(kChat, "third"), "none");
  EXPECT_EQ(found(kChat, "reader"), "none");
  EXPECT_EQ(found(kSpeech, ""), "reader");
  EXPECT_EQ(found(kSpeech, "tts-1"), "reader");
  EXPECT_EQ(found(kSpeech, "narrator"), "other");
  EXPECT_EQ(found(kSpeech, "HEXGRAD/kokoro-82m"), "other");
  EXPECT_EQ(found(kSpeech, "kokoro"), "other");
  EXPECT_EQ(found(kSpeech, "whisper-1"), "none");
  EXPECT_EQ(found(ModuleKind::kRecognition, ""), "none");
  EXPECT_EQ(modules.first(ModuleKind::kRecognition), nullptr);
  EXPECT_EQ(modules.count(kSpeech), 2U);
  EXPECT_EQ(modules.count(ModuleKind::kRecognition), 0U);
}

// A configuration stands for the weights beside it.
TEST(ModuleFiles, WeightsOfAFolderAreCounted) {
  ModulePlan plan;
  plan.kind = ModuleKind::kSpeech;
  const std::string folder = SYRINX_TEST_DATA "/qwen_tts/custom_voice";
  plan.settings.speech_model = folder;
  EXPECT_GE(module_file_bytes(plan), std::filesystem::file_size(folder + "/model.safetensors"));
}

}  // namespace
}  // namespace syrinx::server
