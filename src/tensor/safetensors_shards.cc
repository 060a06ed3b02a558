#include "tensor/safetensors_shards.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "tensor/safetensors.h"

namespace syrinx {
namespace {

constexpr std::string_view kIndexEnd = ".safetensors.index.json", kShardEnd = ".safetensors";

// Nothing that could lead out of the folder.
bool is_plain_name(std::string_view name) {
  return name.size() > kShardEnd.size() && name.ends_with(kShardEnd) &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

bool is_safetensors_index(std::string_view path) { return path.ends_with(kIndexEnd); }

Result<SafetensorsIndex> parse_safetensors_index(std::string_view json, const std::string& name) {
  SYRINX_TRY(const Json root, parse_json(json, name, {.max_bytes = kMaxSafetensorsIndexBytes, .max_depth = 8}));
  const Json* const map = root.find("weight_map");
  if (map == nullptr || map->object() == nullptr || map->object()->empty())
    return fail(Code::kDataLoss, "'{}' is not an index of safetensors files: it has no weight_map", name);
  std::vector<std::pair<std::string_view, std::string_view>> places;  // tensor, file
  for (const JsonMember& member : *map->object()) {
    const std::string* const file = member.value.string();
    if (file == nullptr || !is_plain_name(*file))
      return fail(Code::kDataLoss, "'{}' places the tensor {} in {}, which is not a file of its folder", name,
                  in_quotes(member.key), file == nullptr ? "no file" : in_quotes(*file));
    places.emplace_back(member.key, *file);
  }
  std::sort(places.begin(), places.end());
  SafetensorsIndex out;
  for (const auto& [tensor, file] : places) out.files.emplace_back(file);
  std::sort(out.files.begin(), out.files.end());
  out.files.erase(std::unique(out.files.begin(), out.files.end()), out.files.end());
  if (out.files.size() > kMaxSafetensorsShards)
    return fail(Code::kLimitExceeded, "'{}' names {} files; at most {} are read", name, out.files.size(),
                kMaxSafetensorsShards);
  for (const auto& [tensor, file] : places) {
    const auto at = std::lower_bound(out.files.begin(), out.files.end(), file);
    out.entries.push_back({std::string(tensor), static_cast<size_t>(at - out.files.begin())});
  }
  return out;
}

Result<SafetensorsShards> open_safetensors_shards(const std::string& index_path) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(index_path));
  SYRINX_TRY(
      const SafetensorsIndex index,
      parse_safetensors_index({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, index_path));
  const std::filesystem::path folder = std::filesystem::path(index_path).parent_path();
  SafetensorsShards out;
  size_t found = 0;
  for (size_t i = 0; i < index.files.size(); ++i) {
    const std::string path = (folder / index.files[i]).string();
    Result<MappedFile> shard = MappedFile::open(path);
    if (!shard && shard.error().code == Code::kNotFound)
      return fail(Code::kNotFound, "'{}' is missing, though '{}' names it; fetch all {} files", path, index_path,
                  index.files.size());
    if (!shard) return tl::unexpected(shard.error());
    SYRINX_TRY(const Safetensors parsed, Safetensors::parse(shard->bytes(), path));
    for (const TensorRef& tensor : parsed.tensors()) {
      const auto at = std::lower_bound(index.entries.begin(), index.entries.end(), tensor.name,
                                       [](const auto& entry, const std::string& name) { return entry.tensor < name; });
      if (at == index.entries.end() || at->tensor != tensor.name || at->file != i)
        return fail(Code::kDataLoss,
                    "'{}' holds the tensor {}, but its index does not place it there; fetch all files "
                    "of one version",
                    path, in_quotes(tensor.name));
      out.tensors.push_back(tensor);
      ++found;
    }
    out.files.push_back(std::move(*shard));
  }
  // A tensor lies in one file only, so counts tell.
  if (found != index.entries.size())
    return fail(Code::kDataLoss, "'{}' places {} tensors, but its files hold {}; fetch all files of one version",
                index_path, index.entries.size(), found);
  return out;
}

}  // namespace syrinx
