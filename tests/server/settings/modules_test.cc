// [[module]] tables of the settings file, and the modules that a server then has.
#include "server/settings/modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/settings/module_plan.h"
#include "server/settings/settings.h"
#include "server/settings/settings_file.h"

namespace syrinx::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

constexpr std::string_view kTwoVoices = R"(
chat_model = "smollm2"

[[module]]
kind = "speech"
model = "kokoro"
id = "reader"
names = ["narrator", "hexgrad"]
load = "first-use"
keep_alive = "90s"
slots = 2
precision = "f32"
threads = 3
voice = "bf_emma"
voices = ["me=/voices/me.wav"]
voice_names = ["alloy=am_adam"]

[[module]]
kind = "recognition"
model = "whisper-base"
slots = 5
live_slots = 2
precision = "bf16"
threads = 4
heartbeat = true
languages = ["en", "de"]

[[module]]
kind = "speech"
model = "pocket-tts:german"

[[module]]
kind = "chat"
model = "/models/helper.gguf"
load = "start"
keep_alive = 60
slots = 1
precision = "int4"
threads = 5
context = 2048
)";

Settings read(std::string_view toml) {
  Settings settings;
  const Status status = read_settings(toml, "a.toml", settings);
  EXPECT_TRUE(status) << status.error().message;
  return settings;
}

std::string fault(std::string_view toml) {
  Settings settings;
  const Status status = read_settings(toml, "a.toml", settings);
  return status ? "" : status.error().message;
}

// A module of a kind, with one more line.
std::string fault_of(std::string_view line, std::string_view kind = "speech") {
  return fault(fmt::format("[[module]]\nkind = \"{}\"\nmodel = \"m\"\n{}\n", kind, line));
}

double keep_alive(std::string_view lines) {
  const Settings settings = read(fmt::format("[[module]]\nkind = 'chat'\nmodel = 'm'\n{}\n", lines));
  return settings.modules.empty() ? 0 : settings.modules.front().keep_alive_s;
}

// The rest of check() has nothing against a server of these modules.
std::string checked(std::string_view toml) {
  const Status status = check(read(toml));
  return status ? "" : status.error().message;
}

TEST(Modules, FileSetsTheirKeys) {
  const Settings settings = read(kTwoVoices);
  ASSERT_EQ(settings.modules.size(), 4U);
  const ModuleSettings& reader = settings.modules[0];
  EXPECT_EQ(reader.kind, ModuleKind::kSpeech);
  EXPECT_EQ(reader.id, "reader");
  EXPECT_THAT(reader.names, ElementsAre("narrator", "hexgrad"));
  EXPECT_TRUE(reader.loads_at_first_use);
  EXPECT_EQ(reader.keep_alive_s, 90);
  const std::map<std::string, SettingValue> values(reader.values.begin(), reader.values.end());
  EXPECT_THAT(values, ElementsAre(Pair("precision", SettingValue("f32")), Pair("speech_model", SettingValue("kokoro")),
                                  Pair("speech_slots", SettingValue(int64_t{2})),
                                  Pair("threads", SettingValue(int64_t{3})), Pair("voice", SettingValue("bf_emma")),
                                  Pair("voice_names", SettingValue(Texts{"alloy=am_adam"})),
                                  Pair("voices", SettingValue(Texts{"me=/voices/me.wav"}))));
  EXPECT_EQ(settings.modules[1].kind, ModuleKind::kRecognition);
  EXPECT_EQ(settings.modules[3].kind, ModuleKind::kChat);
}

TEST(Modules, UnsetKeysHaveTheirDefaults) {
  const Settings settings = read("[[module]]\nkind = 'speech'\nmodel = 'kokoro'\n");
  ASSERT_EQ(settings.modules.size(), 1U);
  const ModuleSettings& module = settings.modules.front();
  EXPECT_EQ(module.id, "");
  EXPECT_THAT(module.names, IsEmpty());
  EXPECT_FALSE(module.loads_at_first_use);
  EXPECT_EQ(module.keep_alive_s, -1);
  EXPECT_THAT(module.values, ElementsAre(Pair("speech_model", SettingValue("kokoro"))));
}

