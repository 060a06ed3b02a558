#include "server/settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "server/settings/settings_file.h"

namespace syrinx::server {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string fault(std::string_view toml) {
  Settings settings;
  const Status status = read_settings(toml, "a.toml", settings);
  return status ? "" : status.error().message;
}

TEST(Settings, EveryDefaultIsWithinItsOwnLimits) {
  const Settings defaults;
  for (const Setting& setting : setting_table()) {
    Settings settings;
    std::visit(
        [&](const auto& member) {
          EXPECT_TRUE(set(settings, setting, SettingValue(defaults.*member), setting.name)) << setting.name;
        },
        setting.member);
    EXPECT_EQ(find_setting(setting.name), &setting);
    EXPECT_FALSE(std::string_view(setting.help).empty());
  }
  EXPECT_TRUE(check(defaults));
}

TEST(Settings, FileSetsItsKeys) {
  Settings settings;
  ASSERT_TRUE(
      read_settings("port = 9000\nstalled_reader_s = 5\nvoice = \"a \\\"b\\\"\"\nallow_no_key = true\n"
                    "api_keys = [\"x\", \"y\"]\nlog = 'off'\n",
                    "a.toml", settings));
  EXPECT_EQ(settings.port, 9000);
  EXPECT_EQ(settings.stalled_reader_s, 5.0);
  EXPECT_EQ(settings.voice, "a \"b\"");
  EXPECT_TRUE(settings.allow_no_key);
  EXPECT_EQ(settings.api_keys, (Texts{"x", "y"}));
  EXPECT_EQ(settings.log, "off");
}

TEST(Settings, PrintedSettingsAreReadAgain) {
  Settings settings;
  settings.voice = "quote \" backslash \\ line\nend\x7f\t";
  settings.voices = {"a=b", "c=d"};
  settings.idle_timeout_s = 1e-1;
  settings.allow_no_key = true;
  const std::string text = settings_as_toml(settings);
  Settings again;
  const Status read = read_settings(text, "a.toml", again);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(settings_as_toml(again), text);
  EXPECT_EQ(again.voice, settings.voice);
}

TEST(Settings, FaultsNameFileLineSettingLimitAndRemedy) {
  EXPECT_EQ(fault("\nport = 70000"), "'a.toml', line 2: 'port' is 70000; give a whole number from 0 to 65535");
  EXPECT_EQ(fault("port = 1.5"), "'a.toml', line 1: 'port' is 1.5; give a whole number from 0 to 65535");
  EXPECT_EQ(fault("log = \"loud\""), "'a.toml', line 1: 'log' is 'loud'; give one of all, info, error, off");
  EXPECT_EQ(fault("allow_no_key = 1"), "'a.toml', line 1: 'allow_no_key' is 1; give true or false");
  EXPECT_EQ(fault("voices = [\"a\", 2]"), "'a.toml', line 1: 'voices' has a value of a kind that no setting has");
  EXPECT_THAT(fault("voices = \"a=b\""), HasSubstr("give a list of texts"));
  EXPECT_THAT(fault("idle_timeout_s = inf"), HasSubstr("'idle_timeout_s' is inf"));
  EXPECT_THAT(fault("idle_timeout_s = nan"), HasSubstr("give a number from 0.1 to 3600"));
  EXPECT_THAT(fault("log = 1979-05-27"), HasSubstr("of a kind that no setting has"));
  EXPECT_THAT(fault("\n\nprot = 1"), HasSubstr("line 3: there is no setting 'prot'; `syrinx serve --print-config`"));
  EXPECT_THAT(fault("port = \n"), HasSubstr("'a.toml', line 1: "));
  EXPECT_THAT(fault("[port]\n"), HasSubstr("of a kind that no setting has"));
}

TEST(Settings, TheCommandLineSaysThemAsTexts) {
  const auto given = [](const char* name, const Texts& texts) -> std::string {
    Settings settings;
    const Setting& setting = *find_setting(name);
    const Status status = set_from_texts(settings, setting, texts, setting.flag());
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(given("port", {"9000"}), "");
  EXPECT_EQ(given("idle_timeout_s", {"1.5"}), "");
  EXPECT_EQ(given("voices", {"a=b", "c=d"}), "");
  EXPECT_EQ(given("allow_no_key", {"true"}), "");
  EXPECT_EQ(given("port", {"many"}), "--port is 'many'; give a whole number from 0 to 65535");
  EXPECT_EQ(given("port", {"80 "}), "--port is '80 '; give a whole number from 0 to 65535");
  EXPECT_EQ(given("stalled_reader_s", {"0"}), "--stalled-reader-s is 0.0; give a number from 0.1 to 3600");
}

TEST(Settings, KeysAreNeverShown) {
  EXPECT_EQ(fault("api_keys = \"topsecret\""),
            "'a.toml', line 1: 'api_keys' is something else; give a list of texts, each KEY");
  Settings settings;
  settings.api_keys = {"topsecret"};
  EXPECT_THAT(settings_as_toml(settings), HasSubstr("\n# api_keys = [...]\n"));
  EXPECT_THAT(settings_as_toml(settings), testing::Not(HasSubstr("topsecret")));
  EXPECT_TRUE(read_settings(settings_as_toml(settings), "a.toml", settings));
}

TEST(Settings, KeysMustFitAHeader) {
  for (const char* bad :
       {R"(api_keys = ["good", "two words"])", R"(api_keys = ["tab\t"])", R"(api_keys = ["caf\u00e9"])"})
    EXPECT_EQ(fault(bad),
              "'a.toml', line 1: 'api_keys' holds a key with a blank, a control character or one beyond ASCII, "
              "which no header can bear; choose another one");
  EXPECT_THAT(fault("\napi_keys = [\"\"]"), HasSubstr("line 2: 'api_keys' holds an empty key; leave it out"));
  EXPECT_THAT(fault("api_keys = ['" + std::string(513, 'k') + "']"), HasSubstr("a key of 513 bytes; give at most 512"));
  EXPECT_EQ(fault("api_keys = ['" + std::string(512, '~') + "', '!']"), "");
  Settings settings;
  settings.api_keys = {"two words"};
  EXPECT_THAT(check(settings).error().message, HasSubstr("'api_keys' holds a key with a blank"));
}

TEST(Settings, SelfSignedCertificateExcludesAnother) {
  Settings settings;
  settings.tls_self_signed = true;
  EXPECT_TRUE(check(settings));
  settings.tls_certificate = settings.tls_key = "a.pem";
  EXPECT_THAT(check(settings).error().message, HasSubstr("'tls_self_signed'"));
}

TEST(Settings, OriginsMustHaveTheBrowsersForm) {
  const auto fault_of = [](const char* origin) {
    Settings settings;
    settings.cors_origins = {"https://good.example", origin};
    const Status checked = check(settings);
    return checked ? "" : checked.error().message;
  };
  for (const char* good : {"*", "http://localhost:3000", "https://a-b.example.org", "http://[::1]:8080",
                           "http://10.0.0.1", "chrome-extension://abcdef", "http://example.org:443", "null", "file://"})
    EXPECT_EQ(fault_of(good), "") << good;
  for (const char* bad : {"", "example.org", "https://", "https://example.org/", "https://example.org/page",
                          "//example.org", "https://Example.org", "HTTPS://example.org",
                          "https://example.org:", "https://example.org:70000", "https://example.org:x",
                          "https://*.example.org", "https://a b", "Null", "file:///", "https://[::1", "1http://a"})
    EXPECT_THAT(fault_of(bad), HasSubstr("which no browser sends; give scheme://host or scheme://host:port")) << bad;
  for (const char* usual : {"https://example.org:443", "http://example.org:80"})
    EXPECT_THAT(fault_of(usual), HasSubstr("browsers leave that port out")) << usual;
}

TEST(Settings, LimitBeyondAShareGivesAWarning) {
  Settings settings;
  settings.max_text_characters = 1000;
  settings.max_clip_s = 10;
  settings.max_upload_mb = 2;
  settings.max_uploads_mb = 5;
  EXPECT_EQ(upload_share_bytes(settings), size_t{2} << 20);
  settings.max_message_kb = 2048;
  EXPECT_THAT(doubts(settings),
              testing::ElementsAre("'max_body_kb' is 2400, more than the 2048 KB that 'max_uploads_mb' and "
                                   "'max_upload_mb' leave one address: what is longer is refused; raise these, or give "
                                   "2048"));
  settings.max_uploads_mb = 8;
  EXPECT_THAT(doubts(settings), testing::IsEmpty());
}

TEST(Settings, ContradictingLimitsGiveAWarning) {
  Settings settings;
  EXPECT_THAT(doubts(settings), testing::IsEmpty());
  settings.max_body_kb = 64;
  settings.max_message_kb = 1024;
  settings.max_text_characters = 5376;  // with twelve bytes each, and a kilobyte for the rest, 64 KB
  EXPECT_THAT(doubts(settings), testing::IsEmpty());
  settings.max_text_characters = 5377;
  EXPECT_THAT(doubts(settings),
              testing::ElementsAre("'max_body_kb' is 64, and a text of 'max_text_characters' 5377, of up to 12 bytes "
                                   "each, may not fit; give 65, or fewer characters"));
  settings.max_text_characters = 1000000;
  EXPECT_THAT(doubts(settings),
              testing::ElementsAre(HasSubstr("'max_body_kb' is 64"), HasSubstr("'max_message_kb' is")));
  settings.speech_model = "";
  EXPECT_THAT(doubts(settings), testing::IsEmpty());
}

TEST(Settings, AFlagMayHaveASecondName) {
  std::set<std::string> names;
  for (const Setting& setting : setting_table()) {
    EXPECT_TRUE(names.insert(setting.flag()).second) << setting.name;
    if (setting.alias != nullptr) {
      EXPECT_TRUE(names.insert(setting.alias).second) << setting.alias;
    }
  }
  EXPECT_STREQ(find_setting("drain_timeout_s")->alias, "--drain-timeout");
  EXPECT_THAT(settings_as_markdown(), HasSubstr("| `drain_timeout_s` | `--drain-timeout-s`, `--drain-timeout` |"));
}

TEST(Settings, OtherMachinesNeedAKey) {
  Settings settings;
  settings.host = "0.0.0.0";
  const Status open = check(settings);
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("give api_key_file, or set allow_no_key"));
  settings.allow_no_key = true;
  EXPECT_TRUE(check(settings));
  settings.allow_no_key = false;
  settings.api_keys = {"secret"};
  EXPECT_TRUE(check(settings));
  settings.api_keys = {""};
  EXPECT_FALSE(check(settings));
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"::", "0.0.0.0", "192.168.0.1", "", "localhost.example.org"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(Settings, TlsTakesACertificateAndItsKey) {
  Settings settings;
  settings.tls_key = "a.key";
  const Status without = check(settings);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("'tls_key' is set without 'tls_certificate'"));
  settings.tls_certificate = "a.pem";
  EXPECT_TRUE(check(settings));
}

TEST(Settings, EachProtocolHasItsOwnPort) {
  Settings settings;
  settings.wyoming_port = settings.port;
  const Status same = check(settings);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().message, "'port' and 'wyoming_port' are both 8080; give them different values");
  settings.port = settings.wyoming_port = 0;  // any free ones
  EXPECT_TRUE(check(settings));
}

