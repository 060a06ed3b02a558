// State of a stream's encoder between its chunks (spec transducer-asr.md, section 3.6): the keys and values of the last
// frames of each block, in rings, the rows that the convolutions still read, and the rows that the subsampling holds.
//
// Where each block sees frames ahead (ContextStyle::kRegular), it also holds back that many frames until it has those:
// a stream's frames come `right` times the blocks later than their sound, and some are still held when that ends.
//
// Belongs to one stream; one thread at a time.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/result.h"
#include "models/transducer/config.h"
#include "models/transducer/subsampling.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace syrinx::transducer {

// How a stream's first convolutions treat the border between two chunks.
enum class StreamMode : uint8_t {
  kExact,       // as in the whole recording: each keeps the rows that it still reads
  kNemoCompat,  // as the maker's steps: a frame's features and one before are run through again (section 3.6); not
                // where blocks see ahead, as those steps run all frames ahead through again
};

// kUnsupported for a model that was not trained to be streamed chunk by chunk, kInvalidArgument for a context that is
// none of the checkpoint's.
Status check_streaming(const EncoderConfig& config, AttentionContext context);

// The context of a stream that looks so many frames ahead: the checkpoint's first one of that look-ahead, or its first
// of all where none is asked for.  kUnsupported as check_streaming(); kInvalidArgument for another look-ahead than the
// checkpoint's, which the sentence names.
Result<AttentionContext> choose_context(const EncoderConfig& config, std::optional<int> look_ahead);

// Frames of features that a chunk takes: 1 + 8 R the first one, then 8 + 8 R, where R is the context's look-ahead.
size_t first_chunk_mels(const EncoderConfig& config, AttentionContext context);
size_t chunk_mels(const EncoderConfig& config, AttentionContext context);

class EncoderState {
 public:
  // Rows that a block's gates move on by before they are moved back to the front.
  static constexpr size_t kGatedSlide = 64;

  // check_streaming() holds.
  EncoderState(const EncoderConfig& config, AttentionContext context, StreamMode mode);

  // As it was made.
  void reset();
  // The other must be of the same model, context and mode.
  void copy_from(const EncoderState& other);
  // Prompt row of the stream, for models with EncoderConfig::prompt: a row below its count.  At first the fallback.
  void set_prompt(size_t row);
  size_t frames() const { return reached(position_, layers_); }  // that the stream has given
  size_t heard() const { return reached(position_, 0); }         // that its sound has made
  bool started() const { return started_; }
  // It has ended and given all frames.  Until then, steps without features go on giving them behind the last chunk.
  bool finished() const { return end_ != kNoEnd && frames() == end_; }
  StreamMode mode() const { return mode_; }
  size_t size_bytes() const;

 private:
  friend class StreamEncoder;
  static constexpr size_t kNoEnd = std::numeric_limits<size_t>::max();

  // Frames that have come through so many blocks where `position` have been heard, counting on behind the end.
  size_t reached(size_t position, size_t blocks) const {
    return std::min(end_, position - std::min(position, blocks * ahead_));
  }

  const StreamMode mode_;
  const size_t width_, layers_, kernel_;
  const size_t prompts_;
  const size_t fallback_;
  size_t prompt_ = fallback_;
  const size_t chunk_, left_;        // frames
  const size_t ahead_;               // frames that each block waits for
  const size_t ring_;                // chunk_ + left_ + ahead_
  const size_t key_stride_;          // between rows of keys
  const size_t gated_capacity_;      // rows of a block's gates
  Buffer<float> keys_;               // [layers, d, key_stride]: transposed, a ring of columns
  Buffer<float> values_;             // [layers, ring, d]
  Buffer<float> gated_;              // [layers, capacity, d]: from gated_first_ on kernel - 1 rows of the past
  Buffer<float> held_;               // [layers, ahead, 2 d]: rows of x and of q whose successors have not come
  std::vector<size_t> gated_first_;  // of each block
  size_t position_ = 0;              // frames heard; behind the end, as if there were more
  size_t end_ = kNoEnd;              // frames of the whole stream
  bool started_ = false;
  SubsamplingState subsampling_;
  Buffer<float> mels_;  // kNemoCompat: [factor + 1 + chunk, mels], the past first
};

}  // namespace syrinx::transducer