TEST(Modules, KeepAliveIsSecondsOrText) {
  EXPECT_EQ(keep_alive(""), -1);
  EXPECT_EQ(keep_alive("load = 'start'"), -1);
  EXPECT_EQ(keep_alive("load = 'first-use'"), 300);
  EXPECT_EQ(keep_alive("keep_alive = 0\nload = 'first-use'"), 0);
  EXPECT_EQ(keep_alive("load = 'first-use'\nkeep_alive = -1"), -1);
  EXPECT_EQ(keep_alive("keep_alive = 45"), 45);
  EXPECT_EQ(keep_alive("keep_alive = 0.5"), 0.5);
  EXPECT_EQ(keep_alive("keep_alive = '45'"), 45);
  EXPECT_EQ(keep_alive("keep_alive = '90s'"), 90);
  EXPECT_EQ(keep_alive("keep_alive = '5m'"), 300);
  EXPECT_EQ(keep_alive("keep_alive = '1.5h'"), 5400);
  EXPECT_EQ(keep_alive("keep_alive = '-1'"), -1);
  EXPECT_EQ(keep_alive("keep_alive = -3600"), -1);
  EXPECT_EQ(keep_alive("keep_alive = 1e9"), 1e9);
  for (const char* bad : {"''", "'5 m'", "'5min'", "'m'", "'inf'", "nan", "inf", "1e10", "true", "['5m']"})
    EXPECT_EQ(fault_of(fmt::format("keep_alive = {}", bad)),
              "'a.toml', line 4: 'keep_alive' is something else; give seconds, or a text such as \"90s\", \"5m\" or "
              "\"1h\"; -1: it stays")
        << bad;
}

TEST(Modules, FaultsOfKindAndModelAreNamed) {
  EXPECT_EQ(fault("\n[[module]]\nmodel = 'kokoro'\n"),
            "'a.toml', line 2: a module needs 'kind': \"speech\", \"recognition\" or \"chat\"");
  for (const char* bad : {"'voice'", "'Speech'", "1", "['speech']"})
    EXPECT_EQ(fault(fmt::format("[[module]]\nkind = {}\nmodel = 'kokoro'\n", bad)),
              "'a.toml', line 2: 'kind' is something else; give \"speech\", \"recognition\" or \"chat\"")
        << bad;
  for (const char* bad : {"", "model = ''"})
    EXPECT_EQ(fault(fmt::format("[[module]]\nkind = 'chat'\n{}\n", bad)),
              "'a.toml', line 1: a module needs 'model': the name of an installed one, a folder or a file")
        << bad;
  EXPECT_THAT(fault("[[module]]\nkind = 1979-05-27\n"), HasSubstr("line 2: 'kind' has a value of a kind that no"));
}

TEST(Modules, UnknownKeysAreRefused) {
  EXPECT_EQ(fault_of("colour = 1"),
            "'a.toml', line 4: 'colour' is no key of a module of kind speech; there are kind, id, names, load, "
            "keep_alive, model, slots, precision, threads, voice, voices, voice_names");
  EXPECT_THAT(
      fault_of("voice = 'x'", "recognition"),
      HasSubstr("'voice' is no key of a module of kind recognition; there are kind, id, names, load, keep_alive, "
                "model, slots, live_slots, precision, threads, heartbeat, languages"));
  EXPECT_THAT(fault_of("languages = ['en']", "chat"),
              HasSubstr("keep_alive, model, slots, precision, threads, context"));
  EXPECT_THAT(fault_of("speech_slots = 2"), HasSubstr("'speech_slots' is no key"));
  EXPECT_THAT(fault_of("module = 2"), HasSubstr("'module' is no key"));
}

