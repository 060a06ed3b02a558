// How long the result of a chunk takes in a cache-aware transducer, from its last sample to its labels, and what each
// principle of the hot path is worth there (spec transducer-asr.md, section 5.6).
//
//   transducer_latency --model FILE [--chunks 2000] [--streams 24]
//   transducer_latency --model FILE --idle SECONDS [--rounds 3] [--burst 64] [--begin FORM] [--whole]
//   transducer_latency --model FILE --idle SECONDS --first cold|warm
//
// all with [--precision int8] [--threads 2] [--look-ahead FRAMES] [--cache FOLDER], those after SECONDS of idleness
// also with [--heartbeat] [--neighbour] [--keep FILE].  A row gives p50, p99 and p99.9 in microseconds, each as a
// multiple of p50, and how many there were.
//
// The first form: --chunks chunks, each begun as soon as the one before is done, and an empty loop of their length
// beside them: what the machine itself adds.  Under each principle stands what the program does, then what it does
// without it, measured in turns.
//
// The second: --rounds times nothing for --idle seconds, then --burst chunks 80 ms apart, or however long they are;
// after 0 s they are back to back.  Each is timed from the moment at which it was due.  The forms that lack a principle
// take turns with the program's, another one being the first of each burst, --begin of the first one; with --whole all
// are the program's, features included.
//
// The third: one chunk alone, the first since the model was loaded, which ran nothing before (cold) or what a program
// runs that is to be ready (warm).
//
// --heartbeat: the engine's, which works a little while nothing is asked of it (principle 3).  --neighbour: beside a
// process that goes through memory on every core.  --keep: a line for each chunk is added to the file: its place in its
// burst, its form, microseconds.
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "latency_rows.h"
#include "noisy_neighbour.h"
#include "transducer_path.h"

namespace {

using namespace syrinx;
using namespace syrinx::bench;

struct Arguments {
  std::string model, precision = "int8", cache, look_ahead, idle, first, keep;
  size_t threads = 2, chunks = 2000, streams = 24, rounds = 3, burst = 64, begin = 0;
  bool heartbeat = false, neighbour = false, whole = false;

