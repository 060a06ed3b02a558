#include "kernels/matrix_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/log.h"

namespace syrinx::kernels {
namespace {

// What stands beside a matrix's arrays.
struct Header {
  uint64_t columns, channels, taps;
  uint32_t type;
  int32_t zero;
  uint32_t fine, scaled;
};

// Weights from here on are copied out of the mapping into memory of huge pages, which a mapped file cannot have: they
// stream from memory half as fast again (docs/journal.md).
constexpr size_t kCopiedBytes = size_t{2} << 20;

bool is_one_of(uint32_t type, std::initializer_list<PanelType> types) {
  return std::any_of(types.begin(), types.end(), [&](PanelType t) { return static_cast<uint32_t>(t) == type; });
}

}  // namespace

MatrixStore MatrixStore::open(const std::string& path, const std::string& key) {
  MatrixStore store;
  if (path.empty()) return store;
  store.path_ = path;
  store.key_ = key;
  if (auto mapped = MappedFile::open(path)) {
    if (auto packed = PackedFile::open(std::move(*mapped), key))
      store.file_ = std::make_shared<const PackedFile>(std::move(*packed));
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
                             const std::function<OwnedMatrix()>& make) {
  if (auto found = find(name, shape, types)) return std::move(*found);
  incomplete_ = file_ != nullptr;
  OwnedMatrix made = make();
  if (made.view.panels != nullptr) keep(name, made);
  return made;
}

std::optional<OwnedMatrix> MatrixStore::find(const std::string& name, const MatrixShape& shape,
                                             std::initializer_list<PanelType> types) const {
  if (file_ == nullptr) return std::nullopt;
  const auto header = file_->array<Header>(name);
  const auto panels = file_->find(name + "/panels");
  const auto bias = file_->array<float>(name + "/bias");
  if (!header || header->size() != 1 || !panels || !bias) return std::nullopt;
  const Header& h = header->front();
  if (h.columns != shape.columns || h.channels != shape.channels || h.taps != shape.taps || !is_one_of(h.type, types))
    return std::nullopt;
  OwnedMatrix m;
  m.view.type = static_cast<PanelType>(h.type);
  m.view.columns = shape.columns;
  m.view.channels = shape.channels;
  m.view.taps = shape.taps;
  m.view.zero = h.zero;
  m.view.fine = h.fine != 0;
  m.view.panels = panels->data();
  m.view.bias = bias->data();
  if (panels->size() != m.view.panel_count() * m.view.panel_bytes() || bias->size() != m.view.padded_columns())
    return std::nullopt;
  if (panels->size() >= kCopiedBytes) {
    m.panels = Buffer<std::byte>(panels->size());
    prefer_huge_pages(m.panels.data(), m.panels.size());
    std::copy(panels->begin(), panels->end(), m.panels.data());
    file_->release(*panels);
    m.view.panels = m.panels.data();
  }
  if (h.scaled == 0) return m;
  const auto scale = file_->array<float>(name + "/scale");
  const auto sums = file_->array<int32_t>(name + "/sums");
  if (!scale || !sums || scale->size() != m.view.padded_columns() || sums->size() != m.view.padded_columns())
    return std::nullopt;
  m.view.scale = scale->data();
  m.view.column_sum = sums->data();
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
  if (status) return;
  // A full disk must not stop the voice.
  log_info("packed weights are not kept: {}", status.error().message);
  writer_.reset();
}

bool MatrixStore::finish() {
  if (incomplete_) {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  if (!writer_) return false;
  auto file = writer_->finish();
  writer_.reset();
  if (!file) log_info("packed weights are not kept: {}", file.error().message);
  return file.has_value();
}

}  // namespace syrinx::kernels