TEST(Modules, ValuesHaveTheLimitsOfTheirSettings) {
  EXPECT_EQ(fault_of("slots = 65"), "'a.toml', line 4: 'slots' is 65; give a whole number from 1 to 64");
  EXPECT_EQ(fault_of("slots = '2'"), "'a.toml', line 4: 'slots' is '2'; give a whole number from 1 to 64");
  EXPECT_THAT(fault_of("precision = 'f16'"), HasSubstr("line 4: 'precision' is 'f16'; give one of "));
  EXPECT_THAT(fault_of("precision = 'int4'", "recognition"), HasSubstr("'precision' is 'int4'; give one of "));
  EXPECT_THAT(fault_of("threads = -1", "chat"), HasSubstr("'threads' is -1; give a whole number from 0 to 64"));
  EXPECT_THAT(fault_of("context = 1048577", "chat"), HasSubstr("give a whole number from 0 to 1048576"));
  EXPECT_THAT(fault_of("live_slots = 65", "recognition"), HasSubstr("give a whole number from 0 to 64"));
  EXPECT_THAT(fault_of("heartbeat = 1", "recognition"), HasSubstr("'heartbeat' is 1; give true or false"));
  EXPECT_THAT(fault_of("voices = 'a=b'"), HasSubstr("'voices' is 'a=b'; give a list of texts"));
  EXPECT_THAT(fault_of("voice = 3"), HasSubstr("'voice' is 3; give a text"));
  EXPECT_THAT(fault_of("slots = 1979-05-27"), HasSubstr("'slots' has a value of a kind that no setting has"));
  EXPECT_EQ(fault_of("load = 'later'"), "'a.toml', line 4: 'load' is something else; give \"start\" or \"first-use\"");
}

TEST(Modules, NamesHaveNoBlanks) {
  for (const char* bad : {"''", "'two words'", "\"tab\\t\"", "\"caf\\u00e9\"", "1"})
    EXPECT_EQ(fault_of(fmt::format("id = {}", bad)),
              "'a.toml', line 4: 'id' is something else; give a name without blanks, of at most 256 bytes")
        << bad;
  EXPECT_THAT(fault_of("id = '" + std::string(257, 'i') + "'"), HasSubstr("of at most 256 bytes"));
  EXPECT_EQ(fault_of("id = '" + std::string(256, '~') + "'"), "");
  for (const char* bad : {"'one'", "['']", "['good', 'two words']"})
    EXPECT_EQ(fault_of(fmt::format("names = {}", bad)),
              "'a.toml', line 4: 'names' is something else; give a list of at most 64 names without blanks")
        << bad;
  const auto names = [](size_t count) {
    std::string list;
    for (size_t i = 0; i < count; ++i) list += fmt::format("'n{}',", i);
    return fmt::format("names = [{}]", list);
  };
  EXPECT_EQ(fault_of(names(64)), "");
  EXPECT_THAT(fault_of(names(65)), HasSubstr("at most 64 names"));
}

TEST(Modules, EachBeginsWithDoubleBrackets) {
  for (const char* bad : {"[module]\nkind = 'speech'\n", "module = 1\n", "module = [1, 2]\n", "[module.speech]\n"})
    EXPECT_EQ(fault(bad), "'a.toml', line 1: 'module' is something else; begin each module with the line [[module]]")
        << bad;
}

TEST(Modules, TooManyAreRefused) {
  const auto modules = [](size_t count) {
    std::string toml;
    for (size_t i = 0; i < count; ++i) toml += fmt::format("[[module]]\nkind = 'chat'\nmodel = 'm{}'\n", i);
    return toml;
  };
  EXPECT_EQ(checked(modules(32)), "");
  EXPECT_EQ(fault(modules(33)), "'a.toml', line 1: there are 33 modules; a server has at most 32");
}

