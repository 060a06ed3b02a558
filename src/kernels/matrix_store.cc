#include "kernels/matrix_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/log.h"

namespace syrinx::kernels {
namespace {

// Header beside a matrix's arrays.
struct Header {
  uint64_t columns, channels, taps;
  uint32_t type;
  int32_t zero;
  uint32_t fine, scaled;
};

bool is_one_of(uint32_t type, std::initializer_list<PanelType> types) {
  return std::any_of(types.begin(), types.end(), [&](PanelType t) { return static_cast<uint32_t>(t) == type; });
}

}  // namespace

MatrixStore MatrixStore::open(const std::string& path, const std::string& key, Written written) {
  MatrixStore store;
  store.written_ = written;
  if (path.empty()) return store;
  store.path_ = path;
  store.key_ = key;
  if (auto mapped = MappedFile::open(path)) {
    if (auto packed = PackedFile::open(std::move(*mapped), key))
      store.file_ = std::make_shared<PackedFile>(std::move(*packed));
  }
  if (store.file_ != nullptr) return store;
  auto writer = PackedFileWriter::create(path, key);
  if (writer) {
    store.writer_.emplace(std::move(*writer));
  } else {
    log_info("packed weights are not kept: {}", writer.error().message);
  }
  return store;
}

OwnedMatrix MatrixStore::get(const std::string& name, const MatrixShape& shape, std::initializer_list<PanelType> types,
                             const std::function<OwnedMatrix()>& make, Place place) {
  if (auto found = find(name, shape, types, place)) return std::move(*found);
  incomplete_ = file_ != nullptr;
  OwnedMatrix made = make();
  if (made.view.panels == nullptr) return made;
  keep(name, made);
  if (!writer_ || written_ == Written::kStays) return made;
  is_hollow_ = true;
  made.panels = {};
  made.view.panels = nullptr;
  return made;
}

StoredBytes MatrixStore::get_bytes(const std::string& name, size_t size_bytes,
                                   const std::function<Buffer<std::byte>()>& make) {
  if (file_ != nullptr) {
    const auto found = take<std::byte>(name, size_bytes, Place::kFile);
    if (!found.empty()) return {found, {}};
    incomplete_ = true;
  }
  StoredBytes made;
  made.own = make();
  made.view = made.own.span();
  if (!writer_ || made.view.empty()) return made;
  note(writer_->add(name, made.view));
  if (!writer_ || written_ == Written::kStays) return made;
  is_hollow_ = true;
  return {};
}

// Empty when the file has no such array, or not so many, or it is damaged.
template <class T>
std::span<const T> MatrixStore::take(const std::string& name, size_t count, Place place) {
  auto found = file_->find(name);
  if (!found || found->size() != count * sizeof(T)) return {};
  if (place == Place::kMemory) {
    found = file_->copy(name);
  } else if (const Status whole = file_->check(name); !whole) {
    found = tl::unexpected(whole.error());
  } else {
    file_->release();
  }
  if (!found) {
    log_info("packed weights are made again: {}", found.error().message);
    return {};
  }
  return {reinterpret_cast<const T*>(found->data()), count};
}

std::optional<OwnedMatrix> MatrixStore::find(const std::string& name, const MatrixShape& shape,
                                             std::initializer_list<PanelType> types, Place place) {
  if (file_ == nullptr) return std::nullopt;
  const std::span<const Header> header = take<Header>(name, 1, place);
  if (header.empty()) return std::nullopt;
  const Header& h = header.front();
  if (h.columns != shape.columns || h.channels != shape.channels || h.taps != shape.taps || !is_one_of(h.type, types))
    return std::nullopt;
  OwnedMatrix m;
  PackedMatrix& view = m.view;
  view.type = static_cast<PanelType>(h.type);
  view.columns = shape.columns;
  view.channels = shape.channels;
  view.taps = shape.taps;
  view.zero = h.zero;
  view.fine = h.fine != 0;
  view.panels = take<std::byte>(name + "/panels", view.panel_count() * view.panel_bytes(), place).data();
  view.bias = take<float>(name + "/bias", view.padded_columns(), place).data();
  if (view.panels == nullptr || view.bias == nullptr) return std::nullopt;
  if (h.scaled == 0) return m;
  view.scale = take<float>(name + "/scale", view.padded_columns(), place).data();
  view.column_sum = take<int32_t>(name + "/sums", view.padded_columns(), place).data();
  if (view.scale == nullptr || view.column_sum == nullptr) return std::nullopt;
  return m;
}

void MatrixStore::keep(const std::string& name, const OwnedMatrix& matrix) {
  if (!writer_) return;
  const PackedMatrix& view = matrix.view;
  const bool scaled = view.scale != nullptr && view.column_sum != nullptr;
  const Header header{.columns = view.columns,
                      .channels = view.channels,
                      .taps = view.taps,
                      .type = static_cast<uint32_t>(view.type),
                      .zero = view.zero,
                      .fine = view.fine ? 1u : 0u,
                      .scaled = scaled ? 1u : 0u};
  const auto panels = static_cast<const std::byte*>(view.panels);
  Status status = writer_->add_array(name, std::span(&header, 1));
  if (status) status = writer_->add(name + "/panels", {panels, view.panel_count() * view.panel_bytes()});
  if (status) status = writer_->add_array(name + "/bias", std::span(view.bias, view.padded_columns()));
  if (status && scaled) status = writer_->add_array(name + "/scale", std::span(view.scale, view.padded_columns()));
  if (status && scaled) status = writer_->add_array(name + "/sums", std::span(view.column_sum, view.padded_columns()));
  note(status);
}

void MatrixStore::note(const Status& written) {
  if (written) return;
  // A full disk must not stop the voice.
  log_info("packed weights are not kept: {}", written.error().message);
  writer_.reset();
  has_failed_ = true;
}

bool MatrixStore::finish() {
  if (file_ != nullptr) file_->trim_copies();
  if (incomplete_) {
    std::error_code error;
    return std::filesystem::remove(path_, error);
  }
  if (!writer_) return is_hollow_;
  auto file = writer_->finish();
  writer_.reset();
  if (!file) note(tl::unexpected(file.error()));
  return file.has_value() || is_hollow_;
}

Status read_kept(const std::string& path, const std::string& key, const std::function<Status(MatrixStore&)>& read,
                 Written written) {
  constexpr int kPasses = 3;
  bool has_failed = false;
  for (int pass = 0; pass < kPasses; ++pass) {
    const Written each = pass + 1 < kPasses ? written : Written::kStays;
    MatrixStore store = has_failed ? MatrixStore() : MatrixStore::open(path, key, each);
    SYRINX_TRY_VOID(read(store));
    if (!store.finish()) break;
    has_failed = store.has_failed();
  }
  return {};
}

}  // namespace syrinx::kernels
