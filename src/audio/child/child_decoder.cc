#include "audio/child/child_decoder.h"

#include <mutex>
#include <optional>
#include <utility>

#include "audio/child/decode_talk.h"
#include "audio/child/decoder_process.h"
#include "audio/child/decoder_program.h"

namespace syrinx {
namespace {

constexpr int64_t kLeastAllMs = 60000;
constexpr int kSpareMs = 2000;
constexpr int64_t kBytesPerMs = 20;  // of a file; the slowest known is AMR on a small ARM, above 50

struct Spare {
  std::mutex mutex;
  bool is_kept = false;
  std::optional<DecoderProcess> child;
};

Spare& spare() {
  static Spare kept;
  return kept;
}

Result<DecoderProcess> start() {
  SYRINX_TRY(std::string program, find_decoder_program());
  return DecoderProcess::start({std::move(program)});
}

std::optional<DecoderProcess> take_spare() {
  const std::lock_guard lock(spare().mutex);
  std::optional<DecoderProcess> taken;
  if (spare().child) taken.emplace(std::move(*spare().child));
  spare().child.reset();
  return taken;
}

Status make_ready(DecoderProcess& child) { return child.has_answered() ? Status() : await_ready(child); }

// Starts it where it is kept and none waits.
Status fill_spare() {
  const std::lock_guard lock(spare().mutex);
  if (!spare().is_kept || spare().child) return {};
  SYRINX_TRY(DecoderProcess child, start());
  spare().child.emplace(std::move(child));
  return {};
}

}  // namespace

Status decode_in_child(std::span<const std::byte> file, SoundContainer container, const std::string& name,
                       MonoMixer& mixer) {
  Status wanted;
  const auto ask = [&] { return wanted = mixer.look({}); };
  std::optional<DecoderProcess> child = take_spare();
  if (child && !child->is_running()) child.reset();  // one that waits may have been ended for want of memory
  if (!child) {
    auto started = start();
    if (!started) return tl::unexpected(no_decoder(container, name, started.error()));
    child.emplace(std::move(*started));
  }
  child->set_patience({.all_ms = kLeastAllMs + static_cast<int64_t>(file.size()) / kBytesPerMs});
  child->ask_while_waiting(ask);
  if (const Status ready = make_ready(*child); !ready)
    return wanted ? tl::unexpected(no_decoder(container, name, ready.error())) : wanted;
  Status decoded = decode_by(*child, {file, container, name, mixer, /*is_ready=*/true});
  child.reset();
  static_cast<void>(fill_spare());  // the next decoding tries again, and says why not
  return wanted ? decoded : wanted;
}

Status keep_spare_decoder() {
  {
    const std::lock_guard lock(spare().mutex);
    spare().is_kept = true;
  }
  SYRINX_TRY_VOID(fill_spare());
  const std::lock_guard lock(spare().mutex);
  if (!spare().child || !spare().child->has_answer_within(kSpareMs)) return {};  // it may still come
  Status ready = make_ready(*spare().child);
  if (!ready) spare().child.reset();
  return ready;
}

void drop_spare_decoder() {
  const std::lock_guard lock(spare().mutex);
  spare().is_kept = false;
  spare().child.reset();
}

}  // namespace syrinx
