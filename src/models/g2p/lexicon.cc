#include "models/g2p/lexicon.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/scoped_file.h"
#include "models/g2p/flat_json.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

// Layout: Header, then Record[gold + silver] (each tier sorted by key), then the text of keys and values.
// Little-endian, as all machines that we build for.
struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t key;       // hash of the sources
  uint64_t checksum;  // hash of all that follows the header
  std::array<uint32_t, 2> counts;
  uint64_t text_bytes;
};
struct Record {
  uint32_t offset;  // into the text: the key, then the value
  uint16_t key_bytes;
  uint16_t value_bytes;
};
constexpr std::array<char, 8> kMagic = {'S', 'Y', 'R', 'X', 'L', 'E', 'X', '\n'};
constexpr size_t kMaxWords = size_t{1} << 21;

// Not cryptographic: it tells versions of a file and damage apart, at memory speed.
uint64_t fast_hash(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  std::array<uint64_t, 4> lanes = {seed, seed ^ 0xD1B54A32D192ED03u, seed + kMultiplier, ~seed};
  const auto mix = [](uint64_t state, uint64_t value) {
    state = (state ^ value) * kMultiplier;
    return state ^ state >> 29;
  };
  size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32) {
    for (size_t lane = 0; lane < 4; ++lane) {
      uint64_t value = 0;
      std::memcpy(&value, bytes.data() + i + lane * 8, 8);
      lanes[lane] = mix(lanes[lane], value);
    }
  }
  for (; i < bytes.size(); ++i) lanes[i % 4] = mix(lanes[i % 4], static_cast<unsigned char>(bytes[i]) + 1u);
  uint64_t hash = bytes.size();
  for (const uint64_t lane : lanes) hash = mix(hash, lane);
  return hash;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Pair {
  std::string key;
  std::string value;
};

Result<std::vector<Pair>> read_source(std::string_view json, std::string_view name) {
  std::vector<Pair> pairs;
  const auto visit = [&](std::string_view key, std::string_view inner, std::string_view value,
                         bool is_string) -> Status {
    if (!is_string) {
      if (value == "null") return {};
      return fail(Code::kDataLoss, "'{}' gives '{}' no pronunciation but {}", name, key, value);
    }
    if (key.empty() || key.size() > 255 || value.size() > 255 || value.find('\x01') != std::string_view::npos) {
      return fail(Code::kDataLoss, "'{}' has an entry of impossible length near '{}'", name, key.substr(0, 40));
    }
    if (pairs.size() >= kMaxWords) return fail(Code::kLimitExceeded, "'{}' has more than {} words", name, kMaxWords);
    if (inner.empty()) {
      pairs.push_back({std::string(key), std::string(value)});
      return {};
    }
    if (pairs.empty() || pairs.back().key != key) pairs.push_back({std::string(key), {}});
    std::string& stored = pairs.back().value;
    stored += '\x01';
    stored += inner;
    stored += '\x02';
    stored += value;
    if (stored.size() > 4096) return fail(Code::kDataLoss, "'{}' has too many variants of '{}'", name, key);
    return {};
  };
  if (!json.empty()) SYRINX_TRY_VOID(read_flat_json(json, name, visit));
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.key < b.key; });
  const auto same = [](const Pair& a, const Pair& b) { return a.key == b.key; };
  pairs.erase(std::unique(pairs.begin(), pairs.end(), same), pairs.end());
  return pairs;
}

// The cache may be read-only or full: then there is no compiled file, and the next start compiles again.
void try_to_save(const std::string& path, std::string_view bytes) {
  auto file = ScopedFile::create(path);
  if (file && file->write(bytes)) static_cast<void>(file->commit());
}

void make_folders(const std::string& path) {
  for (size_t i = 1; i <= path.size(); ++i) {
    if (i == path.size() || path[i] == '/') ::mkdir(path.substr(0, i).c_str(), 0755);
  }
}

std::string capitalised(std::string_view lower) {
  std::string out(lower);
  if (!out.empty()) out[0] = text::ascii_upper(out[0]);
  return out;
}

}  // namespace

std::optional<std::string_view> Entry::find(std::string_view tag) const {
  for (size_t i = 0; i < stored_.size() && stored_[i] == '\x01';) {
    const size_t middle = stored_.find('\x02', i);
    if (middle == std::string_view::npos) return std::nullopt;
    const size_t end = std::min(stored_.find('\x01', middle), stored_.size());
    if (stored_.substr(i + 1, middle - i - 1) == tag) return stored_.substr(middle + 1, end - middle - 1);
    i = end;
  }
  return std::nullopt;
}

std::string_view Entry::default_value() const {
  if (!by_tag()) return stored_;
  return find("DEFAULT").value_or(std::string_view());
}

uint64_t Lexicon::source_key(std::string_view gold_json, std::string_view silver_json) {
  return fast_hash(silver_json, fast_hash(gold_json, kLexiconVersion));
}

Result<Lexicon> Lexicon::compile(std::string_view gold_json, std::string_view silver_json, std::string_view name) {
  SYRINX_TRY(const std::vector<Pair> gold, read_source(gold_json, name));
  SYRINX_TRY(const std::vector<Pair> silver, read_source(silver_json, name));
  Header header{kMagic, kLexiconVersion, sizeof(Header), source_key(gold_json, silver_json), 0, {}, 0};
  header.counts = {static_cast<uint32_t>(gold.size()), static_cast<uint32_t>(silver.size())};
  std::string bytes(sizeof(Header) + (gold.size() + silver.size()) * sizeof(Record), '\0');
  std::string words;
  size_t at = sizeof(Header);
  for (const auto* tier : {&gold, &silver}) {
    for (const Pair& pair : *tier) {
      const Record record{static_cast<uint32_t>(words.size()), static_cast<uint16_t>(pair.key.size()),
                          static_cast<uint16_t>(pair.value.size())};
      std::memcpy(bytes.data() + at, &record, sizeof(record));
      at += sizeof(record);
      words += pair.key;
      words += pair.value;
    }
  }
  if (words.size() > UINT32_MAX) return fail(Code::kLimitExceeded, "'{}' is larger than 4 GB", name);
  header.text_bytes = words.size();
  bytes += words;
  header.checksum = fast_hash(std::string_view(bytes).substr(sizeof(Header)), 0);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return from_compiled(std::move(bytes), header.key, name);
}

