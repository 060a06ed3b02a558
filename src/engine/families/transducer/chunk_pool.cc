#include "engine/families/transducer/chunk_pool.h"

#include <algorithm>
#include <memory>

#include "models/transducer/config_limits.h"

namespace syrinx {
namespace {

size_t frames_of(transducer::AttentionContext context) { return static_cast<size_t>(context.right) + 1; }

// Of no more than the memory allows that a step may take, whatever the checkpoint's sizes.
size_t streams_of(const transducer::Model& model, transducer::AttentionContext context, size_t streams) {
  const size_t values = transducer::stream_values(model.config().encoder, context);
  const size_t fitting = std::min(ChunkPool::kStepFrames / frames_of(context), transducer::kMaxStepValues / values);
  return std::clamp<size_t>(fitting, 1, streams);
}

}  // namespace

ChunkPool::ChunkPool(const transducer::Model& model, nn::Runner& runner, StepQueue& queue,
                     transducer::AttentionContext context, const transducer::GreedyOptions& options, size_t streams)
    : Rounds(queue, streams),
      chunk_frames_(frames_of(context)),
      encoder_(model.encoder(), runner, context, streams_of(model, context, streams)),
      decoder_(model.decoder(), runner, options, streams_of(model, context, streams), chunk_frames_),
      outputs_(step_streams()) {
  round_.reserve(step_streams());
  inputs_.reserve(step_streams());
  jobs_.reserve(step_streams());
  decoded_.reserve(step_streams());
}

void ChunkPool::hear(Chunk& chunk) {
  ChunkRequest request(chunk);
  serve(request);
}

void ChunkPool::choose(std::vector<Request*>& waiting, std::vector<Request*>& round) {
  const auto end = waiting.begin() + static_cast<ptrdiff_t>(std::min(step_streams(), waiting.size()));
  round.assign(waiting.begin(), end);
  waiting.erase(waiting.begin(), end);
}

// The step must be over by the time of the chunk that is due first; chunks without a time do not count.
void ChunkPool::make(std::span<Request* const> round, StepQueue::Turn& turn) {
  round_.clear();
  int64_t first_ns = kNeverDue;
  for (Request* const request : round) {
    round_.push_back(static_cast<ChunkRequest*>(request));
    if (request->due_ns > kDueAtOnce) first_ns = std::min(first_ns, request->due_ns);
  }
  turn.set_deadline(first_ns);
  step();
}

void ChunkPool::step() {
  inputs_.clear();
  for (const ChunkRequest* const request : round_)
    inputs_.push_back({request->chunk->encoder, request->chunk->mels, request->chunk->last});
  const View<const float, 2> all = encoder_.step(inputs_, outputs_);
  for (size_t n = 0; n < round_.size(); ++n) {
    Chunk& chunk = *round_[n]->chunk;
    const transducer::StreamEncoder::Output& own = outputs_[n];
    chunk.rows = std::max(std::min(own.rows, chunk.end), chunk.first) - chunk.first;
    chunk.decoded = 0;
    for (size_t t = 0; t < chunk.rows; ++t)
      std::copy_n(all.row(own.first_row + chunk.first + t), all.extent(1), chunk.frames.row(t));
  }
  while (decode_some()) {
  }
  steps_.fetch_add(1, std::memory_order_relaxed);
  chunks_.fetch_add(round_.size(), std::memory_order_relaxed);
}

// The next frames of every chunk that has some; whether there were any.
bool ChunkPool::decode_some() {
  jobs_.clear();
  decoded_.clear();
  for (ChunkRequest* const request : round_) {
    const Chunk& chunk = *request->chunk;
    const size_t rows = std::min(chunk.at_once, chunk.rows - chunk.decoded);
    if (rows == 0 || request->thrown != nullptr) continue;
    const View<const float, 2> frames(chunk.frames.row(chunk.decoded), {rows, chunk.frames.extent(1)},
                                      {chunk.frames.stride(0), 1});
    jobs_.push_back({chunk.head, frames, chunk.found});
    decoded_.push_back(request);
  }
  if (jobs_.empty()) return false;
  decoder_.decode(jobs_);
  for (size_t n = 0; n < decoded_.size(); ++n) {
    Chunk& chunk = *decoded_[n]->chunk;
    chunk.decoded += jobs_[n].frames.extent(0);
    if (chunk.sink == nullptr) continue;
    try {
      (*chunk.sink)(jobs_[n].frames);
    } catch (...) {
      decoded_[n]->thrown = std::current_exception();
    }
  }
  return true;
}

void ChunkPool::warm_up(const transducer::Model& model) {
  // The most rows for which the kernels have a block of their own.
  constexpr size_t kBlockRows = 8;
  const transducer::EncoderConfig& config = model.config().encoder;
  const size_t first_mels = first_chunk_mels(config, context()), mels = chunk_mels(config, context());
  const size_t streams = step_streams();
  nn::Plane silence, frames;
  silence.prepare(std::max(first_mels, mels), config.mels, kernels::Storage::kF32);
  frames.prepare(chunk_frames_, config.width, kernels::Storage::kF32);
  std::vector<transducer::EncoderState> encoders;
  std::vector<transducer::HeadState> heads;
  std::vector<transducer::Emission> found;
  for (size_t n = 0; n < streams; ++n) {
    encoders.emplace_back(config, context(), transducer::StreamMode::kExact);
    heads.emplace_back(*model.decoder());
  }
  std::vector<Chunk> chunks(streams);
  std::vector<std::unique_ptr<ChunkRequest>> requests;
  requests.reserve(streams);
  for (Chunk& chunk : chunks) requests.push_back(std::make_unique<ChunkRequest>(chunk));
  const auto run = [&](size_t count, size_t rows, bool last) {
    const StepQueue::Turn turn(queue());
    round_.clear();
    for (size_t n = 0; n < count; ++n) {
      chunks[n] = {.encoder = &encoders[n],
                   .mels = {silence.f32(), {rows, config.mels}, {silence.stride(), 1}},
                   .last = last,
                   .head = &heads[n],
                   .found = &found,
                   .frames = frames.view()};
      round_.push_back(requests[n].get());
    }
    step();
  };
  run(streams, first_mels, false);
  while (encoders.front().frames() == 0) run(streams, mels, false);  // until what each block waits for is there
  for (size_t count = 1; count <= std::min(streams, kBlockRows); ++count) run(count, mels, false);
  run(streams, mels, false);
  run(streams, 1, true);
}

}  // namespace syrinx