TEST(Modules, ShortFormsDefaultGivesWayToThem) {
  const Settings usual, one = read("[[module]]\nkind = 'speech'\nmodel = 'pocket-tts'\n");
  EXPECT_EQ(one.speech_model, "");
  EXPECT_EQ(one.recognition_model, usual.recognition_model);
  const Settings both = read("speech_model = 'kokoro'\n[[module]]\nkind = 'speech'\nmodel = 'pocket-tts'\n");
  EXPECT_EQ(both.speech_model, "kokoro");
  const Settings chat = read("[[module]]\nkind = 'chat'\nmodel = 'smollm2'\n");
  EXPECT_EQ(chat.speech_model, usual.speech_model);
}

TEST(Modules, PlansFollowShortFormAndFile) {
  const std::vector<ModulePlan> plans = module_plans(read(kTwoVoices));
  ASSERT_EQ(plans.size(), 5U);
  const auto each = [&](const auto& told) {
    std::vector<std::string> list;
    for (const ModulePlan& plan : plans) list.push_back(told(plan));
    return list;
  };
  EXPECT_THAT(each([](const ModulePlan& plan) { return plan.id; }),
              ElementsAre("smollm2", "reader", "whisper-base", "pocket-tts:german", "helper"));
  EXPECT_THAT(each([](const ModulePlan& plan) { return plan.place; }),
              ElementsAre("'chat_model'", "[[module]] 1", "[[module]] 2", "[[module]] 3", "[[module]] 4"));
  EXPECT_THAT(each([](const ModulePlan& plan) { return model_of(plan); }),
              ElementsAre("smollm2", "kokoro", "whisper-base", "pocket-tts:german", "/models/helper.gguf"));
  EXPECT_THAT(each([](const ModulePlan& plan) { return kind_name(plan.kind); }),
              ElementsAre("chat", "speech", "recognition", "speech", "chat"));
  EXPECT_THAT(each([](const ModulePlan& plan) { return fmt::format("{}", slots_of(plan)); }),
              ElementsAre("4", "2", "5", "4", "1"));
  EXPECT_THAT(each([](const ModulePlan& plan) { return fmt::format("{}", plan.keep_alive_s); }),
              ElementsAre("-1", "90", "-1", "-1", "60"));
  for (const ModulePlan& plan : plans) {
    EXPECT_EQ(plan.settings.module_id, plan.id);
    EXPECT_THAT(plan.settings.modules, IsEmpty());
    EXPECT_EQ(plan.loads_at_first_use, plan.id == "reader");
    EXPECT_EQ(!plan.settings.speech_model.empty() + !plan.settings.recognition_model.empty() +
                  !plan.settings.chat_model.empty(),
              1)
        << plan.id;
  }
}

TEST(Modules, PlansHaveTheirOwnSettings) {
  const std::vector<ModulePlan> plans = module_plans(read(kTwoVoices));
  ASSERT_EQ(plans.size(), 5U);
  const Settings &reader = plans[1].settings, &hearer = plans[2].settings, &helper = plans[4].settings;
  EXPECT_EQ(reader.precision, "f32");
  EXPECT_EQ(reader.threads, 3);
  EXPECT_EQ(reader.voice, "bf_emma");
  EXPECT_THAT(reader.voices, ElementsAre("me=/voices/me.wav"));
  EXPECT_THAT(reader.voice_names, ElementsAre("alloy=am_adam"));
  EXPECT_THAT(reader.module_names, ElementsAre("narrator", "hexgrad"));
  EXPECT_EQ(hearer.recognition_live_slots, 2);
  EXPECT_EQ(hearer.recognition_precision, "bf16");
  EXPECT_EQ(hearer.recognition_threads, 4);
  EXPECT_TRUE(hearer.recognition_heartbeat);
  EXPECT_THAT(hearer.recognition_languages, ElementsAre("en", "de"));
  EXPECT_EQ(helper.chat_precision, "int4");
  EXPECT_EQ(helper.chat_threads, 5);
  EXPECT_EQ(helper.chat_context, 2048);
  EXPECT_THAT(plans[3].settings.voices, IsEmpty());
}

