// ISO/IEC 14496-12 (boxes, 4.2; tables of samples, 8.6 to 8.7; fragments, 8.8); Apple's QuickTime File Format.
#include "audio/guards/mp4_boxes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace syrinx {
namespace {

using Bytes = std::span<const std::byte>;
using Tag = std::string_view;

constexpr size_t kBoxHeaderBytes = 8, kLongBoxHeaderBytes = 16;
constexpr size_t kMaxDescriptionBytes = size_t{1} << 20;
constexpr size_t kMaxTags = 256;          // of iTunes: one of them tells how long the encoder's delay is
constexpr uint64_t kFewestInEntry = 160;  // sound of constant size: FFmpeg joins at least so many samples of a chunk

// A box by the box that it is in; every other one is hidden.  FFmpeg takes each of them wherever it finds it.
constexpr std::array<std::pair<Tag, Tag>, 33> kSeen = {
    {{"", "ftyp"},     {"", "moov"},     {"", "moof"},     {"", "mdat"},     {"moov", "mvhd"}, {"moov", "trak"},
     {"moov", "mvex"}, {"moov", "udta"}, {"mvex", "trex"}, {"trak", "tkhd"}, {"trak", "edts"}, {"trak", "mdia"},
     {"edts", "elst"}, {"mdia", "mdhd"}, {"mdia", "hdlr"}, {"mdia", "minf"}, {"minf", "stbl"}, {"stbl", "stsd"},
     {"stbl", "stts"}, {"stbl", "ctts"}, {"stbl", "stsc"}, {"stbl", "stsz"}, {"stbl", "stz2"}, {"stbl", "stco"},
     {"stbl", "co64"}, {"udta", "meta"}, {"meta", "hdlr"}, {"meta", "ilst"}, {"ilst", "----"}, {"moof", "traf"},
     {"traf", "tfhd"}, {"traf", "tfdt"}, {"traf", "trun"}}};
constexpr std::array<Tag, 12> kParents = {"moov", "mvex", "trak", "edts", "mdia", "minf",
                                          "stbl", "udta", "meta", "ilst", "moof", "traf"};
// FFmpeg looks for boxes in the description of a codec, too; these have no business there.
constexpr std::array<Tag, 23> kNotInDescription = {"moov", "trak", "mdia", "minf", "stbl", "edts", "elst", "stsz",
                                                   "stz2", "stts", "ctts", "stsc", "stco", "co64", "stss", "moof",
                                                   "traf", "trun", "sidx", "cmov", "tref", "sgpd", "sbgp"};

template <size_t size>
bool is_among(const std::array<Tag, size>& tags, Tag tag) {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

struct Box {
  Tag tag;
  size_t tag_at, body, end;
  size_t size() const { return end - body; }
};

struct Track {
  std::vector<Tag> tables;  // those that it has had
  bool is_sound = false, has_one_duration = false;
  uint64_t duration = 0, samples = 0, chunks = 0, largest_chunk = 0;
  uint64_t plays = 0;  // edits that are not silent
};

struct FragmentDefault {
  uint64_t track, sample_bytes;
};

class Mp4Walk {
 public:
  Mp4Walk(Bytes file, const std::string& name) : file_(file), name_(name) {}
  Status walk_file();
  std::vector<size_t> take_hidden() { return std::move(hidden_); }

 private:
  uint64_t number(size_t at, size_t bytes) const;
  Tag tag_at(size_t at) const { return {reinterpret_cast<const char*>(file_.data()) + at, 4}; }
  std::optional<Box> header(size_t at, size_t end) const;
  bool has_zeros(size_t at, size_t end) const;
  Status walk(Tag parent, size_t at, size_t end);
  Status see(Tag parent, const Box& box);
  Status see_leaf(const Box& box);
  Status see_table(const Box& box);
  Status see_sizes(const Box& box);
  Status see_edits(const Box& box);
  Status see_description(const Box& box) const;
  Status see_fragment(const Box& box);
  Status see_run(const Box& box);
  Status see_default(const Box& box);
  Status finish_track();
  Status count(uint64_t samples);
  Status count_bytes(uint64_t bytes);
  size_t first_child(const Box& box) const;

  tl::unexpected<Error> cut_off() const {
    return fail(Code::kDataLoss,
                "'{}' is cut off: it announces more than the {} bytes that it holds; get the whole file", name_,
                file_.size());
  }
  tl::unexpected<Error> broken(Tag tag) const {
    return fail(Code::kDataLoss, "'{}' is damaged: its box '{}' does not hold what it announces", name_, tag);
  }

  const Bytes file_;
  const std::string& name_;
  std::vector<size_t> hidden_;
  Track track_;
  uint64_t tracks_ = 0, fragments_ = 0, samples_ = 0, sample_bytes_ = 0, tags_ = 0;
  std::vector<FragmentDefault> defaults_;
  uint64_t run_sample_bytes_ = 0;  // where a run gives none
};

uint64_t Mp4Walk::number(size_t at, size_t bytes) const {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<uint64_t>(file_[at + i]);
  return value;
}

// The box at `at`, which has at least a header's bytes to `end`; nothing where its size is none.  It may reach beyond.
std::optional<Box> Mp4Walk::header(size_t at, size_t end) const {
  uint64_t size = number(at, 4);
  size_t header_bytes = kBoxHeaderBytes;
  if (size == 0) size = end - at;
  if (size == 1) {
    if (end - at < kLongBoxHeaderBytes) return std::nullopt;
    size = number(at + kBoxHeaderBytes, 8);
    header_bytes = kLongBoxHeaderBytes;
  }
  if (size < header_bytes) return std::nullopt;
  const size_t reach = size > end - at ? file_.size() + 1 : at + static_cast<size_t>(size);
  return Box{tag_at(at + 4), at + 4, at + header_bytes, reach};
}

bool Mp4Walk::has_zeros(size_t at, size_t end) const {
  return std::all_of(file_.begin() + static_cast<ptrdiff_t>(at), file_.begin() + static_cast<ptrdiff_t>(end),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

Status Mp4Walk::walk_file() {
  for (size_t at = 0; file_.size() - at >= kBoxHeaderBytes;) {
    if (number(at, 4) == 1 && file_.size() - at < kLongBoxHeaderBytes) return cut_off();
    const std::optional<Box> box = header(at, file_.size());
    if (!box) break;  // what follows is no box, and FFmpeg ends there as well
    if (box->end > file_.size()) return cut_off();
    SYRINX_TRY_VOID(see("", *box));
    at = box->end;
  }
  if (fragments_ * tracks_ > kMaxMp4Fragments)
    return fail(Code::kLimitExceeded, "'{}' has {} fragments of {} tracks, more than {} together; convert it to WAV",
                name_, fragments_, tracks_, kMaxMp4Fragments);
  return {};
}

// Sizes that two readers could understand differently are refused; zeros at the end are QuickTime's.
Status Mp4Walk::walk(Tag parent, size_t at, size_t end) {
  while (at < end) {
    if (end - at < kBoxHeaderBytes || number(at, 8) == 0) return has_zeros(at, end) ? Status() : broken(parent);
    const std::optional<Box> box = number(at, 4) == 0 ? std::nullopt : header(at, end);
    if (!box || box->end > end) return broken(parent);
    SYRINX_TRY_VOID(see(parent, *box));
    at = box->end;
  }
  return {};
}

Status Mp4Walk::see(Tag parent, const Box& box) {
  const std::pair place(parent, box.tag);
  const size_t first = first_child(box);
  const bool is_seen = std::find(kSeen.begin(), kSeen.end(), place) != kSeen.end();
  if (!is_seen || first > box.end) {
    hidden_.push_back(box.tag_at);
    return {};
  }
  if (parent == "meta" && box.tag == "hdlr") return {};
  if (!is_among(kParents, box.tag)) return see_leaf(box);
  if (box.tag == "moof") ++fragments_;
  if (box.tag == "traf") run_sample_bytes_ = 0;
  if (box.tag == "trak") {
    if (++tracks_ > kMaxMp4Tracks)
      return fail(Code::kLimitExceeded, "'{}' has more than {} tracks; leave its sound alone in it", name_,
                  kMaxMp4Tracks);
    track_ = {};
  }
  SYRINX_TRY_VOID(walk(box.tag, first, box.end));
  return box.tag == "trak" ? finish_track() : Status();
}

// Apple's `meta` has its boxes at once, that of the standard has four bytes before them; beyond the end for neither.
size_t Mp4Walk::first_child(const Box& box) const {
  if (box.tag != "meta") return box.body;
  for (const size_t skipped : {size_t{0}, size_t{4}})
    if (box.size() >= skipped + kBoxHeaderBytes && tag_at(box.body + skipped + 4) == "hdlr") return box.body + skipped;
  return box.end + 1;
}

Status Mp4Walk::see_leaf(const Box& box) {
  const Tag tag = box.tag;
  if (tag == "----" && ++tags_ > kMaxTags)
    return fail(Code::kLimitExceeded, "'{}' has more than {} tags of its own; take them out", name_, kMaxTags);
  if (tag == "trex") return see_default(box);
  if (tag == "tfhd") return see_fragment(box);
  if (tag == "trun") return see_run(box);
  constexpr std::array<Tag, 10> kOnce = {"hdlr", "elst", "stsd", "stts", "ctts",
                                         "stsc", "stsz", "stz2", "stco", "co64"};
  if (!is_among(kOnce, tag)) return {};
  // FFmpeg takes one of two alternative tables, not always the same one.
  const Tag kind = tag == "stz2" ? "stsz" : tag == "co64" ? "stco" : tag;
  if (std::find(track_.tables.begin(), track_.tables.end(), kind) != track_.tables.end())
    return fail(Code::kDataLoss, "'{}' is damaged: a track of it has '{}' twice", name_, kind);
  track_.tables.push_back(kind);
  if (tag == "elst") return see_edits(box);
  if (tag == "stsd") return see_description(box);
  if (kind == "stsz") return see_sizes(box);
  if (tag != "hdlr") return see_table(box);
  track_.is_sound = box.size() >= 12 && tag_at(box.body + 8) == "soun";
  return {};
}

Status Mp4Walk::see_table(const Box& box) {
  const size_t entry_bytes = box.tag == "stsc" ? 12 : box.tag == "stco" ? 4 : 8;
  if (box.size() < 8) return broken(box.tag);
  const uint64_t entries = number(box.body + 4, 4);
  const size_t first = box.body + 8;
  if (entries > (box.end - first) / entry_bytes) return broken(box.tag);
  if (box.tag == "stts" && entries == 1) {
    track_.has_one_duration = true;
    track_.duration = number(first + 4, 4);
  }
  if (box.tag == "stco" || box.tag == "co64") track_.chunks = entries;
  if (box.tag == "stsc")
    for (size_t i = 0; i < entries; ++i)
      track_.largest_chunk = std::max(track_.largest_chunk, number(first + i * entry_bytes + 4, 4));
  return {};
}

Status Mp4Walk::see_sizes(const Box& box) {
  if (box.size() < 12) return broken(box.tag);
  const uint64_t constant = box.tag == "stsz" ? number(box.body + 4, 4) : 0, samples = number(box.body + 8, 4);
  const size_t bits = box.tag == "stsz" ? 32 : static_cast<size_t>(number(box.body + 7, 1)), first = box.body + 12;
  track_.samples = samples;
  if (constant > 0) return count_bytes(samples * constant);  // of 32 bits each
  if (bits != 4 && bits != 8 && bits != 16 && bits != 32) return broken(box.tag);
  if (samples * bits > (box.end - first) * uint64_t{8}) return broken(box.tag);
  uint64_t sum = 0;
  for (size_t i = 0; i < samples; ++i) {
    if (bits == 4)
      sum += number(first + i / 2, 1) >> (i % 2 == 0 ? 4 : 0) & 15;
    else
      sum += number(first + i * (bits / 8), bits / 8);
  }
  return count_bytes(sum);
}

Status Mp4Walk::see_edits(const Box& box) {
  if (box.size() < 8) return broken(box.tag);
  const uint64_t edits = number(box.body + 4, 4);
  if (edits > kMaxMp4Edits)
    return fail(Code::kLimitExceeded, "'{}' has a track of {} edits, more than {}; convert it to WAV", name_, edits,
                kMaxMp4Edits);
  const size_t time_bytes = number(box.body, 1) == 1 ? 8 : 4, edit_bytes = 2 * time_bytes + 4;
  if (edits > (box.size() - 8) / edit_bytes) return broken(box.tag);
  const uint64_t silent = time_bytes == 8 ? ~uint64_t{0} : ~uint32_t{0};
  for (size_t i = 0; i < edits; ++i)
    track_.plays += number(box.body + 8 + i * edit_bytes + time_bytes, time_bytes) == silent ? 0 : 1;
  return {};
}

Status Mp4Walk::see_description(const Box& box) const {
  if (box.size() > kMaxDescriptionBytes)
    return fail(Code::kLimitExceeded, "'{}' describes a codec in {} bytes, more than {}; convert it to WAV", name_,
                box.size(), kMaxDescriptionBytes);
  for (size_t at = box.body; at + 4 <= box.end; ++at)
    if (is_among(kNotInDescription, tag_at(at)))
      return fail(Code::kDataLoss, "'{}' is damaged: a codec's description in it holds '{}'", name_, tag_at(at));
  return {};
}

// FFmpeg makes an entry for each sample, or for parts of chunks where all samples of a sound have a duration of 1,
// which is also what becomes of one that is not a number of 31 bits.  Each edit may play all of them once more.
Status Mp4Walk::finish_track() {
  const uint64_t parts = track_.chunks * (track_.largest_chunk / kFewestInEntry + 1);
  uint64_t entries = track_.samples;
  if (track_.has_one_duration) entries = track_.duration == 1 && track_.is_sound ? parts : std::max(entries, parts);
  return count(entries * std::max(track_.plays, uint64_t{1}));
}

Status Mp4Walk::see_default(const Box& box) {
  if (box.size() < 20) return broken(box.tag);
  if (defaults_.size() == kMaxMp4Tracks)
    return fail(Code::kLimitExceeded, "'{}' has fragments of more than {} tracks; leave its sound alone in it", name_,
                kMaxMp4Tracks);
  defaults_.push_back({number(box.body + 4, 4), number(box.body + 16, 4)});
  return {};
}

Status Mp4Walk::see_fragment(const Box& box) {
  if (box.size() < 8) return broken(box.tag);
  const uint64_t flags = number(box.body + 1, 3), track = number(box.body + 4, 4);
  const auto known = std::find_if(defaults_.begin(), defaults_.end(),
                                  [track](const FragmentDefault& entry) { return entry.track == track; });
  run_sample_bytes_ = known == defaults_.end() ? 0 : known->sample_bytes;
  if ((flags & 0x10) == 0) return {};
  const size_t before = ((flags & 0x1) != 0 ? 8 : 0) + ((flags & 0x2) != 0 ? 4 : 0) + ((flags & 0x8) != 0 ? 4 : 0);
  if (box.size() < 8 + before + 4) return broken(box.tag);
  run_sample_bytes_ = number(box.body + 8 + before, 4);
  return {};
}

Status Mp4Walk::see_run(const Box& box) {
  if (box.size() < 8) return broken(box.tag);
  const uint64_t flags = number(box.body + 1, 3), samples = number(box.body + 4, 4);
  const size_t before = 8 + ((flags & 0x1) != 0 ? 4 : 0) + ((flags & 0x4) != 0 ? 4 : 0);
  size_t sample_bytes = 0;
  for (const uint64_t field : {0x100u, 0x200u, 0x400u, 0x800u}) sample_bytes += (flags & field) != 0 ? 4 : 0;
  if (box.size() < before || samples * sample_bytes > box.size() - before) return broken(box.tag);
  SYRINX_TRY_VOID(count(samples));
  if ((flags & 0x200) == 0) return count_bytes(samples * std::max(run_sample_bytes_, uint64_t{1}));
  uint64_t sum = 0;
  const size_t first = box.body + before + ((flags & 0x100) != 0 ? 4 : 0);
  for (size_t i = 0; i < samples; ++i) sum += number(first + i * sample_bytes, 4);
  return count_bytes(sum);
}

Status Mp4Walk::count(uint64_t samples) {
  samples_ += samples;
  if (samples_ > kMaxMp4Samples)
    return fail(Code::kLimitExceeded,
                "'{}' has more than {} samples in its tracks and their edits; convert it to WAV, or cut it", name_,
                kMaxMp4Samples);
  return {};
}

// Adds to a sum that is within the file's size; `bytes` is at most 32 bits times 32 bits, so it cannot overflow.
Status Mp4Walk::count_bytes(uint64_t bytes) {
  if (bytes > file_.size() - sample_bytes_)
    return fail(Code::kDataLoss, "'{}' is damaged: its tracks announce more than the {} bytes that it holds", name_,
                file_.size());
  sample_bytes_ += bytes;
  return {};
}

}  // namespace

Result<std::vector<size_t>> check_mp4_boxes(std::span<const std::byte> file, const std::string& name) {
  Mp4Walk walk(file, name);
  SYRINX_TRY_VOID(walk.walk_file());
  return walk.take_hidden();
}

}  // namespace syrinx
