#include "cli/remote_parts.h"

#include <unistd.h>

#include <cstdio>

#include "cli/output.h"
#include "cli/pull_report.h"
#include "engine/families/fetch_remote_parts.h"

namespace syrinx::cli {

Status fetch_in_sight(const std::string& model, const std::string& voice, bool quiet) {
  PullReport report(is_terminal(STDERR_FILENO) ? PullStyle::kBar : PullStyle::kLines, system_clock(), stderr);
  if (quiet) return fetch_remote_parts(model, voice, {});
  return fetch_remote_parts(model, voice, [&report](const PullEvent& event) { report.show(event); });
}

}  // namespace syrinx::cli