  double idle_s() const { return std::atof(idle.c_str()); }
  bool is_sound() const {
    const bool first_is_sound = first.empty() || ((first == "cold" || first == "warm") && !idle.empty());
    return !model.empty() && parse_precision(precision) && first_is_sound;
  }
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments out;
  const std::pair<std::string_view, std::string*> texts[] = {{"--model", &out.model}, {"--precision", &out.precision},
                                                             {"--cache", &out.cache}, {"--look-ahead", &out.look_ahead},
                                                             {"--idle", &out.idle},   {"--keep", &out.keep},
                                                             {"--first", &out.first}};
  const std::pair<std::string_view, bool*> switches[] = {
      {"--heartbeat", &out.heartbeat}, {"--neighbour", &out.neighbour}, {"--whole", &out.whole}};
  const std::pair<std::string_view, size_t*> counts[] = {{"--threads", &out.threads}, {"--chunks", &out.chunks},
                                                         {"--streams", &out.streams}, {"--rounds", &out.rounds},
                                                         {"--burst", &out.burst},     {"--begin", &out.begin}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto named = [&](const auto& option) { return option.first == name; };
    if (const auto on = std::ranges::find_if(switches, named); on != std::end(switches)) {
      *on->second = true;
      continue;
    }
    const auto text = std::ranges::find_if(texts, named);
    const auto count = std::ranges::find_if(counts, named);
    if (++i == argc || (text == std::end(texts) && count == std::end(counts))) return std::nullopt;
    if (text != std::end(texts)) *text->second = argv[i];
    if (count != std::end(counts)) *count->second = static_cast<size_t>(std::max(1, std::atoi(argv[i])));
  }
  if (!out.is_sound()) return std::nullopt;
  return out;
}

// Does nothing for so long, without giving its core away.
void spin(double us) {
  const SteadyClock::time_point from = SteadyClock::now();
  while (microseconds(from, SteadyClock::now()) < us) {
  }
}

void compare_layouts(Path& path, size_t chunks) {
  std::vector<double> alone[2], behind[2], whole[2];
  const Form forms[] = {Form::kOneBlock, Form::kScattered};
  for (size_t n = 0; n < 3 * path.streams(); ++n) {
    path.encode(n % path.streams());
    for (const Form form : forms) path.decode(n % path.streams(), form);
  }
  const bool same = path.layouts_agree();
  size_t stream = 0;
  for (size_t i = 0; i < chunks; ++i, stream = (stream + 1) % path.streams()) {
    for (size_t form = 0; form < 2; ++form) {
      const double encoded = timed([&] { path.encode(stream); });
      const double decoded = timed([&] { path.decode(stream, forms[form]); });
      behind[form].push_back(decoded);
      whole[form].push_back(encoded + decoded);
    }
  }
  for (size_t i = 0; i < 5 * chunks; ++i, stream = (stream + 1) % path.streams())
    for (size_t form = 0; form < 2; ++form) alone[form].push_back(timed([&] { path.decode(stream, forms[form]); }));
  std::printf("4 states of %zu streams in turn, a label in each frame\n", path.streams());
  print_row("decoder alone, state in one block", alone[0]);
  print_row("  scattered over the heap", alone[1]);
  print_row("decoder behind the encoder, state in one block", behind[0]);
  print_row("  scattered over the heap", behind[1]);
  print_row("encoder and decoder, state in one block", whole[0]);
  print_row("  scattered over the heap", whole[1]);
  std::printf("  the same bits: %s\n", same ? "yes" : "no");
}

// Times a call through the table of targets, work included, and a call that asks the processor first.
void compare_dispatch(Path& path) {
  constexpr int kCalls = 1000000, kQuestions = 1000;
  const float one = 1.0f;
  size_t sum = 0;
  const auto calls = [&](int count) {
    return timed([&] {
             for (int i = 0; i < count; ++i) sum += kernels::argmax({&one, 1}).index;
           }) /
           count;
  };
  const double resolved = calls(kCalls);
  double looked_up = 0;
  {
    const TargetLookup lookup(true);
    looked_up = calls(kQuestions);
  }
  const unsigned long before = TargetLookup::asked();
  path.hear(Form::kLookUpTargets);
  std::printf(
      "5 a call of a kernel through the table of targets %.4f us, asking the processor %.2f us%s; a chunk has %lu\n",
      resolved, looked_up, sum == 0 ? "" : "?", TargetLookup::asked() - before);
}

void measure(Path& path, size_t chunks) {
  std::vector<double> times, empty;
  for (size_t i = 0; i < chunks; ++i) times.push_back(timed([&] { path.chunk(); }));
  const double length = median(times);
  for (size_t i = 0; i < chunks; ++i) empty.push_back(timed([&] { spin(length); }));
  print_row("chunk: features, encoder, decoder", times);
  print_row("empty loop of the same length", empty);
  path.encode(0);
  const auto as = [&](Form form) { return [&path, form] { path.decode(0, form); }; };
  for (int i = 0; i < 50; ++i) path.decode(0, Form::kProgram);
  std::printf("the decoder alone on a chunk's frames\n");
  compare("1 faults gathered, looked at once", as(Form::kProgram), "  looked for after every frame",
          as(Form::kCheckEachFrame), 5 * chunks);
  compare("2 compiled for its kind of head", as(Form::kProgram), "  asks for the kind at each decision",
          as(Form::kAskForKind), 5 * chunks);
  compare("6 scratch made once", as(Form::kProgram), "  made anew for each chunk", as(Form::kNewScratch), 5 * chunks);
  compare_layouts(path, chunks);
  compare_dispatch(path);
}

// A chunk behind an idle while.
struct Sample {
  size_t index;  // in its burst
  Form form;
  double us;
};

std::vector<Sample> idle_rounds(Path& path, const Arguments& arguments) {
  const auto apart =
      std::chrono::microseconds(arguments.idle_s() > 0 ? static_cast<int64_t>(path.chunk_ms() * 1e3) : 0);
  std::optional<Heartbeat> heartbeat;
  if (arguments.heartbeat) heartbeat.emplace([&] { return path.beat(); });
  std::vector<Sample> out;
  for (size_t round = 0; round < arguments.rounds; ++round) {
    SteadyClock::time_point due =
        SteadyClock::now() + std::chrono::microseconds(static_cast<int64_t>(arguments.idle_s() * 1e6));
    for (size_t i = 0; i < arguments.burst; ++i) {
      const Form form = arguments.whole ? Form::kChunk : kForms[(arguments.begin + round + i) % std::size(kForms)].form;
      std::this_thread::sleep_until(due);
      if (apart.count() == 0) due = SteadyClock::now();
      path.hear(form);
      out.push_back({i, form, microseconds(due, SteadyClock::now())});
      if (heartbeat) heartbeat->note();
      // A form that takes longer is not to make the next one late.
      due = std::max(due + apart, SteadyClock::now());
    }
  }
  return out;
}

Status keep(const std::vector<Sample>& samples, const std::string& file) {
  std::ofstream out(file, std::ios::app);
  for (const Sample& sample : samples)
    out << sample.index << ' ' << kForms[static_cast<size_t>(sample.form)].key << ' ' << sample.us << '\n';
  if (!out.flush()) return fail(Code::kIo, "'{}' cannot be written; give --keep a file that can", file);
  return {};
}

void print_samples(const std::vector<Sample>& samples, const Arguments& arguments) {
  std::printf("after %g s of idleness%s%s\n", arguments.idle_s(), arguments.heartbeat ? ", heartbeat" : "",
              arguments.neighbour ? ", beside a noisy neighbour" : "");
  const auto row = [&](const char* name, const auto& wanted) {
    std::vector<double> us;
    for (const Sample& sample : samples)
      if (wanted(sample)) us.push_back(sample.us);
    print_row(name, std::move(us));
  };
  row("first chunk", [](const Sample& sample) { return sample.index == 0; });
  row("all chunks, whatever their form", [](const Sample&) { return true; });
  for (const FormName& form : kForms) row(form.name, [&](const Sample& sample) { return sample.form == form.form; });
}

Status measure_idle(Path& path, const Arguments& arguments) {
  std::vector<Sample> samples;
  if (arguments.first.empty()) {
    for (int i = 0; i < 24; ++i)
      for (const FormName& form : kForms) path.hear(form.form);
    samples = idle_rounds(path, arguments);
  } else {
    if (arguments.first == "warm") path.warm_up();
    const auto due = SteadyClock::now() + std::chrono::microseconds(static_cast<int64_t>(arguments.idle_s() * 1e6));
    std::this_thread::sleep_until(due);
    samples.push_back({0, Form::kChunk, timed([&] { path.hear(Form::kChunk); })});
  }
  print_samples(samples, arguments);
  if (arguments.keep.empty()) return {};
  return keep(samples, arguments.keep);
}

Status run(const Arguments& arguments) {
  SYRINX_TRY(const Precision precision, parse_precision(arguments.precision));
  SYRINX_TRY(const auto model,
             transducer::Model::load(arguments.model, {.precision = precision, .cache_folder = arguments.cache}));
  std::optional<int> look_ahead;
  if (!arguments.look_ahead.empty()) look_ahead = std::atoi(arguments.look_ahead.c_str());
  SYRINX_TRY(const auto context, transducer::choose_context(model->config().encoder, look_ahead));
  if (!ChunkedFrames::fits(*model) || !model->decoder()->has_transducer())
    return fail(Code::kUnsupported, "'{}' is no cache-aware transducer", arguments.model);
  Path path(model, context, static_cast<int>(arguments.threads), arguments.idle.empty() ? arguments.streams : 1);
  std::printf("%s, %zu threads, chunks of %.0f ms; us: p50 p99 p99.9, p99 / p50, p99.9 / p50\n",
              precision_name(precision), arguments.threads, path.chunk_ms());
  if (!arguments.idle.empty()) return measure_idle(path, arguments);
  std::vector<double> begin;
  for (int i = 0; i < 3; ++i) begin.push_back(timed([&] { path.chunk(); }));
  std::printf("  first, second, third chunk without warm-up     %9.1f %9.1f %9.1f\n", begin[0], begin[1], begin[2]);
  measure(path, arguments.chunks);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  if (!arguments) {
    std::fprintf(stderr,
                 "usage: transducer_latency --model FILE [--precision int8] [--cache FOLDER] [--threads 2]\n"
                 "         [--look-ahead FRAMES] [--chunks 2000] [--streams 24]\n"
                 "       ... --idle SECONDS [--rounds 3] [--burst 64] [--begin FORM] [--whole] [--heartbeat] "
                 "[--neighbour] [--keep FILE]\n"
                 "       ... --idle SECONDS --first cold|warm [--neighbour] [--keep FILE]\n");
    return 2;
  }
  std::optional<NoisyNeighbour> neighbour;
  if (arguments->neighbour) {
    neighbour.emplace(std::thread::hardware_concurrency());
    if (!neighbour->there()) {
      std::fprintf(stderr, "transducer_latency: the system makes no process for the neighbour; end others first\n");
      return 1;
    }
  }
  const Status status = run(*arguments);
  if (status) return 0;
  std::fprintf(stderr, "transducer_latency: %s\n", status.error().message.c_str());
  return 1;
}
