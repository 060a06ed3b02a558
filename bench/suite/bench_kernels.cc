#include "bench/suite/bench_kernels.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>

#include "base/cpu_info.h"
#include "base/json.h"
#include "base/signals.h"
#include "base/version.h"
#include "bench/suite/bench_kokoro.h"
#include "bench/suite/bench_pocket_tts.h"
#include "bench/suite/bench_qwen_tts.h"
#include "bench/suite/bench_steps.h"
#include "bench/suite/bench_transducer.h"
#include "bench/suite/bench_vad.h"
#include "bench/suite/bench_whisper.h"
#include "cli/command.h"
#include "cli/output.h"
#include "kernels/dispatch.h"

namespace syrinx::bench {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kMaxRuns = 1000;
constexpr double kSampleSeconds = 0.003;

double seconds_of(const KernelCase& item, ThreadTeam& team, size_t repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < repeats; ++i) item.run(team);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Row {
  const KernelCase* item;
  Timing timing;
  double rate = 0;                    // GOP/s or GB/s of the median
  double share = 0;                   // of the limit; 0 when the machine has none of that kind
  LimitKind limit = LimitKind::kF32;  // the one that binds
};

Row measure(const KernelCase& item, ThreadTeam& team, const kernels::MachineLimits& limits, int runs) {
  Row row{.item = &item, .timing = time_case(item, team, runs), .limit = item.limit};
  row.rate = item.work * 1e-3 / row.timing.median_us;
  const double limit = limit_of(limits, item.limit).all_threads;
  if (limit > 0) row.share = row.rate / limit;
  const double read_share = item.read_bytes * 1e-3 / row.timing.median_us / limits.read_gb_per_s.all_threads;
  if (read_share > row.share) {
    row.share = read_share;
    row.limit = LimitKind::kRead;
  }
  return row;
}

void add_limit(std::string& text, const char* name, const kernels::Limit& limit, const std::string& unit) {
  if (limit.one_thread <= 0) return;
  fmt::format_to(std::back_inserter(text), "  {:<26}{:>10.1f}{:>12.1f}  {}\n", name, limit.one_thread,
                 limit.all_threads, unit);
}

std::string header_text(const kernels::MachineLimits& limits, int runs) {
  const char* extension = kernels::use_avx512_vnni()    ? " with VNNI"
                          : kernels::use_neon_dotprod() ? " with dot product"
                                                        : "";
  std::string text = fmt::format(
      "machine  {}, {} cores here\nbuild    syrinx {} ({}, {}, {})\nruns on  {}{}, {} threads, median of {}\n\n",
      cpu_info().model, cpu_info().logical_cores, version(), commit(), build_type(), compiler(), limits.target,
      extension, limits.threads, runs);
  text += fmt::format("  {:<26}{:>10}{:>12}\n", "limit", "1 thread", fmt::format("{} threads", limits.threads));
  add_limit(text, "read", limits.read_gb_per_s, fmt::format("GB/s, best prefetch {} bytes", limits.prefetch_bytes));
  add_limit(text, "f32", limits.f32_gop_per_s, "GOP/s");
  add_limit(text, "bf16", limits.bf16_gop_per_s, "GOP/s");
  add_limit(text, "int8 dot product", limits.int8_dot_gop_per_s, "GOP/s");
  add_limit(text, "int8 pairs, exact", limits.int8_exact_gop_per_s, "GOP/s");
  add_limit(text, "int8 pairs, 7 bits", limits.int8_7bit_gop_per_s, "GOP/s");
  return text + fmt::format("\n  {:<26}{:<30}{:>10}{:>10}{:>10}{:>10}  {}\n", "kernel", "shape", "median us", "min",
                            "max", "rate", "share of limit");
}

std::string row_text(const Row& row) {
  const std::string share = row.share > 0 ? fmt::format("{:.0f} %", row.share * 100) : "-";
  return fmt::format("  {:<26}{:<30}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}  {} of {}\n", row.item->name, row.item->shape,
                     row.timing.median_us, row.timing.min_us, row.timing.max_us, row.rate, share,
                     limit_name(row.limit));
}

// The row of the least share of each group, in the order of the groups.
std::vector<const Row*> least_rows(const std::vector<Row>& rows) {
  std::vector<const Row*> least;
  for (const Row& row : rows) {
    if (row.item->group.empty()) continue;
    const auto same = std::find_if(least.begin(), least.end(),
                                   [&](const Row* other) { return other->item->group == row.item->group; });
    if (same == least.end()) {
      least.push_back(&row);
    } else if (row.share < (*same)->share) {
      *same = &row;
    }
  }
  return least;
}

std::string least_text(const std::vector<Row>& rows) {
  std::string text;
  for (const Row* row : least_rows(rows)) {
    fmt::format_to(std::back_inserter(text), "  least of {:<17}{:<30}{:>4.0f} % of {}\n", row->item->group,
                   row->item->shape, row->share * 100, limit_name(row->limit));
  }
  return text.empty() ? text : "\n" + text;
}

Json limit_json(const kernels::Limit& limit) {
  if (limit.one_thread <= 0) return {};
  return Json().set("one_thread", limit.one_thread).set("all_threads", limit.all_threads);
}

Json report_json(const kernels::MachineLimits& limits, const std::vector<Row>& rows, int runs) {
  Json machine, figures, report;
  machine.set("model", cpu_info().model).set("cores", cpu_info().logical_cores).set("target", limits.target);
  figures.set("read_gb_per_s", limit_json(limits.read_gb_per_s))
      .set("prefetch_bytes", limits.prefetch_bytes)
      .set("f32_gop_per_s", limit_json(limits.f32_gop_per_s))
      .set("bf16_gop_per_s", limit_json(limits.bf16_gop_per_s))
      .set("int8_dot_gop_per_s", limit_json(limits.int8_dot_gop_per_s))
      .set("int8_exact_gop_per_s", limit_json(limits.int8_exact_gop_per_s))
      .set("int8_7bit_gop_per_s", limit_json(limits.int8_7bit_gop_per_s));
  Json::Array kernels;
  for (const Row& row : rows) {
    Json item;
    item.set("name", row.item->name).set("shape", row.item->shape).set("limit", limit_name(row.limit));
    item.set("work", row.item->work).set("median_us", row.timing.median_us).set("min_us", row.timing.min_us);
    item.set("max_us", row.timing.max_us).set("rate", row.rate).set("share", row.share);
    kernels.push_back(std::move(item));
  }
  Json::Array least;
  for (const Row* row : least_rows(rows)) {
    Json item;
    item.set("group", row->item->group).set("shape", row->item->shape).set("share", row->share);
    least.push_back(std::move(item));
  }
  report.set("machine", std::move(machine)).set("version", version()).set("commit", commit());
  report.set("build_type", build_type()).set("compiler", compiler()).set("threads", limits.threads).set("runs", runs);
  report.set("limits", std::move(figures)).set("kernels", std::move(kernels)).set("least", std::move(least));
  return report;
}

}  // namespace