TEST(Settings, PairsHaveTwoParts) {
  Settings settings;
  for (const char* member : {"alloy", "=x", "x=", ""}) {
    settings.voice_names = {member};
    const Status status = check(settings);
    ASSERT_FALSE(status) << member;
    EXPECT_THAT(status.error().message, HasSubstr("'voice_names' holds"));
  }
  EXPECT_EQ(split_pair("a=b=c", "voices")->second, "b=c");
}

TEST(Settings, TheirTableStandsInTheDocumentation) {
  std::ifstream file(SYRINX_TEST_DATA "/../../docs/server.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_NE(page.find(settings_as_markdown()), std::string::npos) << "docs/server.md should hold this table:\n"
                                                                  << settings_as_markdown();
}

std::string default_of(const Setting& setting) {
  const Settings defaults;
  if (const auto* whole = std::get_if<int64_t Settings::*>(&setting.member)) return fmt::format("{}", defaults.**whole);
  if (const auto* real = std::get_if<double Settings::*>(&setting.member)) return fmt::format("{}", defaults.**real);
  return "no number";
}

// Files of the server are named without src/server/.
void check_files(const std::string& cell, const std::string& line) {
  const std::regex file(R"(`([a-z0-9_/]+\.(cc|h))`)");
  const std::sregex_iterator first(cell.begin(), cell.end(), file), end;
  EXPECT_NE(first, end) << line;
  for (auto named = first; named != end; ++named) {
    const std::string path = SYRINX_TEST_DATA "/../../src/", name = (*named)[1];
    EXPECT_TRUE(std::ifstream(path + "server/" + name).good() || std::ifstream(path + name).good()) << line;
  }
}

// How many settings the cell names, each with its default in the other one.
int check_defaults(const std::string& cell, const std::string& presets, const std::string& line) {
  const std::regex name("`([a-z_]+)`");
  int settings = 0;
  for (std::sregex_iterator named(cell.begin(), cell.end(), name), end; named != end; ++named, ++settings) {
    const Setting* const setting = find_setting((*named)[1].str());
    EXPECT_NE(setting, nullptr) << line;
    if (setting == nullptr) continue;
    EXPECT_TRUE(std::regex_search(presets, std::regex("\\b" + default_of(*setting) + "\\b"))) << line;
  }
  return settings;
}

// All lines of the table of limits: "| what | `setting` or constant | default | `file` ... |".
TEST(Settings, TheThreatModelHasTheirDefaults) {
  std::ifstream page(SYRINX_TEST_DATA "/../../docs/threat_model.md");
  std::string line;
  while (std::getline(page, line) && line != "## Limits") {
  }
  ASSERT_TRUE(std::getline(page, line) && line == "| what | setting or constant | default | kept in |") << line;
  ASSERT_TRUE(std::getline(page, line) && line == "| --- | --- | --- | --- |") << line;
  const std::regex row(R"(\|([^|]+)\|([^|]+)\|([^|]*)\|([^|]+)\|)");
  int settings = 0;
  for (std::smatch cells; std::getline(page, line) && !line.empty();) {
    ASSERT_TRUE(std::regex_match(line, cells, row)) << line;
    check_files(cells[4], line);
    settings += check_defaults(cells[2], cells[3], line);
  }
  EXPECT_GT(settings, 35);
}

TEST(Settings, FlagHelpNamesTheRange) {
  EXPECT_EQ(find_setting("port")->flag_help(), "TCP port; 0: any free one [0 to 65535; default 8080]");
  EXPECT_THAT(find_setting("idle_timeout_s")->flag_help(), EndsWith(" [0.1 to 3600; default 75]"));
  EXPECT_THAT(find_setting("realtime_dialect")->flag_help(), EndsWith(" [auto, released, beta; default auto]"));
  EXPECT_THAT(find_setting("precision")->flag_help(), EndsWith(" [int8, f32, bf16, int4]"));
  EXPECT_THAT(find_setting("voices")->flag_help(), EndsWith(" [once for each]"));
  EXPECT_THAT(find_setting("speech_model")->flag_help(), EndsWith(" [default kokoro]"));
  EXPECT_EQ(find_setting("allow_no_key")->flag_help(), find_setting("allow_no_key")->help);
  EXPECT_EQ(find_setting("upstream_instructions")->flag_help(), find_setting("upstream_instructions")->help);
}

TEST(Settings, ALanguageIsACode) {
  Settings settings;
  settings.recognition_languages = {"en", "en-GB", "zh_Hans", "es-419"};
  EXPECT_TRUE(check(settings));
  for (const char* wrong : {"--check", "", "en,de", "en de", "4", "\xC3\xA4"}) {
    settings.recognition_languages = {"en", wrong};
    const Status status = check(settings);
    ASSERT_FALSE(status) << wrong;
    EXPECT_THAT(status.error().message, StartsWith("'recognition_languages' holds '")) << wrong;
    EXPECT_THAT(status.error().message, EndsWith("'; give a code such as en or en-GB")) << wrong;
  }
}

TEST(Settings, AMessageThatHoldsASessionUpIsDoubted) {
  Settings settings;
  EXPECT_TRUE(doubts(settings).empty());
  settings.max_text_characters = 4096;
  settings.session_kb_per_s = 64;
  settings.max_message_kb = 640;
  EXPECT_TRUE(doubts(settings).empty());
  settings.max_message_kb = 641;
  ASSERT_EQ(doubts(settings).size(), 1U);
  EXPECT_THAT(doubts(settings)[0], EndsWith("; give 65, or shorter clips"));
  settings.max_message_kb = 21504;
  settings.max_clip_s = 10.2;  // 638.5 KB
  EXPECT_TRUE(doubts(settings).empty());
  settings.max_clip_s = 20;
  EXPECT_THAT(doubts(settings).at(0), testing::HasSubstr("an append of 1251 KB"));
}

std::string instructions(const std::string& toml) {
  Settings settings;
  const Status read = read_settings(toml, "a.toml", settings);
  return read ? settings.upstream_instructions : read.error().message;
}

TEST(Settings, TheFileIsUtf8) {
  const std::string text = "h\xC3\xB6\u200Bflich \xF0\x9F\x98\x80";
  EXPECT_EQ(instructions("\xEF\xBB\xBF# \xC3\xA4 \" '\nupstream_instructions = \"" + text + "\" # \xC3\xA4"), text);
  EXPECT_EQ(instructions("upstream_instructions = '" + text + "\\'"), text + "\\");
  EXPECT_EQ(instructions("upstream_instructions = \"\"\"\n" + text + "\\\"\n\"\"" + text + "\"\"\"\""),
            text + "\"\n\"\"" + text + "\"");
  EXPECT_EQ(instructions("upstream_instructions = '''" + text + "''\n" + text + "'''''\nport = 1"),
            text + "''\n" + text + "''");
  EXPECT_EQ(instructions("upstream_instructions = '\xC3\xA9\\\\ \\\"'"), "\xC3\xA9\\\\ \\\"");
  EXPECT_THAT(instructions("upstream_instructions = '''\xC3\xA9''''''"), HasSubstr("line 1: "));
  EXPECT_EQ(instructions("upstream_instructions = \"\" # \xC3\xA4\nupstream_model = \"\\\\\" # \xC3\xA4"), "");
  EXPECT_EQ(instructions("upstream_instructions = \"\"\"a\\\n  \xC3\xA9\\\\\xC3\xA9\"\"\""), "a\xC3\xA9\\\xC3\xA9");
  EXPECT_THAT(instructions("upstream_instructions = \"\"\"\\\xC3\xA9\"\"\""), HasSubstr("line 1: "));
  for (const char* malformed : {"\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\x80"})
    EXPECT_EQ(instructions(std::string("port = 1\n\nupstream_instructions = \"") + malformed + "\""),
              "'a.toml', line 3: a byte that is not UTF-8; save the file as UTF-8");
  Settings settings, again;
  settings.voice = "caf\xC3\xA9 \xF0\x9F\x98\x80 \x7f";
  ASSERT_TRUE(read_settings(settings_as_toml(settings), "b.toml", again));
  EXPECT_EQ(again.voice, settings.voice);
}

// toml++ runs into undefined behaviour at some of them (fuzz/corpus/settings_file/unreachable.toml).
TEST(Settings, OutsideOfTextsAndCommentsTheFileIsAscii) {
  for (const char* foreign :
       {"\n[ \xEF\xBB\xAF\n", "\nvoice = \xC3\xA9", "\ncaf\xC3\xA9 = 1", "\nvoice = \"a\"\xC2\xA0",
        "\nvoice = \"\"\xC3\xA9\"\"", "\nvoice = ''''''\xC3\xA9", "\nvoice = \"\"\"\"\"\"\xC3\xA9", "\"open\n\xC3\xA9"})
    EXPECT_EQ(fault(foreign),
              "'a.toml', line 2: a character that is not ASCII outside of a text; put quotes around the text")
        << foreign;
}

}  // namespace
}  // namespace syrinx::server
