#include "models/kokoro/checkpoint.h"

#include "models/kokoro/checkpoint_file.h"
#include "tensor/content_key.h"
#include "tensor/dtype.h"
#include "tensor/zip.h"

namespace syrinx::kokoro {
namespace {

// One weight of each of the five modules: with these it is a Kokoro, and what is wrong then has a name.
constexpr const char* kMarks[] = {"bert.embeddings.word_embeddings.weight", "bert_encoder.weight",
                                  "predictor.duration_proj.linear_layer.weight", "text_encoder.embedding.weight",
                                  "decoder.generator.conv_post.weight"};

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(MappedFile file) {
  const std::string path = file.path();
  if (file.bytes().empty()) return fail(Code::kDataLoss, "'{}' is empty", path);
  const bool is_zip = ZipArchive::looks_like(file.bytes());
  SYRINX_TRY(std::unique_ptr<Checkpoint> checkpoint,
             is_zip ? open_torch_checkpoint(std::move(file)) : open_onnx_checkpoint(std::move(file)));
  for (const char* mark : kMarks)
    if (!checkpoint->contains(mark))
      return fail(Code::kUnsupported, "'{}' is {} file, but not of a Kokoro model: it holds no '{}'", path,
                  is_zip ? "a PyTorch" : "an ONNX", mark);
  return checkpoint;
}

std::string content_hash_of(const MappedFile& file) { return content_key(file, ""); }

Status shape_error(const std::string& path, std::string_view name, const std::vector<size_t>& stored,
                   const std::vector<size_t>& wanted) {
  return fail(Code::kDataLoss, "'{}': weight '{}' has the shape {} where the model needs {}", path, name,
              dims_text(stored), dims_text(wanted));
}

}  // namespace syrinx::kokoro