std::vector<KernelCase> all_kernel_cases(int threads) {
  std::vector<KernelCase> cases = matrix_kernel_cases(threads);
  for (KernelCase& item : stream_kernel_cases()) cases.push_back(std::move(item));
  for (KernelCase& item : row_kernel_cases()) cases.push_back(std::move(item));
  for (KernelCase& item : codec_kernel_cases()) cases.push_back(std::move(item));
  for (KernelCase& item : vector_kernel_cases(threads)) cases.push_back(std::move(item));
  return cases;
}

Timing time_case(const KernelCase& item, ThreadTeam& team, int runs) {
  item.run(team);
  size_t repeats = 1;
  while (seconds_of(item, team, repeats) < kSampleSeconds && repeats < (size_t{1} << 24)) repeats *= 2;
  std::vector<double> samples(static_cast<size_t>(runs));
  for (double& sample : samples) sample = seconds_of(item, team, repeats) * 1e6 / static_cast<double>(repeats);
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

Status run_bench_kernels(const BenchKernelsOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return fail(Code::kInvalidArgument, "{} threads make no sense; give 1 to {}, or 0 for all", options.threads,
                kMaxThreads);
  }
  if (options.runs < 1 || options.runs > kMaxRuns) {
    return fail(Code::kInvalidArgument, "{} runs make no sense; give 1 to {}", options.runs, kMaxRuns);
  }
  ThreadTeam team(options.threads > 0 ? options.threads : std::min(cpu_info().logical_cores, kMaxThreads));
  std::vector<KernelCase> cases = all_kernel_cases(team.size());
  std::erase_if(cases, [&](const KernelCase& item) { return item.name.find(options.only) == std::string::npos; });
  if (cases.empty()) {
    return fail(Code::kNotFound, "there is no kernel '{}'; without --only all are measured, with their names",
                options.only);
  }
  const kernels::MachineLimits limits = kernels::measure_limits(team);
  if (!options.json) SYRINX_TRY_VOID(cli::print(header_text(limits, options.runs)));
  std::vector<Row> rows;
  for (const KernelCase& item : cases) {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped while measuring; the figures are not complete");
    rows.push_back(measure(item, team, limits, options.runs));
    if (!options.json) SYRINX_TRY_VOID(cli::print(row_text(rows.back())));
  }
  if (!options.json) return cli::print(least_text(rows));
  return cli::print(report_json(limits, rows, options.runs).dump() + "\n");
}

void add_bench(cli::Command& tree) {
  cli::Command bench = tree.add("bench", "Measure this machine and this build");
  bench.needs_command();
  add_bench_kokoro(bench);
  add_bench_pocket_tts(bench);
  add_bench_qwen_tts(bench);
  add_bench_steps(bench);
  add_bench_transducer(bench);
  add_bench_vad(bench);
  add_bench_whisper(bench);
  cli::Command command = bench.add("kernels", "The machine's limits, and each kernel's share of them");
  auto options = std::make_shared<BenchKernelsOptions>();
  command.option("--threads", options->threads, "Threads, 0 for all that this process may use").show_default();
  command.option("--runs", options->runs, "Samples of each kernel; the median counts").show_default();
  command.option("--only", options->only, "Only the kernels whose name contains this");
  command.flag("--json", options->json, "One JSON object on one line");
  command.examples("  syrinx bench kernels\n  SYRINX_CPU=AVX2 syrinx bench kernels --threads 1 --json");
  command.run([options] { return run_bench_kernels(*options); });
}

}  // namespace syrinx::bench
