// syrinx serve: the server.  Its options are the table of server/settings/settings.h.
#include "server/serve.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/output.h"
#include "server/settings/settings.h"
#include "server/settings/settings_file.h"

namespace syrinx::cli {
namespace {

using server::Setting;
using server::Settings;
using server::Texts;

// The command line's value of a setting, if any.
struct Given {
  const Setting* setting = nullptr;
  std::optional<std::string> text = {};
  Texts texts = {};
  bool on = false;
  bool is_given() const { return on || text || !texts.empty(); }
};

struct ServeArguments {
  std::string config;
  bool check = false;
  bool print_config = false;
  std::deque<Given> given;  // a place that is named stays where it is
};

// The file's settings, and the command line's before them.
Result<Settings> settings_of(const ServeArguments& arguments) {
  Settings settings;
  if (!arguments.config.empty()) SYRINX_TRY_VOID(server::read_settings_file(arguments.config, settings));
  for (const Given& given : arguments.given) {
    if (!given.is_given()) continue;
    const Texts texts = given.on ? Texts{"true"} : given.text ? Texts{*given.text} : given.texts;
    SYRINX_TRY_VOID(server::set_from_texts(settings, *given.setting, texts, given.setting->flag()));
  }
  return settings;
}

Status run_serve(const ServeArguments& arguments) {
  SYRINX_TRY(const Settings settings, settings_of(arguments));
  if (arguments.print_config) return print(server::settings_as_toml(settings));
  if (arguments.check) {
    SYRINX_TRY_VOID(server::check_everything(settings));
    return print("the settings are valid, and the files and models that they name exist\n");
  }
  return server::serve(settings, [](const std::string& line) { note(line); });
}

}  // namespace

void add_serve(Command& tree) {
  auto arguments = std::make_shared<ServeArguments>();
  Command command = tree.add("serve", "Serve speech over HTTP, with OpenAI's interface");
  command.option("--config", arguments->config, "TOML file of settings; flags go before it").type("FILE");
  command.flag("--check", arguments->check,
               "Check the settings, and that the files and models they name exist, and exit");
  command.flag("--print-config", arguments->print_config, "Print all settings as a file for --config, and exit");
  for (const Setting& setting : server::setting_table()) {
    if (setting.in_file_only) continue;
    Given& given = arguments->given.emplace_back();
    given.setting = &setting;
    const std::string flags = setting.alias == nullptr ? setting.flag() : setting.flag() + "," + setting.alias;
    const std::string help = setting.flag_help();
    if (setting.is_flag()) {
      command.flag(flags.c_str(), given.on, help.c_str());
    } else if (setting.is_list()) {
      command.option(flags.c_str(), given.texts, help.c_str()).type(setting.value);
    } else {
      command.option(flags.c_str(), given.text, help.c_str()).type(setting.value);
    }
  }
  command.examples(
      "  syrinx serve\n"
      "  syrinx serve --port 8000 --speech-model models/english --recognition-model model.nemo\n"
      "  syrinx serve --recognition-model \"\"\n"
      "  syrinx serve --print-config > syrinx.toml\n"
      "  syrinx serve --config syrinx.toml --check");
  command.run([arguments] { return run_serve(*arguments); });
}

}  // namespace syrinx::cli