TEST(Modules, ShortFormsSettingsAreNotTheirs) {
  const std::vector<ModulePlan> plans = module_plans(
      read("speech_model = 'kokoro'\nrecognition_model = ''\nvoice = 'af_sky'\nspeech_slots = 9\nprecision = 'f32'\n"
           "strict = true\n[[module]]\nkind = 'speech'\nmodel = 'pocket-tts'\n"));
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_EQ(plans[0].settings.voice, "af_sky");
  EXPECT_EQ(plans[0].settings.speech_slots, 9);
  const Settings usual;
  EXPECT_EQ(plans[1].settings.voice, usual.voice);
  EXPECT_EQ(plans[1].settings.speech_slots, usual.speech_slots);
  EXPECT_EQ(plans[1].settings.precision, usual.precision);
  EXPECT_TRUE(plans[1].settings.strict) << "the server's";
}

TEST(Modules, PrintedOnesAreReadAgain) {
  const Settings settings = read(kTwoVoices);
  const std::string text = settings_as_toml(settings);
  const Settings again = read(text);
  EXPECT_EQ(settings_as_toml(again), text);
  ASSERT_EQ(again.modules.size(), settings.modules.size());
  for (size_t i = 0; i < again.modules.size(); ++i) {
    EXPECT_EQ(again.modules[i].keep_alive_s, settings.modules[i].keep_alive_s);
    EXPECT_EQ(std::map(again.modules[i].values.begin(), again.modules[i].values.end()),
              std::map(settings.modules[i].values.begin(), settings.modules[i].values.end()));
  }
  EXPECT_EQ(again.speech_model, "") << "the short form stays out";
}

TEST(Modules, ClientsMustTellThemApart) {
  constexpr std::string_view kOther = "[[module]]\nkind = 'chat'\nmodel = '/other/kokoro.gguf'\n";
  const std::string speech = "recognition_model = ''\n[[module]]\nkind = 'speech'\nmodel = 'kokoro'\n";
  EXPECT_EQ(checked(speech + "id = 'a'\n" + std::string(kOther)), "");
  EXPECT_EQ(checked(speech + std::string(kOther)),
            "[[module]] 1 and [[module]] 2 are both called 'kokoro'; give one of them another id or name, so that "
            "clients can tell them apart");
  EXPECT_THAT(checked(speech + "names = ['b']\n" + std::string(kOther) + "id = 'b'\n"), HasSubstr("both called 'b'"));
  EXPECT_THAT(checked(speech + "names = ['b']\n" + std::string(kOther) + "id = 'c'\nnames = ['b']\n"),
              HasSubstr("both called 'b'"));
  EXPECT_THAT(checked("speech_model = 'kokoro'\n" + speech), StartsWith("'speech_model' and [[module]] 1 are both"));
  EXPECT_EQ(checked(speech + "names = ['kokoro', 'x', 'x']\n"), "") << "its own name again";
  EXPECT_THAT(checked("speech_model = ''\nrecognition_model = ''\n"), HasSubstr("there is nothing to serve"));
}

TEST(Modules, TheirListsAreChecked) {
  const std::string speech = "[[module]]\nkind = 'speech'\nmodel = 'kokoro'\n";
  EXPECT_THAT(checked(speech + "voices = ['nameless']\n"), HasSubstr("'voices' holds"));
  EXPECT_THAT(checked(speech + "voice_names = ['=x']\n"), HasSubstr("'voice_names' holds"));
  EXPECT_THAT(checked("[[module]]\nkind = 'recognition'\nmodel = 'm'\nlanguages = ['no such']\n"),
              HasSubstr("'recognition_languages'"));
}

}  // namespace
}  // namespace syrinx::server
