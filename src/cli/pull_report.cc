#include "cli/pull_report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json.h"

namespace syrinx::cli {
namespace {

constexpr int64_t kBarPeriodNs = 100'000'000;
constexpr int64_t kLinePeriodNs = 10'000'000'000;

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

const char* event_name(PullEvent::Kind kind) {
  switch (kind) {
    case PullEvent::Kind::kWaiting: return "waiting";
    case PullEvent::Kind::kChecking: return "checking";
    case PullEvent::Kind::kPlan: return "plan";
    case PullEvent::Kind::kSource: return "source";
    case PullEvent::Kind::kProgress: return "progress";
    case PullEvent::Kind::kNotice: return "notice";
    case PullEvent::Kind::kDone: return "done";
  }
  return "notice";
}

}  // namespace

std::string size_text(uint64_t bytes) {
  const double size = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} B", bytes);
  if (bytes < 1000000) return fmt::format("{:.1f} kB", size / 1e3);
  if (bytes < 1000000000) return fmt::format("{:.1f} MB", size / 1e6);
  return fmt::format("{:.2f} GB", size / 1e9);
}

std::string time_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 359999.0)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string bar_text(uint64_t done_bytes, uint64_t total_bytes, double bytes_per_second, int columns) {
  done_bytes = std::min(done_bytes, total_bytes);
  const double share = total_bytes == 0 ? 1.0 : static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  std::string figures = fmt::format(" {:3.0f} %  {} / {}", share * 100, size_text(done_bytes), size_text(total_bytes));
  if (bytes_per_second > 0) {
    figures += fmt::format("  {}/s", size_text(static_cast<uint64_t>(bytes_per_second)));
    figures += fmt::format("  {} left", time_text(static_cast<double>(total_bytes - done_bytes) / bytes_per_second));
  }
  const int room = std::min(columns - static_cast<int>(figures.size()) - 3, 40);
  if (room < 4) return figures.substr(1, static_cast<size_t>(std::max(columns - 1, 1)));
  const auto filled = static_cast<size_t>(share * room);
  return "[" + std::string(filled, '#') + std::string(static_cast<size_t>(room) - filled, '-') + "]" + figures;
}

std::string event_json(const PullEvent& event) {
  Json json;
  json.set("event", event_name(event.kind));
  json.set("model", event.model);
  const auto text = [&json](const char* key, const std::string& value) {
    if (!value.empty()) json.set(key, value);
  };
  text("text", event.text);
  text("licence", event.licence);
  text("folder", event.folder);
  const auto bytes = [&json](const char* key, uint64_t value) { json.set(key, static_cast<int64_t>(value)); };
  switch (event.kind) {
    case PullEvent::Kind::kPlan:
      bytes("total_bytes", event.total_bytes);
      bytes("missing_bytes", event.missing_bytes);
      bytes("free_bytes", event.free_bytes);
      break;
    case PullEvent::Kind::kProgress:
      bytes("done_bytes", event.done_bytes);
      bytes("total_bytes", event.total_bytes);
      break;
    case PullEvent::Kind::kDone: bytes("total_bytes", event.total_bytes); break;
    default: break;
  }
  return json.dump();
}

PullReport::PullReport(PullStyle style, const Clock& clock, std::FILE* lines)
    : style_(style), clock_(clock), lines_(lines) {}

PullReport::~PullReport() { clear_bar(); }

void PullReport::clear_bar() {
  if (!bar_shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  bar_shown_ = false;
}

void PullReport::line(const std::string& text) {
  clear_bar();
  std::fputs((text + "\n").c_str(), lines_);
  std::fflush(lines_);
}

void PullReport::show_progress(const PullEvent& event) {
  const int64_t now_ns = clock_.now_ns();
  if (!started_) {
    started_ = true;
    started_ns_ = now_ns;
    started_bytes_ = event.done_bytes;
    if (style_ == PullStyle::kLines) shown_ns_ = now_ns;
  }
  const int64_t period_ns = style_ == PullStyle::kLines ? kLinePeriodNs : kBarPeriodNs;
  const bool last = event.done_bytes >= event.total_bytes;
  if (now_ns - shown_ns_ < period_ns && !(last && style_ == PullStyle::kBar)) return;
  shown_ns_ = now_ns;
  if (style_ == PullStyle::kJson) {
    line(event_json(event));
    return;
  }
  const double seconds = static_cast<double>(now_ns - started_ns_) * 1e-9;
  const double moved = static_cast<double>(event.done_bytes - std::min(started_bytes_, event.done_bytes));
  const double rate = seconds > 0.2 ? moved / seconds : 0;
  if (style_ == PullStyle::kLines) {
    line("  " + bar_text(event.done_bytes, event.total_bytes, rate, 80));
    return;
  }
  std::fprintf(stderr, "\r%s\033[K", bar_text(event.done_bytes, event.total_bytes, rate, terminal_columns()).c_str());
  std::fflush(stderr);
  bar_shown_ = true;
}

void PullReport::show(const PullEvent& event) {
  if (event.kind == PullEvent::Kind::kSource) started_ = false;
  if (event.kind == PullEvent::Kind::kProgress) {
    show_progress(event);
    return;
  }
  if (style_ == PullStyle::kJson) {
    line(event_json(event));
    return;
  }
  switch (event.kind) {
    case PullEvent::Kind::kWaiting:
      line(fmt::format("another syrinx is at work on {}; waiting for it", event.model));
      break;
    case PullEvent::Kind::kPlan:
      line(fmt::format("{}: {}\n  licence {}\n  size    {}, {}; {} free in {}", event.model, event.text, event.licence,
                       size_text(event.total_bytes),
                       event.missing_bytes == 0 ? "all of it here" : size_text(event.missing_bytes) + " to fetch",
                       size_text(event.free_bytes), event.folder));
      break;
    case PullEvent::Kind::kSource: line("fetching " + event.text); break;
    case PullEvent::Kind::kNotice: line("  " + event.text); break;
    case PullEvent::Kind::kDone: line(fmt::format("{} is ready", event.model)); break;
    default: break;
  }
}

}  // namespace syrinx::cli
