#include "cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/describe.h"

namespace syrinx::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A tree of two commands, with an option of each kind.
struct Sample {
  std::string text = "before";
  std::vector<std::string> words;
  int count = 1;
  uint64_t seed = 2;
  float speed = 3;
  bool on = false;
  std::string ran;
  CommandTree tree{"sample", "A sample."};

  Sample() {
    Command root = tree.root();
    root.flag(
        "--version", [this] { return note("version"); }, "The version");
    Command say = root.add("say", "Say something");
    say.option("words", words, "The words").type("WORD");
    say.option("-t,--text", text, "A text").show_default();
    say.option("--kind", text, "A kind").one_of({"red", "green"});
    say.option("--count", count, "A number").type("N");
    say.option("--seed", seed, "A large number");
    say.option("--speed", speed, "A real number");
    const Option on_flag = say.flag("--on", on, "A switch");
    say.flag("--off", off, "Another switch").excludes(on_flag);
    say.examples("  sample say hello");
    say.run([this] { return note("say"); });
    Command hidden = root.add("hidden", "Not shown");
    hidden.hide();
    hidden.option("needed", text, "Must be there").required();
    hidden.run([this] { return note("hidden"); });
    Command above = root.add("above", "Holds another");
    above.needs_command();
    above.add("below", "Is held").run([this] { return note("below"); });
  }
  Status note(const char* what) {
    ran += what;
    return {};
  }
  // Parses and runs; the sentence when that fails.
  std::string go(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "sample");
    const Result<Action> action = tree.parse(static_cast<int>(arguments.size()), arguments.data());
    if (!action) {
      EXPECT_EQ(action.error().code, Code::kInvalidArgument);
    }
    const Status status = action ? (*action)() : Status(tl::unexpected(action.error()));
    return status ? "" : status.error().message;
  }

 private:
  bool off = false;
};

TEST(Command, BindsEveryKindOfOption) {
  Sample sample;
  EXPECT_EQ(sample.go({"say", "one", "two", "-t", "a b", "--count", "-7", "--seed", "18446744073709551615", "--speed",
                       "0.5", "--on"}),
            "");
  EXPECT_EQ(sample.ran, "say");
  EXPECT_THAT(sample.words, ElementsAre("one", "two"));
  EXPECT_EQ(sample.text, "a b");
  EXPECT_EQ(sample.count, -7);
  EXPECT_EQ(sample.seed, 18446744073709551615u);
  EXPECT_EQ(sample.speed, 0.5f);
  EXPECT_TRUE(sample.on);
}

// The parser underneath would take them for lists.
TEST(Command, BracketsAreText) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"[pause:1s]"}, {"[a,b] c [d, e]"}, {"a", "[b]"}, {"[b]", "[]", "["}, {"[[a],[b]]"}, {"\x1a[b]", "\x1a"}}) {
    Sample sample;
    std::vector<const char*> arguments = {"say"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    EXPECT_EQ(sample.go(arguments), "");
    EXPECT_EQ(sample.words, words);
  }
  Sample sample;
  EXPECT_EQ(sample.go({"say", "-t", "[x,y]", "--", "[z,-]"}), "");
  EXPECT_EQ(sample.text, "[x,y]");
  EXPECT_THAT(sample.words, ElementsAre("[z,-]"));
  EXPECT_EQ(sample.go({"say", "--text=[x,y]"}), "");
  EXPECT_EQ(sample.text, "[x,y]");
  for (const char* mistake : {"--count", "--kind"}) {
    const std::string sentence = Sample().go({"say", mistake, "[5]"});
    EXPECT_THAT(sentence, HasSubstr("[5]"));
    EXPECT_EQ(sentence.find('\x1a'), std::string::npos);
  }
}

TEST(Command, AbsentOptionsKeepTheirDefaults) {
  Sample sample;
  EXPECT_EQ(sample.go({"say"}), "");
  EXPECT_EQ(sample.text, "before");
  EXPECT_EQ(sample.count, 1);
  EXPECT_FALSE(sample.on);
  EXPECT_TRUE(sample.words.empty());
}

TEST(Command, MistakesNameTheOption) {
  EXPECT_THAT(Sample().go({}), HasSubstr("no command was given"));
  EXPECT_THAT(Sample().go({"sing"}), HasSubstr("sing"));
  EXPECT_THAT(Sample().go({"say", "--count", "many"}), HasSubstr("--count"));
  EXPECT_THAT(Sample().go({"say", "--seed", "-1"}), HasSubstr("--seed"));
  EXPECT_THAT(Sample().go({"say", "--kind", "blue"}), HasSubstr("{red,green}"));
  EXPECT_THAT(Sample().go({"say", "--on", "--off"}), HasSubstr("--on"));
  EXPECT_THAT(Sample().go({"hidden"}), HasSubstr("needed is required"));
  EXPECT_THAT(Sample().go({"above"}), HasSubstr("subcommand"));
  EXPECT_THAT(Sample().go({"say", "above"}), "");  // a word, not a command
}

TEST(Command, OneBelowAnotherAndAFlagThatIsACommand) {
  Sample nested;
  EXPECT_EQ(nested.go({"above", "below"}), "");
  EXPECT_EQ(nested.ran, "below");
  Sample version;
  EXPECT_EQ(version.go({"--version", "say", "hello"}), "");
  EXPECT_EQ(version.ran, "version");
}

TEST(Command, HelpIsPrinted) {
  Sample sample;
  testing::internal::CaptureStdout();
  EXPECT_EQ(sample.go({"say", "--help"}), "");
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(sample.ran, "");
  for (const char* part : {"Say something", "WORD", "-t,--text", "TEXT=before", "TEXT:{red,green}", "sample say hello"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Command, Description) {
  Sample sample;
  const std::vector<CommandDescription> commands = sample.tree.root().describe();
  std::string names;
  for (const CommandDescription& command : commands) names += command.name + ";";
  EXPECT_EQ(names, ";say;above;above below;");
  const CommandDescription& say = commands[1];
  EXPECT_EQ(say.examples, "  sample say hello");
  std::string values;
  for (const OptionDescription& option : say.options) values += option.value + ";";
  EXPECT_EQ(values, ";WORD;TEXT;TEXT;N;UINT;FLOAT;;;");
  EXPECT_TRUE(say.options[1].positional());
  EXPECT_THAT(say.options[2].names, ElementsAre("-t", "--text"));
  EXPECT_THAT(say.options[3].choices, ElementsAre("red", "green"));
}

}  // namespace
}  // namespace syrinx::cli