Result<Lexicon> Lexicon::from_compiled(std::string bytes, uint64_t key, std::string_view name) {
  Lexicon lexicon;
  lexicon.owned_ = std::move(bytes);
  SYRINX_TRY_VOID(lexicon.validate(key, name));
  return lexicon;
}

Result<Lexicon> Lexicon::open_compiled(MappedFile file, uint64_t key) {
  Lexicon lexicon;
  lexicon.file_ = std::move(file);
  SYRINX_TRY_VOID(lexicon.validate(key, lexicon.file_.path()));
  lexicon.file_.release(0, lexicon.file_.bytes().size());  // only the pages that lookups touch should stay
  return lexicon;
}

std::span<const std::byte> Lexicon::bytes_view() const {
  return owned_.empty() ? file_.bytes() : std::as_bytes(std::span(owned_.data(), owned_.size()));
}

Status Lexicon::validate(uint64_t key, std::string_view name) {
  const std::string_view bytes = as_text(bytes_view());
  const auto damaged = [&](const char* what) {
    return fail(Code::kDataLoss, "compiled lexicon '{}' is damaged ({}); delete it, it is made anew", name, what);
  };
  Header header;
  if (bytes.size() < sizeof(header)) return damaged("too short");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic || header.version != kLexiconVersion || header.header_bytes != sizeof(header)) {
    return damaged("another format");
  }
  if (header.key != key) return damaged("made from other files");
  const uint64_t count = uint64_t{header.counts[0]} + header.counts[1];
  const uint64_t rest = bytes.size() - sizeof(header);
  if (count > 2 * kMaxWords || header.text_bytes > rest || count * sizeof(Record) != rest - header.text_bytes) {
    return damaged("sizes");
  }
  if (fast_hash(bytes.substr(sizeof(header)), 0) != header.checksum) return damaged("content");
  for (uint64_t i = 0; i < count; ++i) {
    Record record;
    std::memcpy(&record, bytes.data() + sizeof(header) + i * sizeof(record), sizeof(record));
    if (uint64_t{record.offset} + record.key_bytes + record.value_bytes > header.text_bytes) return damaged("a word");
  }
  return {};
}

size_t Lexicon::size() const {
  Header header;
  std::memcpy(&header, bytes_view().data(), sizeof(header));
  return size_t{header.counts[0]} + header.counts[1];
}

std::optional<Entry> Lexicon::find_exact(int tier, std::string_view word) const {
  const std::string_view bytes = as_text(bytes_view());
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const size_t total = size_t{header.counts[0]} + header.counts[1];
  const std::string_view words = bytes.substr(sizeof(header) + total * sizeof(Record));
  const char* records = bytes.data() + sizeof(header) + (tier == 0 ? 0 : header.counts[0] * sizeof(Record));
  size_t low = 0;
  size_t high = header.counts[static_cast<size_t>(tier)];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    Record record;
    std::memcpy(&record, records + middle * sizeof(Record), sizeof(record));
    const int order = words.substr(record.offset, record.key_bytes).compare(word);
    if (order == 0) return Entry(words.substr(record.offset + record.key_bytes, record.value_bytes));
    (order < 0 ? low : high) = order < 0 ? middle + 1 : middle;
  }
  return std::nullopt;
}

std::optional<Entry> Lexicon::find(int tier, std::string_view word) const {
  if (const auto found = find_exact(tier, word)) return found;
  if (word.size() < 2) return std::nullopt;
  const std::string lower = text::ascii_lower(word);
  const std::string other = word == lower ? capitalised(lower) : lower;
  if (other == word || (word != lower && word != capitalised(lower))) return std::nullopt;
  return find_exact(tier, other);
}

Result<Lexicon> Lexicon::load(const std::string& gold, const std::string& silver, const std::string& cache_dir) {
  SYRINX_TRY(const MappedFile gold_file, MappedFile::open(gold));
  MappedFile silver_file;
  if (!silver.empty()) {
    SYRINX_TRY(MappedFile opened, MappedFile::open(silver));
    silver_file = std::move(opened);
  }
  const std::string_view gold_json = as_text(gold_file.bytes());
  const std::string_view silver_json = as_text(silver_file.bytes());
  if (cache_dir.empty()) return compile(gold_json, silver_json, gold);
  const uint64_t key = source_key(gold_json, silver_json);
  const std::string path = fmt::format("{}/lexicon-v{}-{:016x}.bin", cache_dir, kLexiconVersion, key);
  if (auto cached = MappedFile::open(path)) {
    if (auto opened = open_compiled(std::move(*cached), key)) {
      gold_file.release(0, gold_json.size());
      return opened;
    }
  }
  SYRINX_TRY(Lexicon compiled, compile(gold_json, silver_json, gold));
  make_folders(cache_dir);
  try_to_save(path, compiled.owned_);
  if (auto cached = MappedFile::open(path)) {
    if (auto opened = open_compiled(std::move(*cached), key)) return opened;
  }
  return compiled;  // nothing could be written: keep it in memory
}

}  // namespace syrinx::g2p
